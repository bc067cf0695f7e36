"""What tests of panels share: what a page says when a slider moves, and what its code line makes."""


def moved(shown, rest=False, bands=False, seed=0, **values):
    """What is shown once a slider has moved."""
    message = dict(kind="set", seq=shown._seq + 1, values=values, seed=seed)
    shown._on_message(None, message | dict(bands=bands, rest=rest), [])
    return shown.view


def released(shown):
    """The release that the code line on the screen makes."""
    made = {}
    exec(shown.view["code"], made)
    return made["release"]
