"""Release files: whole or not at all, read by anyone, and honest about what they are."""

import copy
import json
import os
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest

from workbench import (
    DP,
    ZCDP,
    Bound,
    Domain,
    Marginals,
    NamedMarginals,
    Release,
    SparseTable,
    mechanisms,
    noise,
)
from workbench.cli.release import print_release
from workbench.estimates.release_files import read_record
from workbench.mechanisms import (
    AIM,
    GeometricHistogram,
    HighPassFilter,
    LaplaceQueries,
    PrioritySampling,
)
from workbench.mechanisms.laws import Subject
from workbench.queries.typed import labelled_queries

DOMAIN = Domain(
    ("home", "year", "n"), (3, 5, 4), (("Ä", "b c", "44001"), range(2000, 2005), None)
)
TABLE = SparseTable.from_keys(DOMAIN, [0, 7, 22, 59], [40, 9, 77, 300], Bound(2, 1))
MECHANISMS = [HighPassFilter(DP(0.5), 6), PrioritySampling(DP(0.5), 7)]


@pytest.mark.parametrize(
    "epsilon, factor",
    [(0.5, "e^0.5 = 1.65"), (10, "e^10 = 22,026"), (100, "e^100 = 2.69·10⁴³")],
)
@pytest.mark.filterwarnings("ignore:.*22,026-fold")
def test_a_guarantee_states_its_factor_as_people_write_it(epsilon, factor):
    release = HighPassFilter(DP(epsilon), 6)(TABLE)
    assert f"more than {factor} times as likely" in str(release.describe())


def test_other_readers_see_a_plain_table(tmp_path):
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    release = MECHANISMS[1](TABLE)
    path = release.save(tmp_path / "x.parquet")
    expected = release.estimate.to_frame()
    frames = (
        pd.read_parquet(path),
        polars.read_parquet(path).to_pandas(),
        duckdb.sql(f"select * from '{path}'").df(),
    )
    for frame in frames:
        assert list(frame.columns) == ["home", "year", "n", "count", "noisy"]
        assert frame.astype(str).values.tolist() == expected.astype(str).values.tolist()


def test_the_file_carries_its_guarantee(tmp_path):
    path = MECHANISMS[0](TABLE).save(tmp_path / "x.parquet")
    told = json.loads(parquet.read_metadata(path).metadata[b"workbench"])
    assert told["guarantee"] == "0.5-DP" and told["simulated"] is False
    assert (
        told["ledger"][0]["relation"] == "add-remove-one-unit"
        and "HighPassFilter" in told["mechanism"]
    )
    assert {"dp-workbench", "numpy", "python"} <= set(told["versions"])


def test_python_shows_the_warnings_and_sentences_of_the_command_line(tmp_path, capsys):
    wide = Domain(("home", "work"), (401, 401))
    bound = Bound(4, 1).enforced("a patient")
    table = SparseTable.from_keys(wide, [1], [900], bound)
    release = PrioritySampling(DP(0.5), 50)(table)  # theta is 0 by default
    shown = unescape(release._repr_html_())
    assert "most of it may be noise" in repr(release)
    print_release(release, release.save(tmp_path / "x.parquet"))
    printed = " ".join(capsys.readouterr().out.split())
    rows = release.describe()
    for name, text in rows:
        assert text in shown and f"{name} {text}" in printed
    names = (
        "Released Mechanism Guarantee Protected Caution Paid Noise Sampled Absent By".split()
    )
    assert [name.split()[0] for name, _ in rows] == names and bound.in_words in dict(
        rows
    ).values()
    one = HighPassFilter(DP(0.5), 400)(table)  # noise passes with probability 1e-16
    assert "noise" not in repr(one) and "<strong>" not in one._repr_html_()
    answers = one.answer([{"home": 0}, {"home": 1}], error=True)
    for (count, spread, cells, most), line in zip(
        answers.in_words(), repr(answers).split("; "), strict=True
    ):
        assert f"{count} {spread} (noise), {cells} absent cells hold {most}" in line
        assert "± " in spread and "at most " in most and "nan" not in line


def test_a_file_says_what_counts_of_a_truncated_table_are_about(tmp_path):
    sentence = (
        "Enforced: each patient adds at most 1 to each of 4 cells. The rest was left out at random: "
        "counts and error bars are about what was kept."
    )
    for bound, told in ((Bound(4, 1).enforced("a patient"), sentence), (Bound(4, 1), "")):
        release = MECHANISMS[0](SparseTable.from_keys(DOMAIN, [0], [40], bound))
        path = release.save(tmp_path / "x.csv", force=True)
        assert read_record(path).counts == told
        assert Release.load(path).counts_what == told


def test_a_release_shows_its_guarantee_and_nothing_private():
    release = MECHANISMS[0](TABLE, np.random.default_rng(0))
    assert "0.5-DP, simulated" in repr(release) and "HighPassFilter" in repr(release)
    assert "<caption>" in release._repr_html_() and "survivors" in release._repr_html_()
    assert "<td>Ä</td>" in release._repr_html_() and "<td>± " in release._repr_html_()
    assert "60 cells" in repr(TABLE) and "4 of" not in repr(TABLE)
    assert "4 of 60" in repr(replace(TABLE, truth_public=True))


def test_a_simulated_release_is_saved_only_by_name(tmp_path):
    release = MECHANISMS[0](TABLE, np.random.default_rng(0))
    with pytest.raises(ValueError, match="simulated"):
        release.save(tmp_path / "x.parquet")
    assert not list(tmp_path.iterdir())
    assert Release.load(release.save(tmp_path / "x.parquet", simulated=True)).simulated


def test_an_idealised_release_is_never_saved(tmp_path):
    release = MECHANISMS[0](TABLE)
    drawn = replace(release, ledger=(replace(release.ledger[0], idealised=True),))
    with pytest.raises(ValueError, match="idealised"):
        drawn.save(tmp_path / "x.parquet", simulated=True)


def test_a_release_without_protection_says_so(tmp_path):
    release = MECHANISMS[0](TABLE)
    open_ = replace(
        release, ledger=(*release.ledger, noise.unprotected("domain read off the data"))
    )
    back = Release.load(open_.save(tmp_path / "x.parquet"))
    assert back.privacy.epsilon == float("inf") and "no privacy" in str(back.privacy)


def rewritten(path, change):
    """The file, with what it says of itself changed by hand."""
    table = parquet.read_table(path)
    metadata = dict(table.schema.metadata)
    record = json.loads(metadata[b"workbench"])
    change(record)
    metadata[b"workbench"] = json.dumps(record).encode()
    parquet.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_a_release_whose_estimate_was_replaced_has_no_receipts(tmp_path):
    real = MECHANISMS[0](TABLE).with_users_cut(replace(TABLE, users_cut=3), 0.5)
    simulated = MECHANISMS[0](TABLE, np.random.default_rng(1))
    for mixed in (
        replace(real, estimate=simulated.estimate),
        Release(simulated.estimate, real.ledger, real.mechanism, real.bound),
    ):
        assert not mixed.ledger
        with pytest.raises(ValueError, match="no receipt"):
            mixed.save(tmp_path / "x.parquet")
    assert not list(tmp_path.iterdir())
    for copied in (copy.deepcopy(real), pickle.loads(pickle.dumps(real))):
        named = replace(copied, bound=real.bound.of("a user"))
        assert named.ledger == real.ledger and len(named.ledger) == len(real.ledger) == 2
    named.save(tmp_path / "x.parquet")


def test_a_release_without_receipts_is_neither_saved_nor_loaded(tmp_path):
    release = MECHANISMS[0](TABLE)
    with pytest.raises(ValueError, match="no receipt"):
        replace(release, ledger=()).save(tmp_path / "x.parquet")
    assert not list(tmp_path.iterdir())
    path = release.save(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="x.parquet: there is no receipt"):
        Release.load(rewritten(path, lambda record: record.update(ledger=[])))


@pytest.mark.parametrize("relation", ["<img src=x>", "add-remove", None])
def test_a_file_with_another_relation_is_refused(relation, tmp_path):
    path = MECHANISMS[0](TABLE).save(tmp_path / "x.parquet")
    rewritten(path, lambda record: record["ledger"][0].update(relation=relation))
    with pytest.raises(ValueError, match="x.parquet: .*relation"):
        Release.load(path)


def test_what_a_file_says_of_itself_is_neither_html_nor_terminal_codes(tmp_path):
    path = MECHANISMS[0](TABLE).save(tmp_path / "x.parquet")
    text = "<b>\x1b[2J\x9b0m\u202eq</b>"

    def change(record):
        record["mechanism"] = text
        record["ledger"][0].update(name=text, part=[text, text])

    release = Release.load(rewritten(path, change))
    assert release.mechanism == release.ledger[0].name == r"<b>\x1b[2J\x9b0m\u202eq</b>"
    assert release.ledger[0].part == (release.mechanism, release.mechanism)
    assert repr(release).isprintable() and "<b>" not in release._repr_html_()
    shown = replace(release, ledger=(Foreign("<b>", DP(1)),))
    assert "<b>" not in shown._repr_html_()


class Foreign(NamedTuple):
    """A receipt that no file can hold: its relation is markup."""

    name: str
    cost: DP
    relation: str = "<b>"
    simulated: bool = False
    idealised: bool = False
    part: tuple[str, str] | None = None

    @property
    def description(self):
        return self.name


def test_theorems_keep_their_text_in_files(tmp_path):
    """As files have had it from the first: in the name of the receipt."""
    release = MECHANISMS[0](TABLE)
    priced = noise.by_theorem("tree", DP(1), "A & B 2016, Theorem 3.1", replaces=release.ledger)
    path = replace(release, ledger=(priced,)).save(tmp_path / "x.parquet")
    record = json.loads(parquet.read_metadata(path).metadata[b"workbench"])
    assert record["ledger"] == [
        {
            "name": "tree (by theorem: A & B 2016, Theorem 3.1)",
            "cost": {"epsilon": "1", "delta": 0.0},
            "relation": "add-remove-one-unit",
            "simulated": False,
            "idealised": False,
            "part": None,
        }
    ]
    back = Release.load(path)
    assert back.ledger == (priced,) and back.by_theorem == priced.description
    assert priced.description in back._repr_html_().replace("&amp;", "&")


def test_an_existing_file_is_not_overwritten_unless_forced(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_text("precious")
    with pytest.raises(ValueError, match="exists"):
        MECHANISMS[0](TABLE).save(path)
    assert path.read_text() == "precious"
    MECHANISMS[0](TABLE).save(path, force=True)
    assert Release.load(path) and os.listdir(tmp_path) == ["x.parquet"]
    with pytest.raises(FileNotFoundError, match="folder"):
        MECHANISMS[0](TABLE).save(tmp_path / "nowhere" / "x.parquet")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_link_that_leads_nowhere_is_a_name_that_is_taken(tmp_path, ending):
    """Nothing is lost that was paid for, and nothing is written where the link leads."""
    path = tmp_path / f"x.{ending}"
    for link in (path, tmp_path / f"x.{ending}.json")[: 1 + (ending == "csv")]:
        link.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ValueError, match="exists"):
            MECHANISMS[0](TABLE).save(path)
        MECHANISMS[0](TABLE).save(path, force=True)
        assert Release.load(path) and not link.is_symlink()
        assert not (tmp_path / "elsewhere").exists()
        for file in tmp_path.iterdir():
            file.unlink()


def test_the_records_of_two_csv_releases_are_not_exchanged(tmp_path):
    for name, mechanism in zip("ab", MECHANISMS, strict=False):
        mechanism(TABLE).save(tmp_path / f"{name}.csv")
    (tmp_path / "a.csv").rename(tmp_path / "c.csv")
    (tmp_path / "b.csv").rename(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="is not the file that .* describes"):
        Release.load(tmp_path / "a.csv")


def test_files_that_are_no_releases_are_refused(tmp_path):
    whole = MECHANISMS[0](TABLE).save(tmp_path / "x.parquet")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-100])
    plain = tmp_path / "plain.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(plain)
    for path, word in ((cut, "not a complete"), (plain, "not a release")):
        with pytest.raises(ValueError, match=word):
            Release.load(path)
    with pytest.raises(FileNotFoundError, match="no such release"):
        Release.load(tmp_path / "none.parquet")


def test_one_seeded_look_makes_a_release_simulated(tmp_path):
    release = MECHANISMS[0](TABLE)
    looks = (*release.ledger, replace(release.ledger[0], simulated=True))
    for ledger in (looks, looks[::-1]):
        mixed = replace(release, ledger=ledger)
        with pytest.raises(ValueError, match="simulated"):
            mixed.save(tmp_path / "x.parquet")
    told = parquet.read_metadata(mixed.save(tmp_path / "x.parquet", simulated=True)).metadata
    told = json.loads(told[b"workbench"])
    assert told["simulated"] is True and [r["simulated"] for r in told["ledger"]] == [
        True,
        False,
    ]
    assert told["guarantee"] == str(mixed.privacy) == "1-DP"  # of both looks, not the budget


def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch):
    path, write = tmp_path / "x.parquet", parquet.write_table
    meanwhile = lambda *a, **k: (write(*a, **k), path.write_text("precious"))  # noqa: E731
    monkeypatch.setattr(parquet, "write_table", meanwhile)
    with pytest.raises(ValueError, match="exists"):
        MECHANISMS[0](TABLE).save(path)
    assert path.read_text() == "precious" and os.listdir(tmp_path) == ["x.parquet"]


def test_a_file_system_without_links_still_gets_the_file(tmp_path, monkeypatch):
    def unsupported(*_, **__):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", unsupported)
    path = MECHANISMS[0](TABLE).save(tmp_path / "x.parquet")
    assert Release.load(path) and os.listdir(tmp_path) == ["x.parquet"]
    with pytest.raises(ValueError, match="exists"):
        MECHANISMS[0](TABLE).save(path)


def test_many_writers_of_one_name_leave_one_whole_file(tmp_path):
    releases = [MECHANISMS[0](TABLE) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda r: r.save(tmp_path / "x.parquet", force=True), releases))
    assert Release.load(tmp_path / "x.parquet") and os.listdir(tmp_path) == ["x.parquet"]


def test_a_csv_file_carries_its_guarantee_beside_it(tmp_path):
    for mechanism in MECHANISMS:
        release = mechanism(TABLE)
        path = release.save(tmp_path / "x.csv", force=True)
        assert sorted(os.listdir(tmp_path)) == ["x.csv", "x.csv.json"]
        frame = release.to_frame().astype({"home": str})
        assert pd.read_csv(path, dtype={"home": str})[frame.columns].equals(frame)
        told = json.loads((tmp_path / "x.csv.json").read_text(encoding="utf-8"))
        assert told["guarantee"] == "0.5-DP" and told["estimate"]["domain"] == DOMAIN.to_dict()
        back = Release.load(path)
        assert back.ledger == release.ledger and back.bound == release.bound
        assert back.to_frame().equals(release.to_frame())
        assert repr(back.estimate) == repr(release.estimate)


def test_both_files_of_a_csv_release_may_be_renamed(tmp_path):
    path = MECHANISMS[0](TABLE).save(tmp_path / "x.csv")
    (tmp_path / "x.csv.json").rename(tmp_path / "y.csv.json")
    assert len(Release.load(path.rename(tmp_path / "y.csv")).to_frame())


def test_labels_pass_through_csv_as_they_are(tmp_path):
    labels = ("", " a", 'b"c', "d,e", "f\ng", "NA", "007", "żółć")
    domain = Domain(("name", "x", "y"), (8, 2, 2), (labels, (0.1, 2.5), (True, False)))
    table = SparseTable.from_keys(domain, range(32), range(100, 132), Bound())
    release = HighPassFilter(DP(10.0), 6)(table)
    back = Release.load(release.save(tmp_path / "x.csv"))
    assert back.to_frame().equals(release.to_frame()) and len(back.estimate) == 32


def test_a_csv_file_that_is_not_as_it_was_released_is_refused(tmp_path):
    path = MECHANISMS[0](TABLE).save(tmp_path / "x.csv")
    beside = tmp_path / "x.csv.json"
    with pytest.raises(ValueError, match="exists"):
        MECHANISMS[0](TABLE).save(path)
    whole = path.read_text()
    path.write_text(whole.replace("2000", "2001", 1) + "\n")
    with pytest.raises(ValueError, match="was changed"):
        Release.load(path)
    path.write_text(whole)
    assert Release.load(path)
    with pytest.raises(ValueError, match="Name that file"):
        Release.load(beside)
    described = json.loads(beside.read_text(encoding="utf-8"))
    for wrong in (
        "nothing", "[" * 100_000, "3", "{}", json.dumps({**described, "columns": 3}),
        json.dumps({**described, "columns": {"home": "list"}}),
        json.dumps({**described, "sha256": {}}),
    ):  # fmt: skip
        beside.write_text(wrong)
        with pytest.raises(ValueError, match="x.csv"):
            Release.load(path)
    beside.unlink()
    with pytest.raises(FileNotFoundError, match="guarantee"):
        Release.load(path)
    path.unlink()
    beside.write_text("precious")
    with pytest.raises(ValueError, match="x.csv.json exists"):
        MECHANISMS[0](TABLE).save(path)
    assert not path.exists() and beside.read_text() == "precious"


@pytest.mark.parametrize("name", ["x", "x.xlsx", "x.csv.gz", "x.PARQUET"])
def test_another_ending_is_refused_with_those_that_are_written(tmp_path, name):
    with pytest.raises(ValueError, match=r"need a name that ends in \.parquet or \.csv"):
        MECHANISMS[0](TABLE).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("place", "wrong", "told"),
    [
        (("ledger", 0, "part"), [["a"], "b"], "$.ledger[0].part"),
        (("ledger", 0, "part"), ["a"], "$.ledger[0].part"),
        (("ledger", 0, "part"), ["a", "b", "c"], "$.ledger[0].part"),
        (("ledger", 0, "cost", "delta"), True, "$.ledger[0].cost.delta"),
        (("ledger", 0, "colour"), "red", "colour"),
        (("bound", "l0"), 1.5, "$.bound.l0"),
        (("versions",), ["1"], "$.versions"),
        (("users_cut",), True, "$.users_cut"),
        (("format",), 2, "$.format"),
    ],
)
def test_a_record_that_is_none_is_refused_at_its_field(tmp_path, place, wrong, told):
    path = MECHANISMS[0](TABLE).save(tmp_path / "x.csv")
    beside = tmp_path / "x.csv.json"
    record = json.loads(beside.read_text(encoding="utf-8"))
    inner = record
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = wrong
    beside.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(told)):
        Release.load(path)


@pytest.mark.parametrize("cls", mechanisms.ALL, ids=lambda cls: cls.__name__)
def test_a_csv_has_labels_and_errors_before_what_it_is_loaded_from(cls, tmp_path):
    subject = Subject(cls)
    release = subject.release(subject.table([9, 1, 4]), np.random.default_rng(0))
    frame = release.to_frame()
    if release.idealised or "sd" not in frame.columns:
        assert type(release.estimate).__name__ in NO_COUNTS or release.idealised
        return
    path = release.save(tmp_path / "x.csv", simulated=True)
    header = path.read_text(encoding="utf-8").splitlines()[0].replace('"', "").split(",")
    assert header[: len(frame.columns)] == list(frame.columns)
    assert {"count", "sd", "low", "high"} <= {*header} and frame.columns[0] != "count"
    known = frame.sd.notna()
    assert np.allclose(frame.high - frame["count"], 2 * frame.sd, equal_nan=True)
    assert known.all() or known.sum() == 0
    assert Release.load(path).to_frame().equals(frame)


NO_COUNTS = {"BitReports", "Leaves", "Projection", "Reports", "Sketch"}


def test_marginals_have_a_table_each_beside_the_csv_of_all(tmp_path):
    sets = (("year",), ("home", "year"))
    release = LaplaceQueries(DP(1.0), NamedMarginals(sets))(TABLE)
    path = release.save(tmp_path / "x.csv")
    folder = tmp_path / "x.csv.tables"
    assert {p.name for p in folder.iterdir()} == {"year.csv", "home_year.csv"}
    errors = ["count", "sd", "low", "high"]
    whole = release.to_frame()
    begin = 0
    for names in sets:
        name = "_".join(names)
        table = pd.read_csv(folder / f"{name}.csv")
        assert list(table.columns) == [*names, *errors]
        rows = whole[begin : begin + len(table)].reset_index(drop=True)
        assert table[errors].equals(rows[errors])
        assert release.tables()[name][[*names]].astype(str).equals(rows[[*names]])
        expected = release.marginal(*names)
        assert table.values.tolist() == table.assign(**expected).values.tolist()
        begin += len(table)
    assert begin == len(whole) and Release.load(path).to_frame().equals(whole)
    path.unlink()
    (tmp_path / "x.csv.json").unlink()
    with pytest.raises(ValueError, match="x.csv.tables exists"):
        release.save(path)
    other = LaplaceQueries(DP(1.0), NamedMarginals((("home",), ("year",))))(TABLE)
    other.save(path, force=True)
    assert {p.name for p in folder.iterdir()} == {"home.csv", "year.csv"}
    MECHANISMS[0](TABLE).save(path, force=True)
    assert {p.name for p in tmp_path.iterdir()} == {"x.csv", "x.csv.json"}


def test_other_queries_stay_in_one_table(tmp_path):
    for queries in (["home=Ä", "year=2001"], [{}, "year=2000..2004"], ["home=Ä year=2000"]):
        release = LaplaceQueries(DP(1.0), labelled_queries(DOMAIN, queries))(TABLE)
        assert release.tables() == {}
        release.save(tmp_path / "x.csv", force=True)
        assert not (tmp_path / "x.csv.tables").exists()
    assert MECHANISMS[0](TABLE).tables() == {}
    queries = [{}, *({"home": x} for x in DOMAIN.labels[0])]
    with_total = LaplaceQueries(DP(1.0), labelled_queries(DOMAIN, queries))(TABLE).tables()
    assert {name: len(table) for name, table in with_total.items()} == {"total": 1, "home": 3}


def test_marginals_whose_names_are_alike_are_both_kept(tmp_path):
    long = "x" * 300
    domain = Domain(("a b", "a-b", "sd", long), (2, 3, 2, 2))
    table = SparseTable.from_keys(domain, [0, 9], [5, 6], Bound())
    marginals = NamedMarginals((("a b",), ("a-b",), ("sd",), (long,), (long, "sd")))
    release = LaplaceQueries(DP(1.0), marginals)(table)
    release.save(tmp_path / "x.csv")
    found = {p.stem: pd.read_csv(p) for p in (tmp_path / "x.csv.tables").iterdir()}
    assert found.keys() == {"a-b", "a-b_1", "sd", "x" * 60, f"sd_{'x' * 57}"}
    assert list(found["sd"].columns) == ["sd", "count", "sd_", "low", "high"]
    assert len(found["a-b"]) == 2 and len(found["a-b_1"]) == 3


def test_a_model_has_a_table_with_labels_for_each_of_its_marginals(tmp_path):
    domain = Domain(("home", "sd"), (2, 3), (["Ä", "b"], None))
    table = SparseTable.from_keys(domain, [0, 5], [500, 600], Bound())
    mechanism = AIM(ZCDP(0.5), Marginals(2), initial=Marginals(1), rounds=3)
    release = mechanism(table, np.random.default_rng(0))
    release.save(tmp_path / "x.csv", simulated=True)
    tables = release.tables()
    assert {p.stem for p in (tmp_path / "x.csv.tables").iterdir()} == tables.keys()
    for axes, margin in zip(release.estimate.sets, release.estimate.margins, strict=True):
        names = [domain.attributes[k] for k in axes]
        found = tables["_".join(names)]
        assert np.allclose(found["count"], release.estimate.total * margin.ravel())
        assert found[names].equals(domain.project(names).frame(np.arange(margin.size)))


def test_a_query_of_many_labels_is_written_as_it_is_typed():
    queries = [{"home": "Ä", "year": (2000, 2002)}, {"year": [2000, 2004]}, {}]
    release = LaplaceQueries(DP(1.0), labelled_queries(DOMAIN, queries))(TABLE)
    frame = release.to_frame()
    assert frame.loc[0, ["home", "year"]].tolist() == ["Ä", "2000..2002"]
    assert frame.loc[1, ["home", "year"]].tolist() == ["*", "2000|2004"]
    assert frame.loc[2, ["home", "year"]].tolist() == ["*", "*"]


def test_columns_make_room_for_attributes_of_their_names():
    domain = Domain(("sd", "low"), (3, 2))
    table = SparseTable.from_keys(domain, [0], [1], Bound())
    frame = GeometricHistogram(DP(1.0))(table).to_frame()
    assert list(frame.columns) == ["sd", "low", "count", "sd_", "low_", "high"]
