"""Prices in files: of both kinds, with and without structure, and as older versions wrote them."""

import json

import pytest

from workbench import DP, ZCDP, Bound, Domain, Dyadic, Release, SparseTable, compose
from workbench.mechanisms import GaussianHistogram, GeometricHistogram
from workbench.privacy import rho_above

TABLE = SparseTable.from_keys(Domain(("key",), (64,)), [3, 40], [20, 9], Bound())


@pytest.fixture
def saved(tmp_path):
    """A release in CSV, and what changes the record that stands beside it."""

    def save(mechanism, change=None):
        path = mechanism(TABLE).save(tmp_path / "x.csv", force=True)
        beside = tmp_path / "x.csv.json"
        record = json.loads(beside.read_text())
        if change is not None:
            change(record["ledger"][0])
            beside.write_text(json.dumps(record))
        return path, record

    return save


def test_a_price_in_rho_is_loaded_to_the_last_bit(saved):
    release = GaussianHistogram(ZCDP(0.1))
    path, record = saved(release)
    assert record["guarantee"] == "0.1-zCDP"
    assert record["ledger"][0]["cost"] == {"rho": 0.1, "delta": 0.0}
    loaded = Release.load(path)
    assert loaded.privacy == ZCDP(0.1) and loaded.at(1e-9) == ZCDP(0.1).at(1e-9)


def test_the_rho_of_a_structure_is_kept(saved):
    path, record = saved(GeometricHistogram(DP(0.5), transform=Dyadic()))
    (receipt,) = Release.load(path).ledger
    assert receipt.rho == record["ledger"][0]["rho"] < rho_above(0.5) / 6
    assert receipt.cost == DP(0.5)


def test_an_old_file_counts_the_rho_of_its_epsilon(saved):
    path, _ = saved(GeometricHistogram(DP(0.5), transform=Dyadic()), lambda r: r.pop("rho"))
    old = Release.load(path)
    (receipt,) = old.ledger
    assert receipt.rho is None and old.privacy == DP(0.5)
    new = GaussianHistogram(ZCDP(0.1))(TABLE)
    assert compose([*old.ledger, *new.ledger]).rho == pytest.approx(0.1 + rho_above(0.5))


@pytest.mark.parametrize("rho", [0, -1.0, float("nan"), float("inf"), "0.1", True, [], 10**400])
def test_a_rho_that_is_none_is_refused(saved, rho):
    for change in (
        lambda receipt: receipt.update(rho=rho),
        lambda receipt: receipt.update(cost={"rho": rho, "delta": 0.0}),
    ):
        path, _ = saved(GeometricHistogram(DP(0.5)), change)
        with pytest.raises(ValueError, match=r"x\.csv"):
            Release.load(path)


def test_a_strange_file_cannot_claim_less_than_nothing(saved):
    """A structure that claims more than its ε is charged as the ε."""
    path, _ = saved(GeometricHistogram(DP(0.5)), lambda receipt: receipt.update(rho=99.0))
    loaded = Release.load(path)
    gaussian = GaussianHistogram(ZCDP(0.1))(TABLE)
    assert compose([*loaded.ledger, *gaussian.ledger]).rho < 0.1 + 0.1225
