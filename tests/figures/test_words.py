"""Words of verdicts come from the rows that were judged: other data, other words."""

import re
from functools import partial

from workbench import DP, Sweep
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import choice, seeds
from workbench.mechanisms import GeometricHistogram, HighPassFilter
from workbench.queries import RandomRanges
from workbench.trials import claims
from workbench.trials.claims import Claim, Printed, Statement, means, paired_ratios
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import value

DATA = {"few": GaussianSparse(m=300), "many": GaussianSparse(m=3000, density=0.3, mean=20)}
PAIR = ("HighPassFilter", "GeometricHistogram")
SIZE = "query_size"


def ratios(rows):
    return paired_ratios(rows.assign(series=rows.mechanism), *PAIR, SIZE)


def one(rows):
    return means(rows.assign(series=rows.mechanism), PAIR[0], SIZE)


def swept(rows, level):
    def at(size, level):
        return claims.check_lower(ratios(rows[rows.query_size <= size]), level)

    return claims.over("size", (1, 10), at, level)


def both(rows, level):
    parts = {
        "lower": partial(claims.check_lower, ratios(rows)),
        "near": partial(claims.check_similar, ratios(rows)),
    }
    return claims.all_of(parts, level)


CHECKS = (
    lambda rows, level: claims.check_lower(ratios(rows), level),
    lambda rows, level: claims.check_similar(ratios(rows), level),
    lambda rows, level: claims.check_printed(one(rows), level, Printed("about 3", 2, 4)),
    lambda rows, level: claims.check_lower(
        claims.steps(rows.assign(series=rows.mechanism), PAIR[0], SIZE), level
    ),
    swept,
    both,
)


@value
class OnEither(Figure):
    """A figure of nobody, whose data may be other data."""

    id = "nobody2020_either"
    claims = tuple(
        Claim(f"x-{i}", "", "It is.", (Statement(f"x-{i}.1", "It is.", check),))
        for i, check in enumerate(CHECKS)
    )
    data: str = choice("few", tuple(DATA), "the table", kind="unprinted")
    seeds: int = seeds(10)

    def sweeps(self):
        """Two mechanisms."""
        mechanisms = [HighPassFilter(DP(1.0), 20), GeometricHistogram(DP(1.0))]
        metrics = [MeanAbsoluteError(RandomRanges(size, 20)) for size in (1, 10)]
        return {self.data: Sweep([DATA[self.data]], mechanisms, metrics, self.seeds)}


def sentences(verdicts):
    """What verdicts say that has a number in it, without how many points there are."""
    texts = [f"{v.measured}; {v.why}" for v in verdicts]
    parts = [part for text in texts for part in re.split(r"; | \(|\)", text)]
    numbers = {part for part in parts if re.search(r"\d", part)}
    counts = re.compile(r".* at \d+ of \d+ points, surely at \d+|.* for size = [\d… ]+")
    return {part for part in numbers if not counts.fullmatch(part)}


def test_no_sentence_about_one_dataset_is_said_of_another(tmp_path):
    said = {name: sentences(OnEither(data=name).run(tmp_path)[1]) for name in DATA}
    assert all(len(words) > 5 for words in said.values())
    assert not said["few"] & said["many"]


def test_the_same_data_has_the_same_words(tmp_path):
    rows, verdicts = OnEither().run(tmp_path)
    assert OnEither().judge(rows) == verdicts and len(verdicts) == len(CHECKS)
