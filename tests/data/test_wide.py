"""Tables over more cells than can be numbered: queries about some attributes, and nothing else."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from workbench import (
    DP,
    ZCDP,
    Bound,
    Domain,
    Marginals,
    NamedMarginals,
    Session,
    WideTable,
    data,
    queries,
)
from workbench.estimates.release import Release
from workbench.mechanisms import SRA, GaussianQueries, GeometricHistogram, LaplaceQueries
from workbench.owner.advice import Beliefs
from workbench.owner.scale import Rows
from workbench.spaces import Attributes

SHAPE = (5, 4, 1000, 7, *(9,) * 40)
NAMES = tuple(f"a{i}" for i in range(44))
DOMAIN = Domain(NAMES, SHAPE)
ROWS = 3000
PAIRS = NamedMarginals((("a0", "a1"), ("a3", "a23")))


def some_codes(seed=0):
    codes = np.random.default_rng(seed).integers(0, SHAPE, (ROWS, 44))
    codes[:, 4:40] = codes[:, :1]  # so that cells repeat
    codes[::2] = codes[:1]
    return codes


def counted(codes, columns, weights=None):
    """Rows of each combination of codes, one row after another."""
    counts = Counter()
    for row, n in zip(codes, weights if weights is not None else [1] * len(codes), strict=True):
        counts[tuple(row[list(columns)].tolist())] += int(n)
    return counts


@pytest.mark.parametrize("weighted", [False, True])
def test_cells_and_marginals_are_those_of_its_rows(weighted):
    codes = some_codes()
    weights = np.random.default_rng(1).integers(0, 4, ROWS) if weighted else None
    table = WideTable.from_codes(DOMAIN, codes, Bound(), counts=weights)
    cells = {
        tuple(cell): n
        for cell, n in zip(DOMAIN.codes(table.words).tolist(), table.counts, strict=True)
    }
    assert cells == +counted(codes, range(44), weights) and len(DOMAIN.parts) == 3
    exact = table.answer(PAIRS)
    for first, names in ((0, (0, 1)), (20, (3, 23))):
        reference = counted(codes, names, weights)
        shape = [SHAPE[k] for k in names]
        dense = [reference[cell] for cell in np.ndindex(*shape)]
        assert exact[first : first + len(dense)].tolist() == dense
        margin = table.project([f"a{k}" for k in names])
        assert margin.dense().ravel().tolist() == dense and margin.bound == Bound()
    assert table.project([f"a{k}" for k in range(4)]).total == table.total
    assert isinstance(table.project(NAMES[1:]), WideTable)


def test_rows_of_a_frame_and_of_a_file_are_read_alike(tmp_path):
    codes = some_codes()
    frame = pd.DataFrame(codes, columns=NAMES)
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = WideTable.from_codes(DOMAIN, codes, Bound())
    for source in (frame, tmp_path / "x.csv"):
        read = WideTable.read(source, DOMAIN, Bound())
        assert np.array_equal(read.words, table.words)
        assert np.array_equal(read.counts, table.counts)
    frame["who"] = np.arange(ROWS) // 3
    people = WideTable.read(frame, DOMAIN, Bound(2, 1), user="who", key=bytes(32))
    codes_of = WideTable.from_codes(DOMAIN, codes, Bound(2, 1), users=frame.who, key=bytes(32))
    assert np.array_equal(people.words, codes_of.words) and people.bound.status == "enforced"


def test_what_stays_of_a_user_depends_on_nobody_else():
    codes, users = some_codes(), np.random.default_rng(3).integers(0, 300, ROWS)
    how = {"bound": Bound(2, 1), "key": bytes(range(32))}
    table = WideTable.from_codes(DOMAIN, codes, users=users, **how)
    for user in range(0, 300, 30):
        own = users == user
        alone = WideTable.from_codes(DOMAIN, codes[own], users=users[own], **how)
        others = WideTable.from_codes(DOMAIN, codes[~own], users=users[~own], **how)
        kept = counted(DOMAIN.codes(table.words), range(44), table.counts)
        kept.subtract(counted(DOMAIN.codes(others.words), range(44), others.counts))
        assert +kept == counted(DOMAIN.codes(alone.words), range(44), alone.counts)
        assert alone.total <= 2 and not -kept


@pytest.mark.parametrize(
    "mechanism", [LaplaceQueries(DP(1e6), PAIRS), GaussianQueries(ZCDP(1e9), PAIRS)]
)
def test_queries_about_some_attributes_are_released_and_saved(mechanism, tmp_path):
    table = WideTable.from_codes(DOMAIN, some_codes(), Bound(2, 1))
    release = mechanism(table, np.random.default_rng(0))
    assert np.allclose(release.answer(PAIRS), table.answer(PAIRS), atol=1)
    release.save(tmp_path / "x.parquet", simulated=True)
    assert np.array_equal(
        Release.load(tmp_path / "x.parquet").answer(PAIRS), release.answer(PAIRS)
    )


def test_a_session_asks_recalls_plans_and_chooses(tmp_path):
    table = WideTable.from_codes(Domain(NAMES, (9,) * 44), some_codes() % 9, Bound())
    with Session.open(tmp_path / "s", table, DP(9.0), total=ROWS) as session:
        session.ask(Marginals(1), 2.0)
        session.ask(PAIRS, 4.0)
        plan = session.plan(PAIRS, 1.0, by="data", epsilon=0.5)
        session.ask(plan.attrs["questions"][0], 0.5, strategy="optimised")
        with pytest.raises(ValueError, match="can be numbered"):
            session.bank.synthesize(10)
    recalled = session.bank.recall(PAIRS)
    assert np.abs(recalled.values - table.answer(PAIRS)).max() <= 5 * recalled.errors.max()


def test_whatever_needs_all_cells_says_what_works(tmp_path):
    table = WideTable.from_codes(DOMAIN, some_codes(), Bound())
    frame = pd.DataFrame(some_codes(), columns=NAMES)
    path = tmp_path / "x.csv"
    frame.to_csv(path, index=False)
    for needs in (
        lambda: GeometricHistogram(DP(1.0))(table),
        lambda: table.keys,
        lambda: DOMAIN.keys(some_codes()),
        lambda: data.SparseTable.read(frame, DOMAIN, Bound()),
        lambda: data.SparseTable.from_keys(DOMAIN, [1], [1], Bound()),
        lambda: Rows.read(path, DOMAIN, Bound()),
        lambda: Beliefs(DOMAIN, 1000),
        lambda: Attributes(DOMAIN),
        lambda: queries.Haar().on(DOMAIN),
        *(
            lambda asked=asked: table.answer(asked)
            for asked in (
                queries.Ranges([0], [5]),
                queries.RandomRanges(3),
                queries.RandomSubsets(3),
                queries.Subsets.of([[1, 2]]),
            )
        ),
    ):
        with pytest.raises(ValueError, match="can be numbered. Choose some of its attributes"):
            needs()
    with pytest.raises(ValueError, match="SRA takes Interactions, not WideTable"):
        SRA(DP(1.0), l=1)(table)
    with pytest.raises(ValueError, match="not wide: need a SparseTable"):
        WideTable.from_codes(Domain(("x",), (4,)), [[1]], Bound())
    with pytest.raises(ValueError, match="a0 has code 5 in row 0"):
        WideTable.from_codes(DOMAIN, [[5] * 44], Bound())
