"""How many records of each user: the score's sensitivity by brute force, the choice's law, its price."""

import numpy as np
import pytest

from tests.agreement import seeded
from tests.reference import contribution_bound as literal
from tests.reference import exponential
from workbench import DP, UNBOUNDED, Bound, Domain, Interactions
from workbench.mechanisms import HPA, LPA, SRA
from workbench.mechanisms import laws as releases
from workbench.mechanisms.chosen import ChosenContributions, rank_scores
from workbench.mechanisms.laws import Subject, differences_in_replay

DOMAIN = Domain(("item", "context"), (5, 3))
B = DP(1.0)
CHOICES = [
    ChosenContributions(SRA(B, 1), (1, 3, 10), 0.5),
    ChosenContributions(HPA(B, 1, 2), (2, 7), 0.5),
    ChosenContributions(LPA(B, 1), (4, 1, 9), 0.5),
]


def interactions(records_per_user):
    """Users with so many records each, of random items."""
    rng = np.random.default_rng(sum(records_per_user))
    users = np.repeat(np.arange(len(records_per_user)), records_per_user)
    items = rng.integers(0, 5, len(users))
    contexts = rng.integers(0, 3, len(users))
    return Interactions.from_codes(DOMAIN, users, items, contexts, UNBOUNDED)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda c: type(c.mechanism).__name__)
def test_a_user_moves_all_scores_one_way_by_no_more_than_is_stated(choice):
    """Over all numbers of records of the user who joins, and over random others; it is attained."""
    rng = np.random.default_rng(0)
    largest = 0
    for _ in range(10):
        others = rng.integers(0, 30, rng.integers(0, 8)).tolist()
        without = choice.scores(interactions(others))
        for records in (*range(1, 25), 1000):
            moved = choice.scores(interactions([*others, records])) - without
            assert (moved <= 0).all() and (-moved <= choice.score_sensitivity).all()
            largest = max(largest, -moved.min())
    assert largest == choice.score_sensitivity


def test_scores_are_dropped_records_and_noise():
    choice = ChosenContributions(SRA(B, 1), (1, 3, 10), 0.5)
    records = [2, 5, 40]
    expected = []
    for count in choice.candidates:
        dropped = sum(min(n, 10) - min(n, count) for n in records)
        alpha = np.exp(-0.5 / count)  # half of ε is for items
        ks = np.arange(1, 3000)
        noise = 5 * (2 * (1 - alpha) / (1 + alpha) * (ks * alpha**ks).sum())
        expected.append(-dropped - round(noise))
    assert choice.scores(interactions(records)).tolist() == expected


def test_the_choice_follows_the_exponential_mechanism():
    """Its frequencies over 600 seeds, within 5 standard deviations."""
    choice = ChosenContributions(SRA(DP(50.0), 1), (1, 3, 10), 2.0)
    data = interactions([12, 1, 2, 2, 4])
    weights = np.exp(2.0 * choice.scores(data) / 9)
    law = weights / weights.sum()
    drawn = [choice(data, seeded(s)).mechanism.l for s in range(600)]
    shares = np.array([drawn.count(count) / 600 for count in choice.candidates])
    assert law.max() < 0.8 and law.min() > 0.01
    assert np.abs(shares - law).max() < 5 * np.sqrt(0.25 / 600)


def test_the_choice_has_its_own_receipt():
    for choice in CHOICES:
        release = choice(interactions([3, 5]), seeded())
        assert release.ledger[0].name == "choice" and release.ledger[0].cost.epsilon == 0.5
        assert choice.budget == DP(1.5) and choice.budget.covers(release.privacy)
        assert getattr(release.mechanism, choice.chosen_field) in choice.candidates


@pytest.mark.slow
@pytest.mark.parametrize("bound", [Bound(), Bound(2, 1)], ids=repr)
def test_neighbours_are_hard_to_tell_apart(bound):
    releases.neighbours_are_alike(Subject(ChosenContributions), bound, runs=1000)


def test_what_cannot_be_chosen_is_refused():
    from workbench.mechanisms import GS

    for mechanism, candidates, epsilon, says in (
        (GS(B, 3), (1, 2), 1.0, "need SRA, HPA or LPA"),
        (SRA(B, 3), (2, 2), 1.0, "two or more different"),
        (SRA(B, 3), (2,), 1.0, "two or more different"),
        (SRA(B, 3), (0, 2), 1.0, "integers >= 1"),
        (SRA(B, 3), (1, 2), 0.0, "epsilon = 0.0"),
    ):
        with pytest.raises(ValueError, match=says):
            ChosenContributions(mechanism, candidates, epsilon)


# By rank

RANKS = [
    ChosenContributions(SRA(B, 1), (1, 3, 10), 0.5, "rank"),
    ChosenContributions(HPA(B, 1, 2), (2, 7), 0.5, "rank"),
    ChosenContributions(LPA(B, 1), (4, 1, 9), 0.5, "rank"),
]
TABLES = [(), (1, 1), (5,) * 6, (1, 2, 3, 4, 9), (2, 40, 40)]


@pytest.mark.parametrize("choice", RANKS, ids=lambda c: type(c.mechanism).__name__)
def test_a_user_moves_ranks_by_one(choice):
    rng = np.random.default_rng(1)
    for _ in range(20):
        others = rng.integers(0, 12, rng.integers(0, 30)).tolist()
        without = choice.scores(interactions(others))
        for records in (1, 2, 3, 4, 7, 10, 11, 1000):
            moved = choice.scores(interactions([*others, records])) - without
            assert np.abs(moved).max() <= choice.score_sensitivity == 1


def test_ranks_are_those_of_the_reference():
    for records in TABLES:
        for target in (0, 1, 3, 7):
            expected = [literal.interval_score(records, t, target) for t in range(1, 12)]
            assert rank_scores(np.array(records), range(1, 12), target).tolist() == expected


def test_the_best_rank_has_the_least_error():
    """20,000 users, and tables of ties, where the score |c(T) − d/ε| is the same for all T above the counts."""
    lognormal = np.rint(np.random.default_rng(0).lognormal(1.5, 1, 20_000)).astype(int).tolist()
    for records, cells in ((lognormal, 100), ([5] * 300, 100), ([1] * 40 + [30] * 40, 20)):
        found = rank_scores(np.array(records), range(1, 101), cells / 1.0)
        best = literal.best(records, cells, 1.0, 100)
        chosen = 1 + int(found.argmax())
        assert found.max() == 0
        assert literal.error(records, chosen, cells, 1.0) == literal.error(
            records, best, cells, 1.0
        )
    tied = [literal.rank_score([5] * 300, bound, 100) for bound in (5, 6, 100)]
    assert tied == [-100] * 3  # however much noise the larger ones have


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_a_choice_by_rank_is_private_for_every_small_table(epsilon):
    """The exact law of the choice, for all tables above and one user more."""
    for records in TABLES:
        one = exponential.probabilities(
            rank_scores(np.array(records), range(1, 12), 2).tolist(), epsilon, 1
        )
        for more in (1, 2, 5, 6, 11, 12, 1000):
            scores = rank_scores(np.array([*records, more]), range(1, 12), 2).tolist()
            other = exponential.probabilities(scores, epsilon, 1)
            assert max(abs(np.log(np.array(one) / other))) <= epsilon * (1 + 1e-12)


def test_choices_by_rank_are_replayed_and_cost_what_they_say():
    others = np.random.default_rng(2).integers(1, 30, 1500).tolist()
    for choice in RANKS:
        for more in (1, 4, 500):
            every = interactions([*others, more])
            old = every.users < len(others)
            columns = every.users[old], every.items[old], every.contexts[old]
            pair = Interactions.from_codes(DOMAIN, *columns, UNBOUNDED), every
            assert differences_in_replay(choice, *pair) == []
        release = choice(interactions([3, 5]), seeded())
        assert choice.budget == DP(1.5) and choice.budget.covers(release.privacy)
        assert eval(repr(choice)) == choice and "rule" not in repr(CHOICES[0])


@pytest.mark.parametrize("epsilon", [0.4, 3.0])  # a factor of 2 shows at the second
def test_the_choice_by_rank_follows_the_exponential_mechanism(epsilon):
    """Its frequencies over 600 seeds, within 5 standard deviations."""
    choice = ChosenContributions(SRA(DP(4.0), 1), (1, 3, 10), epsilon, "rank")
    data = interactions([12, 1, 2, 2, 4])
    law = np.array(exponential.probabilities(choice.scores(data).tolist(), epsilon, 1))
    drawn = [choice(data, seeded(s)).mechanism.l for s in range(600)]
    shares = np.array([drawn.count(count) / 600 for count in choice.candidates])
    assert len(set(law)) > 1 and np.abs(shares - law).max() < 5 * np.sqrt(0.25 / 600)
