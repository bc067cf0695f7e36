"""Advice on a bound: it follows from beliefs alone, and holds on real tables that it has not seen."""

import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import run_command
from workbench import DP, Bound, Domain, SparseTable
from workbench.mechanisms import GeometricHistogram
from workbench.owner.advice import advise_bounds
from workbench.owner.advice.bounds import recommended

DATA = Path(os.environ.get("WORKBENCH_DATA", "")) if "WORKBENCH_DATA" in os.environ else None
SPACE = Domain(("district", "age", "sex"), (81, 4, 2))
GRID = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)


def retail():
    """Purchases by month, hour and country: customers, and the codes of each row."""
    frame = pd.read_csv(DATA / "online_retail" / "online_retail.csv.xz", dtype=str)
    columns = {name.lower(): name for name in frame}
    frame = frame[frame[columns["customerid"]].notna()]
    when = pd.to_datetime(frame[columns["invoicedate"]])
    codes = [
        when.dt.month - 1,
        when.dt.hour,
        frame[columns["country"]].astype("category").cat.codes,
    ]
    return frame[columns["customerid"]], codes, (12, 24, int(max(codes[2])) + 1)


def gowalla():
    """Check-ins by squares of latitude and longitude and by whether a place is popular."""
    visits = pd.concat(
        pd.read_csv(
            DATA / "gowalla" / f"Gowalla_{part}.txt.gz", sep="\t", names=["user", "place", "n"]
        )
        for part in ("train", "tune", "test")
    )
    places = pd.read_csv(
        DATA / "gowalla" / "Gowalla_poi_coos.txt.gz", sep="\t", names=["place", "lat", "lon"]
    )
    frame = visits.merge(places, on="place")
    frame = frame.loc[frame.index.repeat(frame.n)]
    codes = [pd.cut(frame.lat, 20, labels=False), pd.cut(frame.lon, 20, labels=False)]
    return frame.user, codes, (20, 20)


def msnbc():
    """Page visits by category and step: a user is a session of at most 16 visits."""
    wide = pd.read_csv(DATA / "msnbc" / "msnbc.zip", nrows=200_000).to_numpy()
    user, step = np.nonzero(wide)
    codes = [pd.Series(wide[user, step] - 1), pd.Series(step)]
    return pd.Series(user), codes, (17, 16)


def measured(user, codes, shape, bound, epsilon):
    """The root mean square error of pairs at a bound: what truncation loses, and noise."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": user.to_numpy(), "order": rng.random(len(user))})
    lost = (frame.groupby("user").order.rank(method="first") > bound).to_numpy()
    ratio = np.exp(-epsilon / bound)
    noise = 2 * ratio / (1 - ratio) ** 2
    squares, cells = 0.0, 0
    for a, b in combinations(range(len(shape)), 2):
        pair = np.asarray(codes[a])[lost] * shape[b] + np.asarray(codes[b])[lost]
        missing = np.bincount(pair.astype(int), minlength=shape[a] * shape[b])
        squares += float(missing @ missing) + np.prod(shape) * noise
        cells += len(missing)
    return np.sqrt(squares / cells)


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="WORKBENCH_DATA is not set")
@pytest.mark.parametrize("read", [retail, gowalla, msnbc])
def test_the_recommended_bound_is_nearly_the_best_on_real_tables(read, record_property):
    user, codes, shape = read()
    numbers = user.value_counts()
    space = Domain(tuple("abc"[: len(shape)]), shape)
    errors = {bound: measured(user, codes, shape, bound, 1.0) for bound in GRID}
    least = min(errors.values())
    for mean in (0.75, 1.0, 1.25):
        for skew in (0.5, 1.0, 1.5):
            belief = dict(users=len(numbers), per_user=max(1, mean * numbers.mean()))
            belief["per_user_spread"] = mean * numbers.std()
            belief["per_user_most"] = 16 if read is msnbc else None
            advice = advise_bounds(space, 1.0, **belief, bounds=GRID, popularity=skew)
            ratio = errors[advice.bound] / least
            record_property(
                f"{read.__name__}, mean × {mean}, skew {skew}", f"{advice.bound}: {ratio:.2f}"
            )
            if mean == skew == 1:
                assert ratio <= 1.5, (advice.bound, errors)


def test_errors_are_truncation_and_noise_of_the_bound():
    advice = advise_bounds(SPACE, 1.0, 1_000, 3, 3, bounds=[1, 4, 1_000])
    one, four, all_of_them = advice.errors
    assert one.lost > four.lost > all_of_them.lost == 0 == all_of_them.truncation
    assert one.noise < four.noise < all_of_them.noise
    ratio = np.exp(-1 / 4)
    cells = SPACE.size * 3 / (81 * 4 + 81 * 2 + 4 * 2)
    assert four.noise == pytest.approx(np.sqrt(cells * 2 * ratio) / (1 - ratio))
    assert four.error == pytest.approx(np.hypot(four.truncation, four.noise))


def test_an_earlier_release_says_how_full_labels_are(tmp_path):
    space = Domain(("district", "sex"), (81, 2), (range(81), ("F", "M")))
    counts = np.repeat([1000, 1], [1, 161])  # nearly all are in one cell
    table = SparseTable.from_keys(space, np.arange(162), counts, Bound())
    earlier = GeometricHistogram(DP(1))(table, np.random.default_rng(0))
    even = dict(bounds=[2], popularity=0.0)
    (flat,) = advise_bounds(space, 1.0, 500, 3, 3, **even).errors
    (full,) = advise_bounds(space, 1.0, 500, 3, 3, **even, earlier=earlier).errors
    assert full.truncation > 3 * flat.truncation and full.noise == flat.noise
    (unlike,) = advise_bounds(SPACE, 1.0, 500, 3, 3, **even, earlier=earlier).errors
    (alone,) = advise_bounds(SPACE, 1.0, 500, 3, 3, **even).errors
    assert unlike.truncation == alone.truncation
    (tmp_path / "d.json").write_text(json.dumps(space.to_dict()))
    file = earlier.save(tmp_path / "r.parquet", simulated=True)
    asked = f"advise --bounds 1,2 --domain {tmp_path}/d.json --epsilon 1 --users 500"
    said = run_command(f"{asked} --from-release {file}").output
    mean = earlier.answer({})[0] / 500
    stated = run_command(f"{asked} --from-release {file} --per-user {mean}").output
    assert said == stated != run_command(f"{asked} --per-user {mean}").output
    cells = f"advise --task cells --domain {tmp_path}/d.json --epsilon 1 --from-release {file}"
    assert "does not apply to cells" in run_command(cells, 2).output


def test_people_with_one_record_need_a_bound_of_one():
    assert advise_bounds(SPACE, 1.0, 5_000, 1, 0, bounds=[1, 2, 5]).bound == 1


def test_the_larger_of_two_bounds_that_are_as_good_is_advised():
    advice = advise_bounds(SPACE, 1.0, 60_000, 1.8, 1.8)
    errors = {each.bound: each.error for each in advice.errors}
    best = recommended(advice.errors)
    assert errors[best] <= 1.2 * min(errors.values())
    assert all(errors[b] > 1.2 * min(errors.values()) for b in errors if b > best)
    assert f"at most {best} records" in advice.notes[0]


def test_the_largest_of_stated_bounds_is_not_called_the_best():
    note = advise_bounds(SPACE, 1.0, 100_000, 9, 9, bounds=[1, 2]).notes[0]
    assert "at most 2 records" in note and "Try larger bounds too" in note


@pytest.mark.parametrize(
    "change, words",
    [
        ({"epsilon": 0.0}, "epsilon = 0.0"),
        ({"users": 0}, "users = 0"),
        ({"per_user": 0.5}, "per_user = 0.5"),
        ({"per_user_spread": -1.0}, "per_user_spread = -1.0"),
        ({"per_user": float("nan")}, "per_user = nan"),
        ({"per_user_most": 1}, "contradicts a mean of 2.0"),
        ({"bounds": [0]}, "bounds = [0]"),
        ({"bounds": [2.5]}, "bounds = [2.5]"),
    ],
)
def test_impossible_beliefs_are_refused(change, words):
    with pytest.raises(ValueError) as refused:
        advise_bounds(
            **{"domain": SPACE, "epsilon": 1.0, "users": 10, "per_user": 2.0} | change
        )
    assert words in str(refused.value)


def test_wide_marginals_are_refused_with_what_works():
    with pytest.raises(ValueError, match="--order 1"):
        advise_bounds(Domain(("a", "b"), (10**4, 10**4)), 1.0, 100, 2.0)


def test_the_command_prints_the_table_and_a_release_with_the_bound(tmp_path):
    (tmp_path / "d.json").write_text('{"district": 81, "age": 4, "sex": ["F", "M"]}')
    asked = f"advise --bounds 1,3,10,20 --domain {tmp_path}/d.json --epsilon 1"
    said = run_command(f"{asked} --users 60000 --per-user 1.8").output
    assert "10 *" in said and "--bound 10,10,10 --user COLUMN" in said
    assert "--users 60000" in run_command(asked, 2).output


def test_the_last_line_says_again_what_was_given(tmp_path):
    (tmp_path / "d.json").write_text('{"sex": ["F", "M"]}')
    asked = (
        f"advise --bounds 1,3 --domain {tmp_path}/d.json --epsilon 1 --users 60 --per-user 2"
    )
    given = "--user who --unit 'a rider' --budget b.sqlite --publish out"
    line = run_command(f"{asked} {given}").output.strip().splitlines()[-1]
    assert line.endswith(f"{given} --epsilon 1.0 --mechanism GeometricHistogram")
