"""Metrics of points: the earth mover's distance over scales, and how far people commute."""

import numpy as np
import pytest

from tests.reference import earth_mover as reference
from workbench.data import PUBLIC, Bound, Records
from workbench.estimates import Leaves
from workbench.spaces import Prefixes, Quadtree
from workbench.trials.metrics import CommuteDistances, EarthMover, great_circle


def points(n, dims, seed, clusters=3):
    rng = np.random.default_rng(seed)
    middle = rng.random((clusters, dims))[rng.integers(clusters, size=n)]
    return np.clip(middle + 0.05 * rng.standard_normal((n, dims)), 0, 1)


@pytest.mark.parametrize("dims, depth, asked", [(1, 8, 8), (2, 6, 4), (4, 5, 5), (4, 20, 19)])
def test_levels_are_those_of_the_literal_procedure(dims, depth, asked):
    tree = Quadtree(dims, depth)
    first, second = points(60, dims, 1), points(50, dims, 2)
    both = (Records.from_values(tree, x, PUBLIC) for x in (first, second))
    found = EarthMover(asked).levels(*both)
    assert found == pytest.approx(reference.by_level(first, second, asked))
    assert found.shape == (asked + 1,)


def test_counts_are_copies():
    tree, at = Quadtree(2, 5), points(20, 2, 3)
    counts = np.arange(20) % 4
    held = Records.from_values(tree, at, Bound(), counts=counts, truth_public=True)
    other = points(30, 2, 4)
    found = EarthMover(5).levels(held, Records.from_values(tree, other, PUBLIC))
    copies = np.repeat(at, counts, axis=0)
    assert found == pytest.approx(reference.by_level(copies, other, 5))


def test_a_box_counts_as_a_unit_cube():
    box = Quadtree(2, 6, (40.0, -72.0), (42.0, -71.0))
    first, second = points(40, 2, 5), points(40, 2, 6)
    scaled = (Records.from_values(box, (40, -72) + x * (2, 1), PUBLIC) for x in (first, second))
    assert EarthMover(6)(*scaled) == pytest.approx(reference.surrogate(first, second, 6))


@pytest.mark.parametrize("seed", range(5))
def test_with_the_last_diameter_it_bounds_the_exact_distance(seed):
    first, second = (np.random.default_rng([seed, i]).beta(1 + i, 2, (80, 1)) for i in (0, 1))
    tree = Quadtree(1, 10)
    for depth in (0, 3, 10):
        found = EarthMover(depth)(
            *(Records.from_values(tree, x, PUBLIC) for x in (first, second))
        )
        exact = reference.exact_line(first[:, 0], second[:, 0])
        assert exact <= found + 80 * reference.diameter(depth, 1)
    assert found <= 40 * exact, "and is not far from it"


def test_in_four_dimensions_too():
    first, second = points(40, 4, 7), points(40, 4, 8)
    found = EarthMover(8)(
        *(Records.from_values(Quadtree(4, 8), x, PUBLIC) for x in (first, second))
    )
    assert reference.exact(first, second) <= found + 40 * reference.diameter(8, 4)


def test_nothing_apart_and_everything_apart():
    tree = Quadtree(2, 3)
    held, none = (
        Records.from_values(tree, points(9, 2, 0), PUBLIC),
        Records.from_values(tree, np.empty((0, 2)), PUBLIC),
    )
    assert EarthMover(3)(held, held) == 0 and EarthMover(3)(none, none) == 0
    whole = 9 * np.sqrt(2) * (1 + 1 / 2 + 1 / 4 + 1 / 8)
    assert EarthMover(3)(held, none) == EarthMover(3)(none, held) == pytest.approx(whole)


def leaves(tree):
    """A quarter of the cube with 30 records, a cell of another one with 5, and one below zero."""
    low, high = map(np.array, tree.box)
    at = low + (high - low) * np.outer([0.1, 0.6, 0.9], np.ones(tree.dims))
    keys = tree.encode(at)[0]
    keys = keys.copy()
    keys[0, 0] = 0
    return Leaves(tree, np.array([1, tree.depth, tree.depth]), keys, np.array([30, 5, -4]))


def test_an_estimate_stands_for_its_synthetic_records():
    tree = Quadtree(2, 6)
    truth, held = (
        Records.from_values(tree, points(40, 2, 9), Bound(), truth_public=True),
        leaves(tree),
    )
    for seed in (0, 1):
        made = held.synthetic(seed)
        assert EarthMover(6, seed)(truth, held) == EarthMover(6)(truth, made)


def test_what_it_refuses():
    tree = Quadtree(2, 4)
    private, public = (Records.from_values(tree, points(5, 2, 0), b) for b in (Bound(), PUBLIC))
    for pair in ((private, public), (public, private)):
        with pytest.raises(ValueError, match="truth_public"):
            EarthMover(4)(*pair)
    with pytest.raises(ValueError, match=r"EarthMover.depth = 5 .* has no more levels"):
        EarthMover(5)(public, public)
    other = Records.from_values(Quadtree(2, 5), points(5, 2, 0), PUBLIC)
    with pytest.raises(ValueError, match="one Quadtree"):
        EarthMover(4)(public, other)
    strings = Records.from_values(Prefixes("ab", 3), ["a"], PUBLIC)
    with pytest.raises(ValueError, match="one Quadtree"):
        EarthMover(2)(strings, strings)
    for wrong in (-1, 1.5, 53):
        with pytest.raises(ValueError, match="EarthMover.depth"):
            EarthMover(wrong)
    assert repr(EarthMover(4)) == "EarthMover(depth=4)" and hash(EarthMover(4))


# --- commutes

BOX = (41.0, -72.0, 41.0, -72.0), (42.0, -71.0, 42.0, -71.0)
MAP = Quadtree(4, 16, *BOX)


def commutes(n, seed):
    low, high = map(np.array, BOX)
    return low + (high - low) * points(n, 4, seed)


def test_distances_are_those_of_the_globe():
    a = np.random.default_rng(0).uniform([-90, -180], [90, 180], (50, 2))
    b = np.random.default_rng(1).uniform([-90, -180], [90, 180], (50, 2))
    slow = [reference.great_circle(*x, *y) for x, y in zip(a, b, strict=True)]
    assert great_circle(*a.T, *b.T) == pytest.approx(slow)
    assert great_circle(0, 0, 0, 180) == pytest.approx(np.pi * 6371.0088)
    assert great_circle(41.82, -71.41, 41.82, -71.41) == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_that_of_the_literal_procedure(seed):
    first, second = commutes(300, seed), commutes(200, seed + 50)
    place, radius = first[0, :2], 60.0
    metric = CommuteDistances(*place.tolist(), radius)
    both = [Records.from_values(MAP, x, PUBLIC) for x in (first, second)]
    slow = []
    for some in (first, second):
        near = [x for x in some if reference.great_circle(*x[:2], *place) <= radius]
        slow.append(reference.commute_distances(near))
    assert all(len(x) > 10 for x in slow)
    assert metric(*both) == pytest.approx(reference.kolmogorov(*slow), abs=1e-9)
    for records, distances in zip(both, slow, strict=True):
        at = np.array([0, 5.5, 20.5, 300])
        ours = metric.cdf(records, at)
        assert ours == pytest.approx([reference.cdf(distances, x) for x in at])
        assert len(metric.commutes(records)[0]) == len(distances)


def test_equal_records_count_as_often_as_they_are():
    at, counts = commutes(20, 1), np.arange(20) + 1
    held = Records.from_values(MAP, at, Bound(), counts=counts, truth_public=True)
    copies = Records.from_values(MAP, np.repeat(at, counts, axis=0), PUBLIC)
    metric = CommuteDistances(*at[0, :2].tolist(), 80.0)
    assert metric(held, copies) == 0
    assert metric.commutes(held)[1].sum() == metric.commutes(copies)[1].sum()


def test_an_estimate_is_asked_by_its_points():
    held = leaves(Quadtree(4, 16, *BOX))
    truth = Records.from_values(MAP, commutes(100, 2), PUBLIC)
    for seed in (0, 1, 0):
        metric = CommuteDistances(41.5, -71.5, 200.0, seed)
        found, counts = metric.commutes(held)
        assert len(found) == counts.sum() == 35 and (found == held.points(seed)).all()
        assert 0 < metric(truth, held) <= 1


def test_where_nobody_lives_there_is_no_number():
    held = Records.from_values(MAP, commutes(20, 3), PUBLIC)
    metric = CommuteDistances(60.0, 10.0, 5.0)
    assert np.isnan(metric(held, held)) and np.isnan(metric.cdf(held, np.array([1.0]))).all()


def test_what_commutes_refuse():
    metric = CommuteDistances(41.5, -71.5, 5.0)
    private = Records.from_values(MAP, commutes(5, 0), Bound())
    public = Records.from_values(MAP, commutes(5, 0), PUBLIC)
    asks = (
        lambda: metric(private, public),
        lambda: metric(public, private),
        lambda: metric.cdf(private, np.zeros(1)),
        lambda: metric.commutes(private),
    )
    for ask in asks:
        with pytest.raises(ValueError, match="truth_public"):
            ask()
    flat = Records.from_values(Quadtree(2, 4), points(5, 2, 0), PUBLIC)
    with pytest.raises(ValueError, match="4 dimensions"):
        metric(flat, flat)
    for field, wrong in (("latitude", 91.0), ("longitude", -181.0), ("radius", 0.0)):
        fields = dict(latitude=0.0, longitude=0.0, radius=1.0) | {field: wrong}
        with pytest.raises(ValueError, match=f"CommuteDistances.{field}"):
            CommuteDistances(**fields)
    assert repr(metric) == "CommuteDistances(latitude=41.5, longitude=-71.5, radius=5.0)"
