"""Panels: a mechanism or a figure under sliders, in JupyterLab and as a dashboard.

There is one `Panel`. `panel` shows any mechanism, with a slider for each field, `figure` a figure of a
paper under its own parameters, and `advice` what is known of a private table beforehand. `bank` asks a
session's answers.
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
    from workbench.widgets.bank_page import BankPage as BankPage
    from workbench.widgets.bank_page import BankPanel as BankPanel
    from workbench.widgets.panels import Panel as Panel

_FILES = {"BankPage": "bank_page", "BankPanel": "bank_page", "Panel": "panels"}


def __getattr__(name: str) -> Any:
    """Load what needs matplotlib when its name is asked for."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)


def panel(mechanism: Any, dataset: Any = None, **values: Any) -> Panel:
    """Show any mechanism with a slider per field, alone or next to another one.

    Parameters
    ----------
    mechanism
        A class, which starts at its example, or a value of one; yours too.
    dataset : optional
        A public dataset. By default a small synthetic one.
    **values
        Settings of controls by the names of fields, for example `epsilon=0.5`. `compare` is the name of
        another mechanism on the same data, which is drawn beside this one on shared noise.

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        If it is no mechanism, the dataset is private or of another kind, or a setting is refused.
    """
    from workbench.widgets.mechanism_subject import MechanismSubject
    from workbench.widgets.panels import Panel

    return Panel(MechanismSubject.of(mechanism, dataset), **values)


def figure(figure: str | Figure, /, **values: Any) -> Panel:
    """Show a figure of a paper under its own parameters. It runs once a page shows it.

    Parameters
    ----------
    figure : str or Figure
        Its id, for example "cormode2012_fig5", or the figure itself.
    **values
        Values of its parameters. By default the paper's, at the effort of a quick run.

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        If there is no such figure or parameter, or a value is out of its range.
    """
    from workbench.figures import find_figure, results_folder
    from workbench.widgets.figure_subject import FigureSubject
    from workbench.widgets.panels import Panel

    if isinstance(figure, str):
        start = find_figure(figure).at("quick", **values)
    else:
        own = {name: getattr(figure, name) for name in figure.parameters()}
        start = type(figure).at("paper", **(own | values))
    subject = FigureSubject(start.id, results_folder().resolve())
    return Panel(subject, **subject.settings(start))


def figures() -> Panel:
    """Return the figures of all papers, one at a time: choose one, and its picture and controls appear."""
    from workbench.figures import results_folder
    from workbench.widgets.figure_subject import FigureSubject
    from workbench.widgets.panels import Panel

    return Panel(FigureSubject("", results_folder().resolve()))


def advice(data: Any, bound: Bound | None = None, **values: Any) -> Panel:
    """Show what to expect of releases of a table, by its domain and bound alone.

    Parameters
    ----------
    data
        A table, private or not, a dataset of one, or a domain; nothing else of it is read.
    bound : Bound, optional
        How far one unit moves the table, where `data` does not say it.
    **values
        Settings of its controls: epsilon, size, delta, density, mean, spread.

    Returns
    -------
    Panel
        To be shown in a notebook.

    Raises
    ------
    ValueError
        For records or interactions, and for a table that is PUBLIC.
    """
    from workbench.widgets.advice_subject import advice_subject
    from workbench.widgets.panels import Panel

    return Panel(advice_subject(data, bound), **values)


def bank(session: Session | str | Path | None = None, /) -> BankPanel:
    """Show what a session's bank can answer, how well, and what a better answer would cost.

    Answers are free. Where the session has its table, a button with a price spends it.

    Parameters
    ----------
    session : Session or path, optional
        A session, or the path of its file, which is opened without a table. By default one of synthetic
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
    from workbench.widgets.bank_page import BankPanel, synthetic_session

    if session is None:
        session = synthetic_session()
    return BankPanel(session if isinstance(session, Session) else Session.open(session))


def is_panel(name: str) -> bool:
    """Return whether a mechanism has that name, built in or from another package."""
    from workbench import compiled, mechanisms

    return name in mechanisms.__all__ or compiled.find("mechanisms", name) is not None


def from_settings(name: str, words: Sequence[str]) -> Panel:
    """Return the panel of a mechanism by its name, at settings as they are typed.

    Parameters
    ----------
    name : str
        The name of a mechanism's class.
    words : sequence of str
        `name=value` each; `seed` and `seeds` too.

    Returns
    -------
    Panel
        Drawn exactly.

    Raises
    ------
    ValueError
        If there is no such mechanism or control, or a setting is refused.
    """
    from workbench.widgets.mechanism_subject import MechanismSubject, find_mechanism
    from workbench.widgets.panels import Panel, parse_words

    subject = MechanismSubject.of(find_mechanism(name))
    return Panel(subject, **parse_words(subject, words))
