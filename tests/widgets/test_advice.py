"""Advice: nothing of a private table is looked at, and each option says what it releases."""

import json
import pickle
import shlex

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from tests.widgets.pages import moved  # noqa: E402
from workbench import (  # noqa: E402
    PUBLIC,
    Advice,
    Beliefs,
    Bound,
    Domain,
    Quadtree,
    Records,
    SparseTable,
    advise,
    figures,
    widgets,
)
from workbench.data import Interactions  # noqa: E402


def private(keys, counts, bound=None):
    return SparseTable.from_keys(
        Domain(("x", "y"), (100, 50)), keys, counts, bound or Bound(2, 3)
    )


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """Every candidate runs, however busy the machine is."""
    for name in ("SECONDS", "ROUGH"):
        monkeypatch.setattr(f"workbench.widgets.advice_subject.{name}", 120.0)
    monkeypatch.setattr("workbench.owner.advice.advice._SECONDS", 120.0)


@pytest.mark.slow
def test_nothing_of_a_private_table_reaches_the_screen():
    one, other = private([1, 2, 3], [5, 900, 7]), private(range(4000), [1] * 4000)
    for values in ({}, dict(epsilon=0.7, size=123, delta=1e-6)):
        a, b = (widgets.advice(t, **values) for t in (one, other))
        assert a.view == b.view and a.spec == b.spec and a.release is None
        pd.testing.assert_frame_equal(a.rows, b.rows)
    bare = widgets.advice(one.domain, Bound(2, 3), **values)
    assert bare.view == a.view


def test_only_domain_and_bound_are_read():
    class Guarded:
        domain, bound = Domain(("x",), (10**4,)), Bound()

        def __getattr__(self, name):
            if name != "truth_public":
                raise AssertionError(f"{name} was read")
            raise AttributeError(name)

    assert widgets.advice(Guarded()).view["charts"]


@pytest.mark.slow
def test_the_advice_on_the_screen_is_that_of_advise():
    shown = widgets.advice(Domain(("x",), (10**4,)), size=1000, spread=5.0)
    told = {}
    exec(shown.view["code"].replace("advise(", "told = advise("), told)
    advice = told["told"]
    beliefs = Beliefs.of_counts(Domain(("x",), (10**4,)), 0.1, 100, 5)
    again = advise(beliefs, 0.1, task="ranges", size=1000, queries=[1, 10, 100, 1000])
    assert isinstance(advice, Advice) and advice.recommendation == again.recommendation
    assert shown.view["lead"] == advice.recommendation
    (chart,) = shown.view["charts"]
    assert all(
        line["color"].startswith("#") for line in chart["lines"]
    )  # as a page reads colours
    assert set(shown.rows.metric) == {"MeanAbsoluteError"} and shown.rows.series.nunique() == 5
    best = shown.rows[shown.rows.series == shown.rows.series.iloc[0]]
    assert best.value.tolist() == [*advice.rows[0].errors.values()]
    facts = dict(shown.view["facts"])
    assert facts.pop("about these numbers") == " ".join(advice.notes)
    assert set(facts) == set(shown.rows.series)
    assert " cells, " in [*facts.values()][0] and "pure noise" in [*facts.values()][0]


def test_beliefs_that_contradict_are_said_on_the_screen():
    shown = widgets.advice(private([1], [1]))
    view = moved(shown, epsilon=1.0)
    assert not view["error"] and "Guarantee" not in dict(view["facts"])
    assert shown.spec["noise_note"] == ""
    assert "density = -1.0 is not allowed" in moved(shown, density=-1.0)["error"]
    shown = widgets.advice(private([1], [1]))
    assert "contradicts a mean count of 1" in moved(shown, mean=1.0)["error"]


def test_the_command_gives_the_same_advice(tmp_path):
    from typer.testing import CliRunner

    from workbench.cli import app

    shown = widgets.advice(private([1], [1]), delta=1e-6, size=40)
    words = shlex.split(shown.view["commands"][0])
    assert words[:2] == ["workbench", "advise"]
    path = tmp_path / "domain.json"
    path.write_text(json.dumps({"x": 100, "y": 50}))
    words[words.index("domain.json")] = str(path)
    said = CliRunner().invoke(app, words[1:], env={"COLUMNS": "300"})
    assert said.exit_code == 0, said.output
    advice = shown.subject.advice(shown.values)
    assert advice.recommendation in " ".join(said.output.split())
    linked = widgets.advice(private([1], [1]))
    linked._on_message(None, dict(kind="link", words=shown.view["words"]), [])
    assert linked.values == shown.values and linked.view["lead"] == advice.recommendation


def test_private_data_have_no_panel():
    records = Records.from_values(Quadtree(1, 4), np.array([[0.5], [0.1]]), Bound())
    domain = Domain(("film", "day"), (5, 7))
    visits = Interactions.from_codes(domain, [9, 4, 9], [0, 1, 4], [6, 6, 0], Bound(2))
    with pytest.raises(ValueError, match="need a table, or a domain"):
        widgets.advice(visits)
    with pytest.raises(ValueError, match="need a table, or a domain"):
        widgets.advice(records)
    with pytest.raises(ValueError, match="bound = PUBLIC is not allowed"):
        widgets.advice(private([1], [1], PUBLIC))


def test_advice_is_exported_and_shared_like_any_panel(tmp_path):
    shown = widgets.advice(Domain(("x",), (500,)))
    kept = figures.load(shown.save(tmp_path))
    assert "advise(Beliefs.of_counts(Domain(" in kept.manifest["command"]
    assert set(kept.images) == {"pdf", "svg", "png"}
    assert pickle.loads(pickle.dumps(shown.subject)) == shown.subject
    labels = widgets.advice(Domain(("x",), (3,), (("a", "b", "c"),)))
    assert "'a'" not in json.dumps(labels.view) and labels.view["charts"]
