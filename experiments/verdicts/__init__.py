"""What paper-profile runs found, a CSV file a paper, committed; and the page that counts them.

After `workbench reproduce --profile paper`:  `python -m experiments.verdicts cormode2012`
"""

from __future__ import annotations

import re
from pathlib import Path

from workbench import figures
from workbench.compiled import pd
from workbench.trials import claims

RESULTS = Path(__file__).parents[1] / "results"
PAGE = Path(__file__).parents[2] / "docs" / "verdicts.md"
COLUMNS = "id claim figure datasets outcome mark says page measured why by_value profile commit"
PAPER_LINE = re.compile(r"^\| \[(\w+)\]\(\.\./notebooks/\w+/index\.ipynb\) \|.*$", re.M)
README = PAGE.parents[1] / "README.md"
README_LINE = re.compile(
    r"^(\| \[(\w+)\]\(notebooks/\w+/index\.ipynb\) \| )\d+(: [^|]+ \| )\d+(: [^|]+ \| )\d+(: .*)$",
    re.M,
)
FIGURE_LINE = re.compile(
    r"^(\| \[((\w+?\d{4})_\w+)\]\(\.\./notebooks/.*?\.ipynb\) \| [^|]+ \|).*$", re.M
)


def collect(paper: str, results: Path | str = RESULTS, profile: str = "paper") -> pd.DataFrame:
    """The verdicts of all finished figures of a paper, sorted by claim."""
    frames = []
    for manifest in sorted(Path(results).glob(f"{profile}/{paper}_*/manifest.json")):
        figure = figures.load(manifest.parent)
        columns = {name: figure.manifest[name] for name in ("figure", "profile", "commit")}
        columns |= {"datasets": "; ".join(figure.manifest["datasets"])}
        frames.append(figure.verdicts.assign(**columns))
    if not frames:
        raise FileNotFoundError(
            f"{results} holds no {profile} figures of {paper}; run: "
            f"workbench reproduce --profile {profile}"
        )
    return pd.concat(frames)[COLUMNS.split()].sort_values(["id", "figure"], ignore_index=True)


def write(paper: str, results: Path | str = RESULTS, into: Path | None = None) -> Path:
    """Write `<paper>.csv`, beside this file unless told otherwise; returns its path.

    Figures that `results` lacks keep the verdicts that are committed.
    """
    path = (into or Path(__file__).parent) / f"{paper}.csv"
    verdicts = collect(paper, results)
    if path.exists():
        before = committed(paper)
        others = before[~before.figure.isin(verdicts.figure)]
        both = pd.concat([verdicts, others])
        verdicts = both.sort_values(["id", "figure"], ignore_index=True)
    figures.write_atomically(
        path, lambda draft: verdicts.to_csv(draft, index=False, lineterminator="\n")
    )
    return path


def committed(paper: str) -> pd.DataFrame:
    """The verdicts of a paper that are committed, as text."""
    path = Path(__file__).parent / f"{paper}.csv"
    verdicts = pd.read_csv(path, dtype=str, keep_default_na=False)
    return verdicts.reindex(columns=COLUMNS.split(), fill_value="")


def counts(verdicts: pd.DataFrame) -> dict[str, int]:
    """How many statements ended how, those that follow from the definition apart."""
    hollow = verdicts.mark == claims.BY_DEFINITION
    judged = verdicts[~hollow].outcome.value_counts()
    told = [outcome for outcome in claims.OUTCOMES if outcome != claims.NOT_JUDGED]
    numbers = {outcome: int(judged.get(outcome, 0)) for outcome in told}
    return numbers | {claims.BY_DEFINITION: int(hollow.sum())}


def with_counts(text: str) -> str:
    """The page with the counts of the committed verdicts, by paper and by figure."""

    def paper_line(line: re.Match) -> str:
        name = line[1]
        numbers = counts(committed(name)).values()
        cells = [
            f"[{name}](../notebooks/{name}/index.ipynb)",
            str(sum(numbers)),
            *map(str, numbers),
        ]
        return f"| {' | '.join(cells)} |"

    def figure_line(line: re.Match) -> str:
        verdicts = committed(line[3])
        numbers = counts(verdicts[verdicts.figure == line[2]])
        found = " ".join(f"{claims.TICKS[end]} {n}" for end, n in numbers.items() if n)
        return f"{line[1]} {found} |"

    return FIGURE_LINE.sub(figure_line, PAPER_LINE.sub(paper_line, text))


def with_sums(text: str) -> str:
    """The README with how many statements of each paper hold, do not everywhere, and are not known."""

    def line(found: re.Match) -> str:
        numbers = counts(committed(found[2]))
        kinds = (
            (claims.HOLDS,),
            (claims.DIFFERS, claims.DEPENDS),
            (claims.UNDECIDED, claims.UNTESTABLE),
        )
        words = found.groups()
        sums = [sum(numbers[outcome] for outcome in kind) for kind in kinds]
        return words[0] + "".join(f"{n}{told}" for n, told in zip(sums, words[2:], strict=True))

    return README_LINE.sub(line, text)


def contradictions(quick: figures.SavedFigure) -> list[str]:
    """The statements of a quick run that say other than the committed paper run of the figure.

    A quick run agrees or is undecided. Only runs on data of the same classes are compared.
    """
    id = quick.manifest["id"]
    paper = committed(id.partition("_")[0])
    paper = paper[(paper.figure == id) & (paper.claim != "")]
    both = quick.verdicts.merge(paper, on="id", suffixes=("", "_of_paper"))
    against = []
    for v in both.itertuples():
        same = _classes(v.datasets) == _classes("; ".join(quick.manifest["datasets"]))
        if same and v.outcome not in (claims.UNDECIDED, claims.NOT_JUDGED, v.outcome_of_paper):
            told = f"{v.outcome} ({v.measured}), {v.outcome_of_paper} ({v.measured_of_paper})"
            against.append(f"{v.id}, quick and paper: {told}")
    return against


def _classes(datasets: str) -> set[str]:
    """The classes that the configurations of datasets name."""
    return set(re.findall(r"\b(\w+)\(", datasets))
