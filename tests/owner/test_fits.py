"""Fits beside the ledger save time, and change nothing: those of another bank are not used."""

import shutil

import numpy as np

from workbench import DP, Bound, Domain, Session, SparseTable
from workbench.inference.answer_bank import AnswerBank
from workbench.owner.price import fits_path
from workbench.queries import Marginals, NamedMarginals

DOMAIN = Domain(tuple("abcd"), (3,) * 4)


def people():
    keys = np.random.default_rng(0).integers(0, 40, 3000)
    return SparseTable.from_keys(DOMAIN, keys, np.ones(3000, int), Bound())


def same(one, other):
    return np.array_equal(one.values, other.values) and np.allclose(one.errors, other.errors)


def test_fits_are_used_again_grow_and_never_serve_another_bank(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.owner.recall.FEWEST", 20)
    path = tmp_path / "bank"
    asked = Marginals(3)
    judged = []
    judge = AnswerBank._judged
    monkeypatch.setattr(
        AnswerBank, "_judged", lambda self, *of: judged.append(of) or judge(self, *of)
    )
    with Session.open(path, people(), DP(9.0), total=3000.0) as session:
        session.ask(Marginals(2), 2.0)
        first = session.recall(asked)
    assert fits_path(path).exists() and judged
    count = len(judged)
    assert same(Session.open(path).recall(asked), first) and len(judged) == count
    with Session.open(path, people()) as session:  # it has grown
        session.ask(NamedMarginals((("a", "b"),)), 1.0)
        session.recall(asked)
    assert len(judged) > count
    other = tmp_path / "other"
    with Session.open(other, people(), DP(9.0), total=3000.0) as session:
        session.ask(Marginals(2), 1.0)
    shutil.copy(fits_path(path), fits_path(other))
    own = Session.open(other).recall(asked)
    fits_path(other).write_bytes(b"no file of fits")
    assert same(Session.open(other).recall(asked), own)


def test_fits_of_trees_that_are_no_longer_made_are_left_aside(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.owner.recall.FEWEST", 20)
    path = tmp_path / "bank"
    asked = Marginals(3)
    with Session.open(path, people(), DP(9.0), total=3000.0) as session:
        session.ask(Marginals(2), 2.0)
        session.recall(asked)
    monkeypatch.setattr("workbench.inference.bank_fits._TREE_CELLS", 1)
    recalled = Session.open(path).recall(asked)
    fits_path(path).unlink()
    assert same(Session.open(path).recall(asked), recalled)


def test_two_sessions_share_one_bank_and_its_fits(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.owner.recall.FEWEST", 20)
    path = tmp_path / "bank"
    one = Session.open(path, people(), DP(9.0), total=3000.0)
    two = Session.open(path, people())
    one.ask(Marginals(1), 1.0)
    one.recall(Marginals(1))
    two.ask(Marginals(1), 2.0)
    asked = Marginals(2)
    first = one.recall(asked)  # writes fits of all 24 answers
    assert fits_path(path).exists()
    assert same(two.recall(asked), first)
    two.ask(NamedMarginals((("a",),)), 1.0)
    assert same(
        two.recall(asked), one.recall(asked)
    )  # starts from fits that were of fewer answers
    assert len(one.bank) == len(two.bank) == 27
