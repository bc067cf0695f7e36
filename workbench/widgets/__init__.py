"""Panels: sliders on every mechanism, in JupyterLab, as a dashboard, and in a file that can be mailed.

A panel computes nothing of its own: it sets up a dataset and a mechanism, releases by simulated noise,
and draws the rows that metrics measure. Each is a frozen scene under one `Panel`. `panel` makes one of
any mechanism; `advice` is what there is to see of a private table, whatever panel is asked for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.table import Bound
from workbench.widgets.panels import Panel as Panel
from workbench.widgets.scenes import Scene, typed
from workbench.widgets.shared import save_panels as save_panels
from workbench.widgets.shared import share as share


def summaries(data: Any = None, /, **values: Any) -> Panel:
    """Filter, threshold and priority sampling of a sparse table: ε, θ, τ, size, dyadic, consistent."""
    from workbench.widgets.scenes.summaries import Summaries

    return _own(Summaries(), data, values)


def adaptive(data: Any = None, /, **values: Any) -> Panel:
    """Adaptive histograms, PrivTree, direct synthesis: ε, threshold, discount, depth; map or tree."""
    from workbench.widgets.scenes.adaptive import Adaptive

    return _own(Adaptive(), data, values)


def contributions(data: Any = None, /, **values: Any) -> Panel:
    """Records of users, sampled or bounded: mechanism, ε, l, d, M, and how unequal users are."""
    from workbench.widgets.scenes.contributions import Contributions

    return _own(Contributions(), data, values)


def consistency(data: Any = None, /, **values: Any) -> Panel:
    """Histograms made to add up, or sorted: ε, branching, consistent, nonnegative, range size."""
    from workbench.widgets.scenes.consistency import Consistency

    return _own(Consistency(), data, values)


def history(data: Any = None, /, **values: Any) -> Panel:
    """Answers from past noisy answers by kernel PCA: ε, α, m, prior, kind of past queries, noise."""
    from workbench.widgets.scenes.history import History

    return _own(History(), data, values)


def panel(mechanism: Any, dataset: Any = None, **values: Any) -> Panel:
    """Any mechanism, a class or a value of one: a slider for each field, on data that it suits.

    `dataset` takes the place of a small made-up one; a private one shows `advice` instead.
    """
    from workbench.widgets.scenes.fields import Fields

    if dataset is not None and (instead := _instead(dataset)):
        return Panel(instead)
    return Panel(Fields.of(mechanism, dataset), **values)


def advice(data: Any, bound: Bound | None = None, **values: Any) -> Panel:
    """What to expect of releases of a table, and what looks cost, by its domain and bound alone.

    `data` is a table, private or not, or just a domain; of a table nothing else is read.
    """
    from workbench.widgets.scenes.advice import advice_scene

    return Panel(advice_scene(data, bound), **values)


def _own(scene: Scene, data: Any, values: dict[str, Any]) -> Panel:
    """A panel, which makes its own data; whoever brings a private table is shown advice instead."""
    if data is None:
        return Panel(scene, **values)
    if instead := _instead(data):
        return Panel(instead)
    raise ValueError(
        f"data = {type(data).__name__} is not allowed: this panel makes its own; "
        "`widgets.panel(mechanism, dataset)` takes public data"
    )


def _instead(data: Any) -> Scene | None:
    """What is shown of private data; None of public."""
    from workbench.widgets.scenes.advice import advice_instead

    return advice_instead(data)


ALL = ("summaries", "consistency", "adaptive", "contributions", "history")


def all_panels() -> list[Panel]:
    """The explorer's panels, as they open."""
    return [globals()[name]() for name in ALL]


def from_settings(name: str, words: Sequence[str]) -> Panel:
    """A panel by its name, at settings as they are typed: `name=value` each, `seed` and `seeds` too."""
    from workbench import mechanisms

    known = {cls.__name__: cls for cls in mechanisms.ALL}
    if name not in ALL and name not in known:
        names = f"{', '.join(ALL)}, and one a mechanism, such as ThresholdSampling"
        raise ValueError(f"no panel {name!r}; there are: {names}")
    shown = globals()[name]() if name in ALL else panel(known[name])
    shown.set(**typed(shown.scene, words))
    return shown
