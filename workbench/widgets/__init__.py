"""Interactive panels for JupyterLab and dashboards. A panel shows a picture with controls, for example
sliders. When you move a control, the panel draws the picture again.

`panel` shows a mechanism, with a slider for each of its parameters. `figure` shows a figure of a paper, with
controls for its parameters. `advice` shows the errors that you can expect from a release, without using the
private table. `bank` shows a bank, which is a store of noisy answers, and answers questions from these
answers.
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
    """Show what a mechanism releases, with one slider for each of its parameters. You can also compare the
    mechanism with another one.

    Parameters
    ----------
    mechanism
        Mechanism, or class of a mechanism. The mechanism may be your own. If you pass a class, the sliders
        begin at the values of the example in this class.
    dataset : optional
        Public dataset on which the mechanism runs. Default: a small synthetic dataset.
    **values : any
        Initial values of controls, for example `epsilon=0.5`. If you pass `compare` with the name of another
        mechanism, the panel shows both mechanisms next to each other, with the same data and noise.

    Returns
    -------
    Panel
        Panel, which a notebook displays.

    Raises
    ------
    ValueError
        If the argument is not a mechanism, if a value is invalid, if the dataset is private, or if the
        mechanism does not accept this kind of data.
    """
    from workbench.widgets.mechanism_subject import MechanismSubject
    from workbench.widgets.panels import Panel

    return Panel(MechanismSubject.of(mechanism, dataset), **values)


def figure(figure: str | Figure, /, **values: Any) -> Panel:
    """Return a panel that shows a figure of a paper, with controls for its parameters. The panel computes the
    figure when a page first displays the panel.

    Parameters
    ----------
    figure : str or Figure
        Id of the figure, for example "cormode2012_fig5", or the figure itself.
    **values : any
        Initial values of the figure's parameters. By default, the panel begins with the values of a quick
        run. A quick run takes minutes, for example because it has fewer repetitions than the paper.

    Returns
    -------
    Panel
        Panel, which a notebook displays.

    Raises
    ------
    ValueError
        If there is no figure or parameter with the given name, or if a value is out of range.
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
    """Show a list of the figures of all papers. When you select a figure, the panel shows its picture and
    controls.
    """
    from workbench.figures import results_folder
    from workbench.widgets.figure_subject import FigureSubject
    from workbench.widgets.panels import Panel

    return Panel(FigureSubject("", results_folder().resolve()))


def advice(data: Any, bound: Bound | None = None, **values: Any) -> Panel:
    """Show the errors that you can expect from releases of a table, before you spend any budget. The panel
    uses only the domain (all possible cells) and the bound of the table, and not the counts.

    Parameters
    ----------
    data
        Table or dataset, or only the domain (all possible cells) of a table.
    bound : Bound, optional
        Largest change of the table that one protected unit can cause. Pass a bound only if `data` has none.
    **values : any
        Initial values of the controls `epsilon`, `size`, `delta`, `density`, `mean` and `spread`.

    Returns
    -------
    Panel
        Panel, which a notebook displays.

    Raises
    ------
    ValueError
        If `data` are points, strings or `Interactions`, or if the table is public.
    """
    from workbench.widgets.advice_subject import advice_subject
    from workbench.widgets.panels import Panel

    return Panel(advice_subject(data, bound), **values)


def bank(session: Session | str | Path | None = None, /) -> BankPanel:
    """Show a bank, which stores the noisy answers to earlier questions about a private table. The panel
    answers new questions from these answers. The panel also shows the errors of answers, and the price of
    answers with smaller errors.

    Answers from the bank cost no budget. A session consists of the bank, the budget that pays for its
    answers, and possibly the private table. If the session has the private table, the panel also has buttons
    with prices. When you press such a button, the session spends budget for better answers.

    Parameters
    ----------
    session : Session or path, optional
        Session, or the path of its file. If you pass a path, the panel does not open the private table, so it
        cannot spend budget. Default: a session about synthetic people, with which you can try the panel. The
        file of this session is removed when Python ends.

    Returns
    -------
    BankPanel
        Panel, which a notebook displays.

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


def from_settings(name: str, words: Sequence[str]) -> Panel:
    """Return the panel of a mechanism whose name and parameters are given as text, for example in a link.

    Parameters
    ----------
    name : str
        Name of the mechanism's class.
    words : sequence of str
        Values of controls, each as a text `name=value`, for example `epsilon=0.5`. The seed of the noise
        (`seed`) and the number of releases (`seeds`) are also controls.

    Returns
    -------
    Panel
        Panel with the full picture.

    Raises
    ------
    ValueError
        If there is no mechanism or control with the given name, or if a value is invalid.
    """
    from workbench import mechanisms
    from workbench.widgets.mechanism_subject import MechanismSubject
    from workbench.widgets.panels import Panel, settings_of

    cls = mechanisms.find(name)
    if cls is None:
        raise ValueError(f"there is no mechanism {name!r}. An example is ThresholdSampling")
    return Panel(MechanismSubject.of(cls), **settings_of(words))
