"""What tests of panels share: a page that moves a slider, and the release of the lines of code."""

import time


def moved(shown, rest=False, bands=False, **values):
    """The view once a slider has moved, as a page asks for it."""
    noise = {"seeds": 20 if bands else 1} if "seed" in shown.values else {}
    message = dict(kind="set", seq=shown._seq + 1, values=last(shown.values | noise, values))
    shown._on_message(None, message | dict(rest=rest), [])
    return shown.view


def last(values, moved):
    """All settings, those that moved at the end, as a page sends them."""
    return {name: x for name, x in values.items() if name not in moved} | moved


def settled(shown, seconds=120.0):
    """The view once the exact picture is there, or what was drawn before a stop."""
    until(lambda: shown.view["exact"] or shown.view["note"] or shown.view["error"], seconds)
    return shown.view


def until(happened, seconds=120.0):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def released(shown):
    """The release that the lines of code on the screen make."""
    made = {}
    exec(shown.view["code"], made)
    return made["release"]


def titles(shown):
    return [chart["title"] for chart in shown.view["charts"]]


def control(shown, name):
    return next(c for c in shown.subject.controls(shown.values) if c.name == name)


def facts(shown):
    """The facts on the screen. Of those with one name, the last."""
    return dict(shown.view["facts"])
