"""Publications: what a stranger reads is true, and follows from the release and its publisher alone."""

import json
import zipfile
from math import exp
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest

from docs.pages.pictures import pictured
from tests.cli.commands import run_command
from workbench import DP, ZCDP, Bound, Domain, Marginals, Release, SparseTable
from workbench.cli.publishing import _public_word
from workbench.mechanisms import (
    ALL,
    GaussianHistogram,
    GeometricHistogram,
    HierarchicalHistogram,
    HighPassFilter,
    LaplaceQueries,
    PrioritySampling,
    Privelet,
    StabilityHistogram,
)
from workbench.owner import Budget
from workbench.owner.publication import read_about
from workbench.owner.publication.folder import metadata, published_tables
from workbench.owner.publication.sheet import Sheet
from workbench.value import stated_at_most

SPACE = Domain(("district", "sex"), (8, 2), ([f"D{i}" for i in range(8)], ["F", "M"]))
ABOUT = {
    "title": "Appointments <b>2016</b>",
    "publisher": "City",
    "contact": "office@city.example",
    "licence": "CC BY 4.0",
    "date": "2026-01-02",
    "person": "patient",
    "row": "appointment",
}
FILES = {
    "README.html", "README.md", "commands.txt", "metadata.json", "picture.svg", "release.parquet",
    "reproduce.ipynb", "statement.txt", "table.csv",
}  # fmt: skip


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "district": rng.choice([f"D{i}" for i in range(8)], n),
            "sex": rng.choice(["F", "M"], n),
            "who": np.arange(n) // 2,
        }
    )


def table(frame=None, **how):
    frame = rows() if frame is None else frame
    return SparseTable.from_frame(frame, SPACE, Bound(l0=2, linf=1), user="who", **how)


def released(mechanism, seed=1):
    return mechanism(table(), np.random.default_rng(seed))


def sheet_of(release, **changes):
    about = read_about(ABOUT | changes)
    return Sheet(release, about, published_tables(release, about))


def said(sheet, question):
    return next(answer for answer in sheet.answers if question in answer.question)


def test_a_folder_has_all_files_and_the_zip_has_the_same(tmp_path):
    release = released(GeometricHistogram(DP(1)))
    folder = release.publish(tmp_path / "out", ABOUT, simulated=True)
    assert {path.name for path in folder.iterdir()} == FILES
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        for path in folder.iterdir():
            assert archive.read(f"out/{path.name}") == path.read_bytes()
    page, book = [(folder / name).read_text() for name in ("README.html", "reproduce.ipynb")]
    assert "&lt;b&gt;2016" in book and "<b>" not in book
    assert "&lt;b&gt;2016" in page and "<b>2016" not in page and "Simulated:" in page
    assert "<b>" not in (folder / "README.md").read_text()
    shown = pd.read_csv(folder / "table.csv", encoding="utf-8-sig")
    assert (folder / "table.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert list(shown) == "district sex count count_for_sums sd low high".split()
    assert (shown["count"] >= 0).all() and shown["count"].dtype == int
    assert shown.count_for_sums.tolist() == release.to_frame()["count"].tolist()
    assert Release.load(folder / "release.parquet").privacy == DP(1)


def test_nothing_in_the_folder_depends_on_rows_that_were_left_out(tmp_path):
    """The neighbour has one row more of a patient, which truncation leaves out."""
    frame = rows()[lambda rows: rows.who > 0]
    more = pd.DataFrame({"district": ["D1"] * 2, "sex": ["F"] * 2, "who": [0, 0]})
    both = pd.concat([frame, more.head(1)]), pd.concat([frame, more])
    folders = []
    for name, each in zip("ab", both, strict=True):
        data = table(each.sort_values("who", kind="stable"), rng=np.random.default_rng(3))
        release = GeometricHistogram(DP(1))(data, np.random.default_rng(4))
        (tmp_path / name).mkdir()
        folders.append(release.publish(tmp_path / name / "out", ABOUT, simulated=True))
    for path in folders[0].iterdir():
        assert path.read_bytes() == (folders[1] / path.name).read_bytes(), path.name
    assert len({(folder.parent / "out.zip").read_bytes() for folder in folders}) == 1


def test_odds_are_those_of_epsilon():
    odds = said(sheet_of(released(GeometricHistogram(DP(1)))), "Who is protected").rows
    told = ["10 % → 23 %", "50 % → 73 %", "90 % → 96 %", "50 % → 88 %"]
    assert [" → ".join(row[1:]) for row in odds] == told
    certain = said(sheet_of(released(GeometricHistogram(DP(1000)))), "Who is protected").rows
    assert {row[2] for row in certain} == {"100 %"}
    statement = sheet_of(released(GeometricHistogram(DP(3)))).statement
    assert "at most 95 %" in statement and "counts patients" in statement


def test_rows_that_add_cells_up_do_not_count_people():
    """A patient who is in two cells may be twice in their sum."""
    assert "once in a row" in sheet_of(released(GeometricHistogram(DP(1)))).limit
    sums = sheet_of(released(LaplaceQueries(DP(1), Marginals(1))))
    assert "at most 1 to each of 2 cells" in sums.limit
    assert "counts appointments" in sums.statement


@pytest.mark.parametrize(
    ("bound", "one", "most", "others"),
    [
        (Bound(2, 1), "patient", "once in a row, and in at most 2 rows", "appointments"),
        (Bound(4, 4, 4), "appointment", "at most 4 appointments", "patients"),
        (Bound(2, 3), "appointment", "at most 3 to each of 2 cells", "patients"),
    ],
)
def test_a_bound_of_one_in_a_cell_counts_people(bound, one, most, others):
    sex = {"labels": ["F", "Z"], "other": "drop", "column": "gender"}
    space = Domain.from_dict(SPACE.to_dict() | {"sex": sex, "missing_user": "drop"})
    frame = rows().rename(columns={"sex": "gender"})
    data = SparseTable.from_frame(frame, space, bound, user="who")
    sheet = sheet_of(GeometricHistogram(DP(1))(data, np.random.default_rng(4)))
    assert said(sheet, "one count").texts[0].startswith(f"One count is one {one}.")
    assert most in sheet.statement
    assert "sex: from the column gender. F, Z" in said(sheet, "one count").points
    assert f"No row counts {others}." in said(sheet, "not conclude").points
    again = "A sum counts one patient again in each row, so it is not a number of patients."
    assert (again in said(sheet, "add rows").texts) == (others == "appointments")
    left_out = ["that name no patient.", "whose sex is none of the labels."]
    told = said(sheet, "are missing").texts[-2:]
    assert list(told) == [f"Left out: appointments {which}" for which in left_out]
    assert (sheet.table.low <= sheet.table.high).all() and (sheet.table.high == 0).any()


def test_a_table_whose_bound_is_stated_leaves_nobody_out():
    texts = said(sheet_of(released(GeometricHistogram(DP(1)))), "missing").texts
    assert "This lowers the numbers of patients" in texts[0]
    stated = SparseTable.from_frame(rows(), SPACE, Bound(l0=2, linf=1, unit="a patient"))
    whole = GeometricHistogram(DP(1))(stated, np.random.default_rng(1))
    texts = said(sheet_of(whole), "missing").texts
    assert texts[1:] == ["No appointments were left out to limit one patient."]


def test_limits_of_a_filtered_table_are_said_to_hold_for_fewer_rows():
    """Where a filter shows noise, far fewer than 19 of 20 rows have their truth in their limits."""
    data = SparseTable.from_keys(Domain(("cell",), (10_000,)), [0], [50], Bound())
    release = HighPassFilter(DP(1), theta=4)(data, np.random.default_rng(0))
    sheet = sheet_of(release)
    noise = sheet.table[1:]
    assert len(noise) > 50 and ((noise.low <= 0) & (0 <= noise.high)).mean() < 0.6
    (text,) = said(sheet, "How large").texts
    assert "and for fewer of those that are shown" in text and "noise alone" in text
    assert said(sheet, "add rows").texts[0].startswith("Only as a rough guide")
    assert "may be noise alone" in sheet.statement and "19 of 20" not in sheet.statement
    every = sheet_of(released(GeometricHistogram(DP(1))))
    assert "in about 19 of 20 rows" in said(every, "How large").texts[0]


@pytest.mark.parametrize(
    "mechanism, delta, total",
    [
        (GeometricHistogram(DP(1)), 0.0, "ε is 1.5 in total."),
        (GaussianHistogram(ZCDP(0.1)), 1e-6, "in total, and δ is 2·10⁻⁶."),
    ],
)
def test_losses_of_earlier_publications_add_up(mechanism, delta, total):
    earlier = [{"title": "By month", "epsilon": 0.5, "delta": delta}]
    texts = said(sheet_of(released(mechanism), earlier=earlier), "Who is protected").texts
    assert any("“By month” with ε = 0.5" in text and text.endswith(total) for text in texts)


def test_a_price_in_rho_is_said_at_a_delta():
    sheet = sheet_of(released(GaussianHistogram(ZCDP(0.1))))
    assert sheet.price == sheet.release.at(1e-6) and sheet.price.delta == 1e-6
    # One person is removed, and then another added.
    both = (1 + exp(sheet.price.epsilon)) * 1e-6
    texts = " ".join(said(sheet, "Who").texts)
    two = stated_at_most(2 * sheet.price.epsilon)
    assert f"have ε = {two} and δ = {stated_at_most(both)}." in texts
    expected = f"except with a probability of at most {stated_at_most(both / (1 - exp(-0.1)))}"
    assert f"hold {expected}." in texts and f"{expected}, whatever" in sheet.statement
    assert "the probability of a set of outcomes becomes at most e^" in texts


@pytest.mark.parametrize("rho", [5e-4, 0.05, 2.0])
def test_limits_of_the_sheet_fail_as_rarely_as_it_says(rho):
    """With Gaussian noise, an ε at δ is exceeded with a probability above δ."""
    sheet = sheet_of(released(GaussianHistogram(ZCDP(rho))))
    counts = np.arange(-40_000, 40_000)
    chances = np.exp(-rho * counts**2.0)
    chances /= chances.sum()
    said_at_most = float(sheet._exception.split()[-1])
    limits = {1: sheet._odds[1], 2: sheet._odds[3]}
    for persons, (_, _, limit) in limits.items():
        changed = counts + persons
        loss = rho * (changed**2.0 - counts**2.0)  # of one cell
        assert chances[loss > limit].sum() <= said_at_most


def test_noise_of_sums_is_that_of_the_release():
    """Wavelets have the same deviation in every cell, but cells share noise."""
    release = released(GeometricHistogram(DP(1)))
    shown = said(sheet_of(release), "How large").rows
    whole = release.answer({}, error=True)
    shared = sheet_of(released(Privelet(DP(1))))
    assert np.isfinite(shared.sd) and not said(shared, "How large").rows
    # sd(a − b) <= sd(a) + sd(b)
    for sheet, factor in ((sheet_of(release), 8**0.5), (shared, 4)):
        least = int(np.ceil(factor * sheet.sd))
        assert f"at least {least} apart" in said(sheet, "different").texts[0]
    assert shown[-1][0] == "16" and float(shown[-1][1]) == pytest.approx(
        float(whole[1][0]), 0.01
    )


def test_an_attribute_may_be_called_as_a_column():
    space = Domain(("sd", "low"), (3, 2), (["a", "b", "c"], ["x", "y"]))
    data = SparseTable.from_keys(space, [0, 3], [50, 70], Bound())
    release = GeometricHistogram(DP(1))(data, np.random.default_rng(0))
    (shown,) = published_tables(release, read_about(ABOUT)).values()
    assert list(shown) == "sd low count count_for_sums sd_ low_ high".split()
    assert shown.sd.tolist() == ["a", "a", "b", "b", "c", "c"]


def test_sampled_and_filtered_tables_say_what_is_missing():
    for mechanism in (PrioritySampling(DP(1), size=5), HighPassFilter(DP(1), theta=40)):
        sheet = sheet_of(released(mechanism))
        absent, text = sheet.table.attrs["absent_cells"], said(sheet, "missing row").texts[0]
        assert absent and f"{absent} combinations have no row" in text and "not a zero" in text
        is_sampled = isinstance(mechanism, PrioritySampling)
        assert ("because rows were sampled" in text) == is_sampled
        assert ("too low" in said(sheet, "add rows").texts[0]) == is_sampled


def test_a_marginal_has_a_file_of_its_own(tmp_path):
    release = released(LaplaceQueries(DP(1), Marginals(1)))
    tables = published_tables(release, read_about(ABOUT))
    assert {*tables} == {"table_district.csv", "table_sex.csv"}
    assert len(tables["table_sex.csv"]) == 2 and "district" not in tables["table_sex.csv"]
    assert "add rows of one file only" in said(sheet_of(release), "add rows").texts[1]


def test_counts_are_left_as_they_are_where_the_owner_asks_for_it():
    release = released(HierarchicalHistogram(DP(1)))
    shown = published_tables(release, read_about(ABOUT | {"rounded": False}))["table.csv"]
    assert "count_for_sums" not in shown and (shown["count"] % 1 != 0).any()


@pytest.mark.parametrize("cls", [cls for cls in ALL if not cls.idealised])
def test_every_mechanism_can_be_published(cls, tmp_path):
    """Dirichlet synthesis is drawn with floating point, and is never saved."""
    mechanism, data = pictured(cls)
    release = mechanism(data, np.random.default_rng(0))
    folder = release.publish(tmp_path / "out", ABOUT, simulated=True)
    archive = tmp_path / "out.zip"
    whole = archive.read_bytes()
    archive.unlink()  # as if the process was stopped before it wrote this file
    release.save(tmp_path / "paid.parquet", simulated=True)
    Release.load(tmp_path / "paid.parquet").publish(folder, ABOUT, simulated=True)
    assert archive.read_bytes() == whole
    shown = pd.read_csv(next(folder.glob("table*.csv")), encoding="utf-8-sig")
    page = (folder / "README.md").read_text()
    are_counts = "Is 12 different from 9?" in page
    assert are_counts == ("sd" in shown) != ("No row is a count" in page)
    assert are_counts != ("What is one row?" in page)
    assert are_counts or "columns sd, low and high" not in page


def test_the_notebook_runs(tmp_path, monkeypatch):
    folder = released(GeometricHistogram(DP(1))).publish(
        tmp_path / "out", ABOUT, simulated=True
    )
    monkeypatch.chdir(folder)
    book = nbformat.read(folder / "reproduce.ipynb", as_version=4)
    names: dict = {}
    code = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert sum("release.answer(" in text for text in code) == 3
    for text in code:
        exec(text, names)


def test_metadata_is_that_of_a_data_package():
    release = released(GeometricHistogram(DP(1)))
    told = metadata(sheet_of(release))
    assert told["differential_privacy"]["epsilon"] == 1
    assert told["differential_privacy"]["bound"]["status"] == "enforced"
    fields = [field["name"] for field in told["resources"][0]["schema"]["fields"]]
    assert fields == list(sheet_of(release).table.columns)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"titel": "x"}, "unknown field `titel`. Known fields: title"),
        ({"title": " "}, "title is empty"),
        ({"date": "soon"}, "soon"),
        ({"edition": 0}, "`int` >= 1 - at `$.edition`"),
        ({"edition": "one"}, "$.edition"),
        ({"earlier": [{"title": "x", "epsilon": -1}]}, "$.earlier[0].epsilon"),
    ],
)
def test_impossible_statements_are_refused_with_their_field(tmp_path, change, words):
    file = tmp_path / "publication.json"
    file.write_text(json.dumps(ABOUT | change))
    with pytest.raises(ValueError) as refused:
        read_about(file)
    assert words in str(refused.value) and str(refused.value).startswith(str(file))


def test_what_is_missing_or_there_already_is_refused_before_anything_is_spent(tmp_path):
    rows().to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "domain.json").write_text(
        json.dumps({"district": [f"D{i}" for i in range(8)], "sex": ["F", "M"]})
    )
    (tmp_path / "about.json").write_text(json.dumps(ABOUT))
    asked = (
        f"release GeometricHistogram {tmp_path}/t.csv --domain {tmp_path}/domain.json --user who"
        f" --bound 2,1 --epsilon 1 --publish {tmp_path}/out --about {tmp_path}"
    )
    assert "does not exist. Write a JSON file" in run(f"{asked}/nothing.json", 2)
    run(f"{asked}/about.json")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert Release.load(tmp_path / "out.parquet").privacy == DP(1)
    assert str(tmp_path) not in (tmp_path / "out" / "commands.txt").read_text()
    assert "exists already" in run(f"{asked}/about.json --force", 2)


def test_about_names_several_people_and_rows():
    about = read_about(ABOUT | {"person": "child", "people": "children"})
    assert (about.persons, about.several) == ("children", "appointments")


def series(folder, monkeypatch, **options):
    """A folder with a table, a budget for two editions and a publication.json with a recipe."""
    monkeypatch.chdir(folder)
    rows().to_csv("t.csv", index=False)
    space = {"district": [f"D{i}" for i in range(8)], "sex": ["F", "M"]}
    (folder / "domain.json").write_text(json.dumps(space))
    options = {"user": "who", "bound": "2,1", "epsilon": 1} | options
    recipe = {
        "mechanism": "GeometricHistogram", "domain": "domain.json", "budget": "b.sqlite", "options": options,
    }  # fmt: skip
    (folder / "publication.json").write_text(json.dumps(ABOUT | {"release": recipe}))

    run("budget new b.sqlite --people patients --unit 'a user' --epsilon 2")


def run(line, code=0):
    return " ".join(run_command(line, code).output.split())


def test_a_series_names_its_earlier_editions_and_adds_their_losses(tmp_path, monkeypatch):
    series(tmp_path, monkeypatch)
    run(f"publish t.csv --publish first --from {tmp_path}/publication.json")
    assert str(tmp_path) not in (tmp_path / "first" / "commands.txt").read_text()
    assert {path.name for path in (tmp_path / "first").iterdir()} == FILES
    assert "exists already" in run("publish t.csv --publish first", 2)
    rows().rename(columns={"sex": "gender"}).to_csv("renamed.csv", index=False)
    assert "sex" in run("publish renamed.csv --publish second", 2)
    assert not (tmp_path / "second.parquet").exists()
    run("publish t.csv --publish second")  # a refusal has cost nothing
    text = (tmp_path / "second" / "README.md").read_text()
    assert "“Appointments &lt;b>2016&lt;/b>, edition 1 (2026-01-02)” with ε = 1" in text
    assert "who is in all of them, ε is 2 in total" in text
    about = read_about("publication.json")
    assert about.edition == 3 and [x.epsilon for x in about.earlier] == [1, 1]
    run("publish t.csv --publish third", 2)  # the budget is used up
    assert not (tmp_path / "third").exists() and read_about("publication.json") == about


def test_ctrl_c_says_what_was_spent_and_how_to_finish(tmp_path, monkeypatch):
    series(tmp_path, monkeypatch)
    about = json.loads((tmp_path / "publication.json").read_text())
    del about["release"]  # which the first edition does not need
    (tmp_path / "publication.json").write_text(json.dumps(about))
    ask = "release GeometricHistogram t.csv --domain domain.json --user who --bound 2,1 --epsilon 1"
    ask = f"{ask} --budget b.sqlite --publish out"

    def stopped(*_, **__):
        raise KeyboardInterrupt

    for name, says in {
        "workbench.cli.publishing.read": "stopped Nothing was spent from",
        "workbench.cli.publishing.save": "no release. The next run pays again.",
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(name, stopped)
            assert says in run(ask, 130)
    with monkeypatch.context() as patch:
        patch.setattr("workbench.owner.publication.publish", stopped)
        told = run(ask, 130)
    assert (
        told.startswith("stopped ε = 1 was spent from") and "b.sqlite and stays spent." in told
    )
    finish = "without paying again: workbench publish t.csv --publish out"
    assert (
        f"The paid release is out.parquet, but its publication is missing. To finish it {finish}"
        in told
    )
    told = run(ask, 2)
    assert "out.parquet exists, but its publication out does not." in told and finish in told
    assert "Nothing was spent" in run("publish t.csv --publish out")
    assert (tmp_path / "out.zip").exists() and len(Budget("b.sqlite").ledger) == 2


def test_a_simulated_edition_is_not_an_earlier_one(tmp_path, monkeypatch):
    series(tmp_path, monkeypatch)
    about = json.loads((tmp_path / "publication.json").read_text())
    del about["release"]["budget"]
    (tmp_path / "publication.json").write_text(json.dumps(about))
    run("publish t.csv --publish out --seed 1")
    assert not read_about("publication.json").earlier


def test_a_recipe_holds_for_every_edition(tmp_path, monkeypatch):
    series(tmp_path, monkeypatch, seed=1)
    assert "$.release.options has 'seed'" in run("publish t.csv --publish out", 2)
    (tmp_path / "publication.json").write_text(json.dumps(ABOUT))
    assert 'has no "release"' in run("publish t.csv --publish out", 2)


def test_every_file_in_words_says_that_a_publication_is_simulated(tmp_path):
    folder = released(GeometricHistogram(DP(1))).publish(tmp_path / "x", ABOUT, simulated=True)
    for name in ("README.html", "README.md", "statement.txt", "metadata.json"):
        assert "Simulated: the noise comes from a seed" in (folder / name).read_text(), name
    assert "imulated" not in sheet_of(GeometricHistogram(DP(1))(table())).statement


def test_a_release_without_a_guarantee_is_never_published(tmp_path, monkeypatch):
    series(tmp_path, monkeypatch)
    ask = (
        "release GeometricHistogram t.csv --domain-from-data --user who --bound 2,1 --epsilon 1"
    )
    assert "--publish does not take --domain-from-data" in run(f"{ask} --publish x", 2)
    run(f"{ask} --out x.parquet")
    with pytest.raises(ValueError, match="no privacy guarantee"):
        Release.load("x.parquet").publish("x", ABOUT)
    assert not (tmp_path / "x").exists() and not (tmp_path / "x.zip").exists()


def test_the_published_command_names_no_folder(tmp_path, monkeypatch):
    series(tmp_path, monkeypatch)
    (tmp_path / "private").mkdir()
    (tmp_path / "t.csv").rename(tmp_path / "private" / "t.csv")
    run(
        "release GeometricHistogram ./private/t.csv --domain=./domain.json --user who --bound 2,1 --epsilon 1"
        " --publish ./private/out --about ./publication.json --unit=patient"
    )
    told = (tmp_path / "private" / "out" / "commands.txt").read_text()
    assert told == (
        "workbench release GeometricHistogram TABLE --domain=domain.json --user who --bound 2,1 --epsilon 1 "
        "--publish out --about publication.json --unit=patient\n"
    )


def test_a_folder_that_lacks_its_zip_is_completed_by_its_own_release_alone(tmp_path):
    first, other = (released(GeometricHistogram(DP(1)), seed) for seed in (1, 2))
    folder = first.publish(tmp_path / "out", ABOUT, simulated=True)
    whole = (tmp_path / "out.zip").read_bytes()
    (tmp_path / "out.zip").unlink()
    for release, simulated in ((other, True), (first, False)):
        with pytest.raises(FileExistsError, match="out exists already"):
            release.publish(folder, ABOUT, simulated=simulated)
    assert not (tmp_path / "out.zip").exists()
    first.publish(folder, ABOUT | {"date": "2026-01-03"}, simulated=True)
    assert (tmp_path / "out.zip").read_bytes() == whole
    for broken in (folder / "release.parquet").write_bytes, (tmp_path / "out.zip").write_bytes:
        broken(b"something else")
        with pytest.raises(FileExistsError, match="exists already"):
            first.publish(folder, ABOUT, simulated=True)
        (tmp_path / "out.zip").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "step, words",
    [
        ("folder._write_folder", "was released before and is published now"),
        ("folder._write_zip", "was released before and is published now"),
        ("record_edition", "was published before and is recorded now"),
    ],
)
def test_an_edition_is_recorded_although_its_process_was_stopped(
    tmp_path, monkeypatch, step, words
):
    series(tmp_path, monkeypatch)

    def stopped(*_):
        raise OSError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(f"workbench.owner.publication.{step}", stopped)
        run("publish t.csv --publish first", 2)
    paid = (tmp_path / "first.parquet").read_bytes()
    assert not read_about("publication.json").earlier
    said = run("publish t.csv --publish first")
    assert words in said and "Nothing was spent" in said
    assert (tmp_path / "first.parquet").read_bytes() == paid
    assert (tmp_path / "first.zip").exists() and (tmp_path / "first" / "README.html").exists()
    assert [x.epsilon for x in read_about("publication.json").earlier] == [1]
    assert "exists already" in run("publish t.csv --publish first", 2)
    run("publish t.csv --publish second")


def test_costs_that_the_data_sheet_does_not_name_are_said(tmp_path, monkeypatch):
    series(tmp_path, monkeypatch, epsilon=0.5)
    assert "but the data sheet names" not in run("publish t.csv --publish first")
    ask = "release GeometricHistogram t.csv --domain domain.json --user who --bound 2,1 --epsilon 0.5"
    run(f"{ask} --budget b.sqlite --out alone.parquet")
    told = run("publish t.csv --publish second")
    assert "has paid ε = 1.5 for these people, but the data sheet names ε = 1." in told


def test_a_publication_names_the_unit_that_its_release_protects(tmp_path, monkeypatch):
    """A release that protects a trip is no release that protects a patient, who has several."""
    series(tmp_path, monkeypatch)
    how = "release GeometricHistogram t.csv --domain domain.json --bound 2,1 --epsilon 1"
    words = "the release protects 'a trip', but the publication would say 'a patient'"
    for option in ("--unit 'a trip'", "--unit 'a trip' --user who"):
        assert words in run(f"{how} {option} --publish out --about publication.json", 2)
        assert not (tmp_path / "out.parquet").exists()
    run(f"{how} --unit 'a trip' --out out.parquet")  # as if it was paid for earlier
    assert words in run("publish t.csv --publish out", 2)
    with pytest.raises(ValueError, match="protects 'a trip'"):
        Release.load("out.parquet").publish("out", ABOUT)
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.zip").exists()
    Release.load("out.parquet").publish("out", ABOUT | {"person": "Trip"})


def test_the_published_command_names_no_cluster(tmp_path):
    request = SimpleNamespace(table=[], folder=None, scheduler="tls://db3.hospital:8786")
    words = ["--scheduler", request.scheduler, f"--scheduler={request.scheduler}", "--workers"]
    said = ["--scheduler", "ADDRESS", "--scheduler=ADDRESS", "--workers"]
    assert [_public_word(request, word) for word in words] == said


def test_a_delta_that_a_price_in_rho_has_spent_is_left_alone():
    sheet = sheet_of(released(StabilityHistogram(ZCDP(0.1, 1e-5))))
    spent = sheet.release.privacy.delta
    assert 1e-6 < spent < sheet.price.delta < 3 * spent and "At δ" in sheet.said
    assert sheet_of(released(StabilityHistogram(ZCDP(0.1, 1e-8)))).price.delta == 1e-6


def test_the_statement_says_that_a_bound_is_believed():
    bound = Bound(2, 1, unit="a patient")
    for own, assumes in ((bound, False), (bound.believed("a patient"), True)):
        release = GeometricHistogram(DP(1))(SparseTable.from_frame(rows(), SPACE, own))
        words = "It assumes that each patient adds at most 1 to each of 2 cells."
        assert (words in sheet_of(release).statement) == assumes
