"""Panels: interactive views of a mechanism, a figure, advice or a bank, for JupyterLab and dashboards.

`panel` shows any mechanism, with one slider per field. `figure` shows a figure of a paper, with controls
for its parameters. `advice` shows which errors to expect from a release, before anyone uses the private
table. `bank` answers questions from a session's bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.data import Bound
    from workbench.figures import Figure
    from workbench.owner import Session
    from workbench.widgets.bank_page import BankPanel
    from workbench.widgets.panels import Panel


def panel(mechanism: Any, dataset: Any = None, **values: Any) -> Panel:
    """Show a mechanism with one slider for each of its parameters. You can compare it with another mechanism.

    Parameters
    ----------
    mechanism
        Class of a mechanism, which starts at its example, or a mechanism. It may be your own.
    dataset : optional
        Public dataset. Default: a small synthetic one.
    **values
        Settings of controls by the names of fields, for example `epsilon=0.5`. `compare` is the name of
        another mechanism. It is drawn next to this one, with the same data and noise.

    Returns
    -------
    Panel
        Panel to display in a notebook.

    Raises
    ------
    ValueError
        If the argument is not a mechanism, the dataset is private or of a wrong kind, or a setting is
        invalid.
    """
    from workbench.widgets.mechanism_subject import MechanismSubject
    from workbench.widgets.panels import Panel

    return Panel(MechanismSubject.of(mechanism, dataset), **values)


def figure(figure: str | Figure, /, **values: Any) -> Panel:
    """Show a figure of a paper, with controls for its parameters. It runs when a page displays it.

    Parameters
    ----------
    figure : str or Figure
        Id of the figure, for example "cormode2012_fig5", or the figure itself.
    **values
        Values of its parameters. Default: the paper's values, with the effort of a quick run.

    Returns
    -------
    Panel
        Panel to display in a notebook.

    Raises
    ------
    ValueError
        If there is no such figure or parameter, or a value is out of range.
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
    """Return a panel with a list of the figures of all papers. It shows the picture and the controls of the
    selected figure.
    """
    from workbench.figures import results_folder
    from workbench.widgets.figure_subject import FigureSubject
    from workbench.widgets.panels import Panel

    return Panel(FigureSubject("", results_folder().resolve()))


def advice(data: Any, bound: Bound | None = None, **values: Any) -> Panel:
    """Show which errors to expect from releases of a table. Only its domain and bound are used.

    Parameters
    ----------
    data
        Table (private or public), dataset of a table, or domain. Only its domain and bound are read.
    bound : Bound, optional
        Largest change of the table by one unit, if `data` has no bound.
    **values
        Settings of controls: epsilon, size, delta, density, mean, spread.

    Returns
    -------
    Panel
        Panel to display in a notebook.

    Raises
    ------
    ValueError
        If `data` are records or interactions, or a table that is PUBLIC.
    """
    from workbench.widgets.advice_subject import advice_subject
    from workbench.widgets.panels import Panel

    return Panel(advice_subject(data, bound), **values)


def bank(session: Session | str | Path | None = None, /) -> BankPanel:
    """Show the noisy answers that a session has paid for and stored, their errors, and the price of better
    answers.

    Answers from the bank are free. If the session has its table, a button with a price spends budget.

    Parameters
    ----------
    session : Session or path, optional
        Session, or the path of its file, which is opened without a table. Default: a session with synthetic
        people, whose file is removed when this process ends.

    Returns
    -------
    BankPanel
        Panel to display in a notebook.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    """
    from workbench.owner import Session
    from workbench.widgets.bank_page import BankPanel, synthetic_session

    if session is None:
        session = synthetic_session()
    return BankPanel(session if isinstance(session, Session) else Session.open(session))


def is_panel(name: str) -> bool:
    """Return whether a mechanism with this name exists, in this package or in another one."""
    from workbench import compiled, mechanisms

    return name in mechanisms.__all__ or compiled.find("mechanisms", name) is not None


def from_settings(name: str, words: Sequence[str]) -> Panel:
    """Return the widget of a mechanism, whose name and parameters are given as text.

    Parameters
    ----------
    name : str
        Name of the mechanism's class.
    words : sequence of str
        Settings as `name=value`, including `seed` and `seeds`.

    Returns
    -------
    Panel
        Panel with an exact picture.

    Raises
    ------
    ValueError
        If there is no such mechanism or control, or a setting is invalid.
    """
    from workbench.widgets.mechanism_subject import MechanismSubject, find_mechanism
    from workbench.widgets.panels import Panel, parse_words

    subject = MechanismSubject.of(find_mechanism(name))
    return Panel(subject, **parse_words(subject, words))
