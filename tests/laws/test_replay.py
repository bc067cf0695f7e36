"""Record and replay: the law for every mechanism, and mistakes that it must report as what they are."""

import numpy as np
import pytest

from tests.laws.test_laws import In, bases, options
from workbench import DP, Bound, Domain, SparseTable, mechanisms, noise
from workbench.estimates import Histogram
from workbench.estimates.release import Release
from workbench.mechanisms import laws
from workbench.mechanisms.laws import Subject, differences_in_replay
from workbench.mechanisms.protocol import Mechanism
from workbench.noise.law import Law
from workbench.noise.replay import Replay
from workbench.value import value


def subjects():
    """Every mechanism under each kind of budget; in other bases and with other fields where there is time."""
    more = [In(mechanisms.GS, grouping="rowsample"), In(mechanisms.FPA, k=5, once=True)]
    for classes, marks in (
        (mechanisms.ALL + tuple(more), ()),
        ((*bases(), *options()), pytest.mark.slow),
    ):
        for cls in classes:
            for zcdp in (False, True)[: 1 + getattr(cls, "accepts_zcdp", False)]:
                name = f"{cls.__name__}{' of a rho' if zcdp else ''}"
                yield pytest.param(Subject(cls, zcdp), marks=marks, id=name)


@pytest.mark.parametrize("subject", [*subjects()])
def test_a_neighbour_moves_what_draws_read_as_far_as_is_paid_for(subject):
    laws.reads_what_it_pays_for(subject)


# mistakes

DOMAIN = Domain(("x",), (40,))
ONE = SparseTable.from_keys(DOMAIN, [1, 2, 30], [5, 3, 2], Bound(2, 2, 3))
OTHER = SparseTable.from_keys(DOMAIN, [1, 2], [5, 2], Bound(2, 2, 3))


@value
class Faulty(Mechanism):
    """A histogram whose noise is drawn by a function that a test states."""

    budget: DP = DP(1.0)

    def __call__(self, table, rng=None):
        values, receipts = self.measured(table, rng)
        estimate = Histogram(DOMAIN, np.asarray(values, float), Law("geometric", 1.0))
        return Release(estimate, tuple(receipts), self, table.bound)

    def measured(self, table, rng):
        noisy, receipt = noise.geometric(table.dense(), l1=3, epsilon=1.0, rng=rng)
        return noisy, [receipt]


class RaisesForOne(Faulty):
    def measured(self, table, rng):
        if table.total > 8:
            raise RuntimeError("too many")
        return super().measured(table, rng)


class DrawsAsOftenAsThereAreCells(Faulty):
    def measured(self, table, rng):
        measured = [
            noise.geometric(table.dense(), l1=3, epsilon=1.0, rng=rng) for _ in table.keys
        ]
        return measured[0][0], [receipt for _, receipt in measured]


class DrawsForAsManyAsThereAreCells(Faulty):
    def measured(self, table, rng):
        noisy, receipt = noise.geometric(table.counts, l1=3, epsilon=1.0, rng=rng)
        return np.append(noisy, np.zeros(DOMAIN.size - len(noisy))), [receipt]


class DrawsFromNumpy(Faulty):
    def measured(self, table, rng):
        noisy, receipts = super().measured(table, rng)
        return noisy + np.random.default_rng().integers(0, 9, len(noisy)), receipts


class DrawsWithoutSensitivity(Faulty):
    def measured(self, table, rng):
        noisy, receipts = super().measured(table, rng)
        return noisy + rng.laplace(size=len(noisy)), receipts


class HidesOneCell(Faulty):
    def measured(self, table, rng):
        noisy, receipt = noise.geometric(table.dense(), l1=2, epsilon=1.0, rng=rng)
        return noisy, [receipt]


class FollowsTheSize(Faulty):
    def measured(self, table, rng):
        l1 = 3 + table.total
        noisy, receipt = noise.geometric(table.dense(), l1=l1, epsilon=1.0, rng=rng)
        return noisy, [receipt]


class PaysAsThereAreCells(Faulty):
    def measured(self, table, rng):
        noisy, receipt = noise.geometric(table.dense(), l1=3, epsilon=len(table), rng=rng)
        return noisy, [receipt]


class FiltersExactCounts(Faulty):
    def measured(self, table, rng):
        noisy, receipts = super().measured(table, rng)
        return np.where(table.dense() > 0, noisy, 0), receipts


class ChoosesByThreeForOne(Faulty):
    def measured(self, table, rng):
        scores = table.dense()[None] * 1
        chosen, receipt = noise.exponential_mechanism(
            scores, sensitivity=1, epsilon=1.0, rng=rng
        )
        return np.eye(DOMAIN.size)[chosen[0]], [receipt]


class ChoosesOneWay(Faulty):
    def measured(self, table, rng):
        both = np.stack([table.dense()[2], -table.dense()[30]])[None]
        chosen, receipt = noise.exponential_mechanism(
            both, sensitivity=3, epsilon=1.0, monotone=True, rng=rng
        )
        return np.eye(DOMAIN.size)[chosen[0]], [receipt]


MISTAKES = {
    RaisesForOne: "it raises for one neighbour only, RuntimeError: too many",
    DrawsAsOftenAsThereAreCells: "the number of its draws depends on data: 3 measurements of one",
    DrawsForAsManyAsThereAreCells: "how many values get noise depends on data: 3 and 2",
    DrawsFromNumpy: "it draws past its rng: the same draws of the same data give another release",
    DrawsWithoutSensitivity: "it draws by rng.laplace, which states no sensitivity",
    HidesOneCell: "values move by 3, and its noise is for 2",
    FollowsTheSize: "the scale of its noise depends on data",
    PaysAsThereAreCells: "its receipts depend on data",
    FiltersExactCounts: "under the same noise it releases a different estimate",
    ChoosesByThreeForOne: "what it chooses by moves by 2, and is paid for 1",
    ChoosesOneWay: "what it chooses by moves by inf, and is paid for 3",
}


@pytest.mark.parametrize("cls", MISTAKES, ids=lambda cls: cls.__name__)
def test_a_mistake_is_reported_as_what_it_is(cls):
    found = differences_in_replay(cls(), ONE, OTHER)
    assert any(MISTAKES[cls] in words for words in found), found
    assert differences_in_replay(Faulty(), ONE, OTHER) == []


def test_noise_belongs_to_its_cell_whatever_is_drawn_before():
    """The cell that only one table fills has the noise that empty cells have in the other."""
    released = []
    for table in (ONE, OTHER):
        replay = Replay(3)
        keys, values, _ = noise.threshold_sample(
            table.keys, table.counts, [(40, 3, 1.0)], theta=0, rng=replay
        )
        released.append(values - table.dense())
        assert keys.tolist() == list(range(40))
    assert (released[0] == released[1]).all() and len(set(released[0].tolist())) > 5


def test_a_source_that_is_replayed_says_that_it_is_simulated():
    _, receipt = noise.gaussian(np.zeros(3, int), l2_squared=1, rho=0.1, rng=Replay())
    assert receipt.simulated
