"""What a page is sent: once of a scene, and of every setting what it shows and what reproduces it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.libraries import pd
from workbench.mechanism import Release
from workbench.option_grammar import release_options
from workbench.privacy import ZCDP, Receipt, compose, guarantee
from workbench.widgets.chart import charts, marker_paths
from workbench.widgets.controls import page_value
from workbench.widgets.scenes import Picture, Scene
from workbench.widgets.setting import Setting
from workbench.wording import stated_at_most

BAND_SEEDS = 20  # releases behind a band
STATED_DELTA = 1e-6  # at which a ρ is stated as an ε as well
SIMULATED = "simulated: the seed replays this noise, so it is never to be published"


def scene_spec(scene: Scene) -> dict[str, Any]:
    """What a page needs to know of a scene, once."""
    return dict(
        name=scene.name,
        title=scene.title,
        words=scene.words,
        noise_note=scene.noise_note,
        controls=[control.to_dict() for control in scene.controls],
        seeds=BAND_SEEDS,
        markers=marker_paths(),
    )


def joined_rows(drawn: Sequence[tuple[Picture, Release | None]]) -> pd.DataFrame:
    """The rows of several pictures."""
    return pd.concat([picture.rows for picture, _ in drawn], ignore_index=True)


def page_view(
    setting: Setting, seed: int, drawn: Sequence[tuple[Picture, Release | None]]
) -> dict[str, Any]:
    """What a page shows of pictures of one setting, by `seed` and those after it.

    Facts and guarantee are the first's.
    """
    picture, release = drawn[0]
    rows = joined_rows(drawn)
    facts = [list(fact) for fact in picture.facts]
    commands = [setting.command(seed, len(drawn)), *picture.commands]
    paid: dict[str, Any] = dict(
        guarantee="0 spent: nothing was looked at", simulated="", ledger=[]
    )
    if release is not None:
        facts = [["released", _size_text(release)], *facts]
        ledger = (*release.ledger, *picture.ledger)
        paid = dict(
            guarantee=_guarantee_text(ledger), simulated=SIMULATED, ledger=_ledger_rows(ledger)
        )
        if options := release_options(release.mechanism):
            commands.append(f"workbench release YOUR.csv … {options}")
    return paid | dict(
        values={c.name: page_value(setting.values[c.name]) for c in setting.scene.controls},
        seed=seed,
        bands=len(drawn) > 1,
        charts=charts(rows, setting.panels(rows)),
        facts=facts,
        code=picture.code or setting.code(seed),
        commands=[command for command in commands if command],
        note="",
        error="",
    )


def _guarantee_text(ledger: Sequence[Receipt]) -> str:
    """What was spent; of a ρ also the (ε, δ) that follows at the δ that is named there."""
    cost = compose(ledger)
    if not isinstance(cost, ZCDP):
        return str(cost)
    epsilon = guarantee(ledger, STATED_DELTA).epsilon
    return f"{cost}: ({stated_at_most(epsilon)}, δ)-DP at δ = {STATED_DELTA:g}"


def _size_text(release: Release) -> str:
    """How much is released; a part of a table's cells also as their share."""
    estimate = release.estimate
    held = len(estimate)
    cells = getattr(estimate.domain, "size", 0)
    unit = getattr(estimate, "contents", "numbers")
    if held >= cells or unit == "queries":
        return f"{held:,} {unit}"
    cells_text = f"{cells:,}" if cells < 1e15 else f"{cells:.3g}"
    return f"{held:,} {unit}, {held / cells:.3g} of a dense table's {cells_text}"


def _ledger_rows(ledger: Iterable[Receipt]) -> list[list[str]]:
    """Name, cost and neighbours of each measurement; those alike in one row."""
    rows = []
    alike = Counter((r.description, r.cost, r.relation) for r in ledger)
    for (name, cost, relation), count in alike.items():
        if count > 1:
            rows.append([f"{count} × {name}", f"{cost}, each", relation])
        else:
            rows.append([name, str(cost), relation])
    return rows
