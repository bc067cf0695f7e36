"""Panels: sliders on every mechanism, in JupyterLab and as a dashboard.

A panel computes nothing of its own: it sets up a dataset and a mechanism, releases by simulated noise,
and draws the rows that metrics measure. Each is a frozen scene under one `Panel`. `panel` makes one of
any mechanism; `advice` is what there is to see of a private table, whatever panel is asked for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.data import Bound
    from workbench.figures import Figure
    from workbench.owner import Session
    from workbench.widgets.bank_panel import BankPage as BankPage
    from workbench.widgets.bank_panel import BankPanel as BankPanel
    from workbench.widgets.figure_panel import FigurePanel as FigurePanel
    from workbench.widgets.figure_panel import FigurePanels as FigurePanels
    from workbench.widgets.panels import Panel as Panel
    from workbench.widgets.scenes import Scene


_FILES = {
    "BankPage": "bank_panel",
    "BankPanel": "bank_panel",
    "FigurePanel": "figure_panel",
    "FigurePanels": "figure_panel",
    "Panel": "panels",
}
_SCENES = {
    "summaries": "Summaries",
    "consistency": "Consistency",
    "adaptive": "Adaptive",
    "contributions": "Contributions",
    "history": "History",
}
ALL = tuple(_SCENES)  # in the order of the explorer


def __getattr__(name: str) -> Any:
    """What loads matplotlib, when its name is asked for."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)


def figure(figure: str | Figure, /, **values: Any) -> FigurePanel:
    """A figure of a paper under its own parameters; nothing runs before one is moved.

    Parameters
    ----------
    figure
        Its id, as "cormode2012_fig5", or the figure itself.
    **values
        Where its parameters start; the paper's values and the effort of a quick run unless given.

    Returns
    -------
    FigurePanel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        If there is no such figure or parameter, or a value is out of its range.
    """
    from workbench.figures import find_figure
    from workbench.widgets.figure_panel import FigurePanel

    if isinstance(figure, str):
        return FigurePanel(find_figure(figure).at("quick", **values))
    start = {name: getattr(figure, name) for name in figure.parameters()}
    return FigurePanel(type(figure).at("paper", **(start | values)))


def bank(session: Session | str | Path | None = None, /) -> BankPanel:
    """What is in a session's bank, what it can answer and how well, and what a question would cost.

    Answers cost nothing. Where the session has its table, a button that says its price spends.

    Parameters
    ----------
    session
        A session, or the path of its file, which is opened without a table. By default one of made-up
        people, whose file is gone with this process.

    Returns
    -------
    BankPanel
        To be shown in a notebook.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    from workbench.owner import Session
    from workbench.widgets.bank_panel import BankPanel, made_up_session

    if session is None:
        session = made_up_session()
    return BankPanel(session if isinstance(session, Session) else Session.open(session))


def figures() -> FigurePanels:
    """Every figure of the project under its sliders, one at a time."""
    from workbench.widgets.figure_panel import FigurePanels

    return FigurePanels()


def summaries(data: Any = None, /, **values: Any) -> Panel:
    """Filter, threshold and priority sampling of a sparse table.

    Parameters
    ----------
    data
        Nothing: the panel makes its own. Of a private table `advice` is shown instead.
    **values
        Settings of its controls: epsilon, theta, tau, size, dyadic, consistent, …

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        A name that is no control, a setting that the mechanism refuses, or public data.
    """
    return _panel_of_scene("summaries", data, values)


def adaptive(data: Any = None, /, **values: Any) -> Panel:
    """Adaptive histograms, PrivTree and direct synthesis, of a map or of strings.

    Parameters
    ----------
    data
        Nothing: the panel makes its own.
    **values
        Settings of its controls: mechanism, epsilon, threshold, discount, depth, …

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        A name that is no control, a setting that the mechanism refuses, or data.
    """
    return _panel_of_scene("adaptive", data, values)


def contributions(data: Any = None, /, **values: Any) -> Panel:
    """Records of users, sampled or bounded.

    Parameters
    ----------
    data
        Nothing: the panel makes its own.
    **values
        Settings of its controls: mechanism, epsilon, l, d, bound, and how unequal users are.

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        A name that is no control, a setting that the mechanism refuses, or data.
    """
    return _panel_of_scene("contributions", data, values)


def consistency(data: Any = None, /, **values: Any) -> Panel:
    """Histograms made to add up, or sorted.

    Parameters
    ----------
    data
        Nothing: the panel makes its own. Of a private table `advice` is shown instead.
    **values
        Settings of its controls: epsilon, branching, consistent, nonnegative, size of ranges, …

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        A name that is no control, a setting that the mechanism refuses, or public data.
    """
    return _panel_of_scene("consistency", data, values)


def history(data: Any = None, /, **values: Any) -> Panel:
    """Answers from past noisy answers by kernel PCA.

    Parameters
    ----------
    data
        Nothing: the panel makes its own. Of a private table `advice` is shown instead.
    **values
        Settings of its controls: epsilon, alpha, count of past queries, prior, noise, …

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        A name that is no control, a setting that the mechanism refuses, or public data.
    """
    return _panel_of_scene("history", data, values)


def panel(mechanism: Any, dataset: Any = None, **values: Any) -> Panel:
    """Any mechanism: a slider for each field.

    Parameters
    ----------
    mechanism
        A class, which starts at its example, or a value of one; yours too.
    dataset
        A public dataset in place of a small made-up one; of a private one `advice` is shown instead.
    **values
        Settings of its controls, by the names of the fields.

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        No mechanism, a dataset that it does not take, or the mechanism's own.
    """
    from workbench.widgets.panels import Panel
    from workbench.widgets.scenes.advice import advice_instead
    from workbench.widgets.scenes.fields import Fields

    if dataset is not None:
        instead = advice_instead(dataset)
        if instead:
            return Panel(instead)
    return Panel(Fields.of(mechanism, dataset), **values)


def advice(data: Any, bound: Bound | None = None, **values: Any) -> Panel:
    """What to expect of releases of a table, and what looks cost, by its domain and bound alone.

    Parameters
    ----------
    data
        A table, private or not, a dataset of one, or just a domain; nothing else of it is read.
    bound
        How far one unit moves the table, where `data` does not say it.
    **values
        Settings of its controls: epsilon, size, delta, believed, density, mean, spread.

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        Records or interactions, whose errors no closed form tells; a table that is PUBLIC.
    """
    from workbench.widgets.panels import Panel
    from workbench.widgets.scenes.advice import advice_scene

    return Panel(advice_scene(data, bound), **values)


def _scene(name: str) -> Scene:
    return getattr(import_module(f"{__name__}.scenes.{name}"), _SCENES[name])()


def _panel_of_scene(name: str, data: Any, values: dict[str, Any]) -> Panel:
    """A panel, which makes its own data; whoever brings a private table is shown advice instead."""
    from workbench.widgets.panels import Panel
    from workbench.widgets.scenes.advice import advice_instead

    if data is None:
        return Panel(_scene(name), **values)
    instead = advice_instead(data)
    if instead:
        return Panel(instead)
    raise ValueError(
        f"data = {type(data).__name__} is not allowed: this panel makes its own; "
        "`widgets.panel(mechanism, dataset)` takes public data"
    )


def all_panels() -> list[Panel]:
    """The explorer's panels, as they open.

    Returns
    -------
    list of Panel
        In the order of the explorer.
    """
    return [globals()[name]() for name in ALL]


def panel_names() -> list[str]:
    """The names of panels, and of the workbench's mechanisms, each of which has one."""
    from workbench import mechanisms

    return [*ALL, *mechanisms.__all__]


def is_panel(name: str) -> bool:
    """Whether a panel has that name, or a mechanism, ours or another package's."""
    from workbench import compiled

    return name in panel_names() or compiled.find("mechanisms", name) is not None


def from_settings(name: str, words: Sequence[str]) -> Panel:
    """A panel by its name, at settings as they are typed.

    Parameters
    ----------
    name
        Of a panel in `ALL`, or of a mechanism's class.
    words
        `name=value` each; `seed` and `seeds` too.

    Returns
    -------
    Panel
        Drawn exactly.

    Raises
    ------
    ValueError
        No such panel or control, or a setting that is refused.
    """
    from workbench import compiled, mechanisms
    from workbench.mechanisms.options import refuse_renamed

    if not is_panel(name):
        names = f"{', '.join(ALL)}, and one a mechanism, such as ThresholdSampling"
        raise ValueError(f"no panel {name!r}; there are: {names}")
    ours = getattr(mechanisms, name, None) if name in mechanisms.__all__ else None
    cls = ours or compiled.find("mechanisms", name)
    for word in words:
        refuse_renamed(word.partition("=")[0])

    from workbench.widgets.panels import Panel
    from workbench.widgets.scenes.fields import Fields
    from workbench.widgets.view import parse_settings

    scene = _scene(name) if name in ALL else Fields.of(cls)
    return Panel(scene, **parse_settings(scene, words))
