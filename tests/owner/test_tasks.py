"""Advice for tasks: every number is right within what it states, and the line at its end runs."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.agreement import seeded
from workbench import (
    DP,
    UNBOUNDED,
    Bound,
    Domain,
    Interactions,
    Prefixes,
    Quadtree,
    RandomBoxes,
    Release,
    SparseTable,
    noise,
)
from workbench.cli import app
from workbench.mechanisms import LPA, SRA
from workbench.owner.advice import tasks

DOMAIN = Domain(("a", "b"), (16, 12))
BOUND = Bound(2, 1)


def table(domain=DOMAIN):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 30, domain.size)
    return SparseTable.from_keys(domain, np.arange(domain.size), counts, BOUND)


def simulated_rmse(mechanism, workload, runs=60, domain=DOMAIN):
    private = table(domain)
    exact = private.answer(workload)
    squares = [
        ((mechanism(private, seeded(s)).answer(workload) - exact) ** 2).mean()
        for s in range(runs)
    ]
    return np.sqrt(np.mean(squares))


def test_errors_of_boxes_are_those_of_noise():
    advice = tasks.advise_boxes(DOMAIN, 0.5, BOUND, (4, 3))
    boxes = RandomBoxes((4, 3))
    for option in advice.options:
        assert option.value == pytest.approx(simulated_rmse(option.mechanism, boxes), rel=0.1)
    values = [option.value for option in advice.options]
    assert values == sorted(values) and len(values) == 2


def test_errors_of_ranges_of_one_attribute_are_those_of_noise():
    line = Domain(("a",), (512,))
    advice = tasks.advise_boxes(line, 0.5, BOUND, (200,))
    assert len(advice.options) == 2
    for option in advice.options:
        error = simulated_rmse(option.mechanism, RandomBoxes((200,)), domain=line)
        assert option.value == pytest.approx(error, rel=0.15)


@pytest.mark.parametrize("order", [1, 2])
def test_errors_of_marginals_are_those_of_noise(order):
    from workbench import Marginals

    advice = tasks.advise_marginals(DOMAIN, 0.5, BOUND, order)
    assert {type(o.mechanism).__name__ for o in advice.options} == {
        "LaplaceQueries",
        "GeometricHistogram",
    }
    for option in advice.options:
        assert option.value == pytest.approx(
            simulated_rmse(option.mechanism, Marginals(order)), rel=0.1
        )


def test_gaps_are_those_of_two_noises():
    """Against the law of the difference, convolved."""
    for decay in (0.05, 0.4, 3.0):
        alpha = np.exp(-decay)
        x = np.arange(-3000, 3001)
        law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(x)
        difference = np.convolve(law, law)  # −6000 … 6000
        gap = tasks.smallest_gap(decay, 0.05)
        wrong_or_tied = [difference[: 6000 - g + 1].sum() for g in (gap, gap - 1)]
        assert wrong_or_tied[0] <= 0.05 + 1e-9 < wrong_or_tied[1] + 1e-9
        for items in (1, 50, 10**9):
            v = tasks.highest_empty(decay, items, 0.05)
            reach = [-np.expm1(items * np.log1p(-(alpha**w) / (1 + alpha))) for w in (v, v - 1)]
            assert reach[0] <= 0.05 * (1 + 1e-9) and (v == 1 or reach[1] > 0.05 * (1 - 1e-9))


def test_top_names_the_cut_where_a_cut_is_needed():
    few = tasks.advise_top(DOMAIN, 1.0, BOUND)
    assert type(few.mechanism).__name__ == "GeometricHistogram" and len(few.options) == 2
    many = tasks.advise_top(Domain(("x",), (10**12,)), 1.0, BOUND, 1000)
    assert many.options[2].value == many.mechanism.threshold(Domain(("x",), (10**12,)), 2)


def test_degrees_are_no_worse_than_is_said():
    advice = tasks.advise_degrees(Domain(("node",), (300,)), 0.5, BOUND, 5000)
    rehearsed, at_most = advice.options
    assert 0 < rehearsed.value < at_most.value
    assert at_most.value == pytest.approx(np.sqrt(2) * 2 / 0.5, rel=0.05)


def test_errors_of_sampled_records_are_those_of_the_model():
    domain = Domain(("item", "context"), (5, 2))
    users = 60
    per_user = 12
    advice = tasks.advise_users(domain, 2.0, users, per_user, popularity=1.0)
    p = 1 / np.arange(1.0, 6)
    p /= p.sum()
    for option in advice.options:
        squares = []
        for seed in range(150):
            rng = np.random.default_rng(seed)
            items = rng.choice(5, users * per_user, p=p)
            who = np.repeat(np.arange(users), per_user)
            data = Interactions.from_codes(domain, who, items, 0 * items, UNBOUNDED)
            released = option.mechanism(data, seeded(seed)).estimate.items.values
            squares.append(((released - data.item_counts()) ** 2).mean())
        assert option.value == pytest.approx(np.sqrt(np.mean(squares)), rel=0.1)
    assert {type(o.mechanism) for o in advice.options} == {SRA, LPA}


def test_rows_state_the_noise_that_is_bought():
    advice = tasks.advise_rows(DOMAIN, 1.0, BOUND, order=2)
    counts, records = advice.options[:2]
    for option, epsilon in ((counts, 0.95), (records, 0.05)):
        drawn, _ = noise.geometric(np.zeros(20_000, int), l1=2, epsilon=epsilon, rng=seeded())
        assert option.value == pytest.approx(drawn.std(), rel=0.05)
    stated = tasks.advise_rows(DOMAIN, 1.0, BOUND, rows=400, order=1)
    assert stated.options[-1].value == 10.0 and stated.options[-1].how.startswith("at most")


@pytest.mark.parametrize(
    "tree", [Quadtree(2, 10), Prefixes(depth=10)], ids=["points", "strings"]
)
def test_records_are_rehearsed_on_made_up_ones(tree):
    advice = tasks.advise_records(tree, 1.0, Bound(), 3000)
    again = tasks.advise_records(tree, 1.0, Bound(), 3000)
    assert advice == again and len(advice.options) == 3
    assert all(o.how.startswith("simulated on made-up") for o in advice.options)
    weaker = tasks.advise_records(tree, 0.05, Bound(), 3000)
    assert min(o.value for o in weaker.options) > min(o.value for o in advice.options)


FORMS = {
    "boxes": "--domain domain.json --shape 2,1",
    "marginals": "--domain domain.json --order 1",
    "rows": "--domain domain.json --rows 50",
    "top": "--domain domain.json",
    "degrees": "--domain domain.json --records 500",
    "users": "--domain domain.json --users 30 --per-user 4",
    "per-user": "--domain one.json --shape 2",
    "points": "--box x=0..10,y=0..5 --records 500",
    "strings": "--strings word --length 5 --records 500",
    "cells": "--domain domain.json --size 5",
    "ranges": "--domain domain.json --size 5 --queries 1,2",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("domain.json").write_text(json.dumps({"film": 6, "day": ["mon", "tue"]}))
    Path("one.json").write_text('{"film": 6}')
    rng = np.random.default_rng(0)
    rows = [
        f"u{rng.integers(20)},{rng.integers(6)},{rng.choice(['mon', 'tue'])},{rng.random() * 10:.3f},"
        f"{rng.random() * 5:.3f},{rng.choice(['abc', 'abd', 'x'])}"
        for _ in range(120)
    ]
    Path("YOUR.csv").write_text("\n".join(["user,film,day,x,y,word", *rows]))


def run(words):
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("task", FORMS)
def test_the_line_at_the_end_runs_as_it_stands(folder, task):
    asked = run(["advise", "--task", task, "--epsilon", "1", *FORMS[task].split()])
    assert asked.exit_code == 0, asked.output
    line = asked.stdout.splitlines()[-1]
    assert line.startswith("workbench ")
    done = run(shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
    if task != "rows":
        assert Release.load("release.parquet").privacy == DP(1.0)


@pytest.mark.parametrize(
    "words, says",
    {
        "--task rnges --domain domain.json": "no task 'rnges'; did you mean ranges",
        "--task cells --domain domain.json": "--size is missing",
        "--task=counts-per-user --domain one.json": "did you mean per-user",
        "--task per-user --domain domain.json": "need one, how many records a user has",
        "--task per-user --domain one.json --bound 5,1": "so that 1,1 holds",
        "--task per-user --domain one.json --user who": "the table has a row a user",
        "--task boxes": "--domain is missing: which cells there can be, for boxes",
        "--task boxes --domain domain.json --shape 9,9": "do not fit a domain",
        "--task points": "--box is missing",
        "--task strings --box x=0..1": "--strings is missing",
        "--task users --domain domain.json": "--users and --per-user are missing",
        "--task users --domain domain.json --users 0 --per-user 3": "SRA.n = 0",
        "--task marginals --domain domain.json --order 3": "order = 3 is not allowed",
        "--task rows --domain domain.json --rows few": "--rows = 'few'",
        "--task points --box x=0..1 --records 0": "records = 0 is not allowed",
    }.items(),
)
def test_what_cannot_be_advised_on_is_refused(folder, words, says):
    done = run(["advise", "--epsilon", "1", *words.split()])
    assert done.exit_code == 2 and says in done.stderr.splitlines()[0], done.output
