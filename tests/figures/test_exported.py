"""Files for a paper: what they look like there, what they say of themselves, and the same bytes twice."""

import re
import shutil
import subprocess
from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
import pytest

from workbench import DP, Bound, Domain, SparseTable, widgets
from workbench.datasets import InteractionsTwin
from workbench.estimates import files as provenance
from workbench.figures import Description, Export
from workbench.figures.exported import (
    FORMATS,
    data_in_words,
    escape,
    markdown_table,
    of_figure,
    parse_entries,
    parse_formats,
    table_float,
    write,
)
from workbench.figures.figure import find_figure
from workbench.figures.saved import noise_of, release_record, row_digest
from workbench.mechanisms import GeometricHistogram
from workbench.trials import claims

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ROWS = pd.DataFrame(
    {
        "dataset": "Twin(seed=0)",
        "seed": [0, 1],
        "seconds": [0.5, 0.7],
        "metric": "MeanAbsoluteError",
        "value": [0.1, 1 / 3],
        "truth_public": True,
    }
)
TABLE = pd.DataFrame(
    {"what": ["S̃ at ε ≤ 1", "10⁻³ & 50 %"], "we measure": [0.30000000000000004, 1e6]}
)
SPEC = Description(
    "demo2020_fig1,epsilon=0.5", "Error against ε", "workbench export cormode2012_fig5", id="demo2020_fig1"
)  # fmt: skip


def draw():
    fig, ax = plt.subplots(figsize=(3.4, 2), layout="constrained")
    ax.plot([1, 2], [3, 4], label="ε (a \\ b)")
    ax.legend()
    return {"": fig}


EXPORT = Export(draw, ROWS, SPEC, "quick", {"Numbers": TABLE}, "page 1", ["cormode2012"])


def written(folder, export=EXPORT, formats=FORMATS, **how):
    return write(export, folder, **(dict(width="column", font="serif", formats=formats) | how))


def test_every_file_says_where_it_comes_from_in_the_same_bytes(tmp_path):
    one, two = written(tmp_path / "one"), written(tmp_path / "two")
    names = {path.suffix for path in one}
    assert names == {".pdf", ".svg", ".png", ".csv", ".tex", ".bib", ".md"}
    for a, b in zip(one, two, strict=True):
        assert a.read_bytes() == b.read_bytes(), a.name
        if a.suffix != ".bib":
            record = provenance.read(a)
            assert record["command"] == f"{SPEC.command} --width column --font serif"
            assert record["rows"] == row_digest(ROWS) and record["noise"] == "simulated"
            assert record["commit"] == provenance.commit() and record["versions"]
    assert b"CreationDate" not in one[0].read_bytes()


def test_fonts_are_in_the_pdf_and_letters_are_paths_in_the_svg(tmp_path):
    pdf, svg, *_ = written(tmp_path)
    assert b"/FontFile2" in pdf.read_bytes() and b"/Type3" not in pdf.read_bytes()
    text = svg.read_text()
    assert "<text" not in text and "<path" in text, "no browser has the font"


def test_a_table_has_no_picture_and_private_truth_no_file(tmp_path):
    table = replace(EXPORT, draw=dict)
    assert {path.suffix for path in written(tmp_path, table)} == {".csv", ".tex", ".bib", ".md"}
    private = replace(EXPORT, rows=ROWS.assign(truth_public=False))
    with pytest.raises(ValueError, match="not public"):
        written(tmp_path / "private", private)
    assert not (tmp_path / "private").exists()


def test_what_the_paper_says_is_told_by_a_full_run_alone(tmp_path):
    table4 = find_figure("fan2015_table4")
    figure = table4(**table4.quick)
    table = "What the paper says, and what we found"
    assert table not in of_figure(figure, "quick", tmp_path).tables
    found = of_figure(figure, "paper", tmp_path).tables[table]
    assert list(found) == ["the paper says", "outcome", "measured", "why"]
    assert len(found) and {*found.outcome} <= {*claims.COLUMNS.values()}


def test_a_bibliography_grows_by_what_is_cited(tmp_path):
    written(tmp_path, formats=["tex"])
    written(tmp_path, replace(EXPORT, cite=["hay2010"]), formats=["tex"])
    entries = parse_entries((tmp_path / "workbench.bib").read_text())
    assert {"dpworkbench"} <= {*entries} <= {"dpworkbench", "cormode2012", "hay2010"}


def test_a_bibliography_says_which_command_wrote_it(tmp_path):
    for command in ("workbench export a@b", "workbench export c@d"):
        spec = replace(SPEC, command=command)
        written(tmp_path, replace(EXPORT, description=spec), formats=["tex"])
        file = tmp_path / "workbench.bib"
        assert provenance.read(file)["command"].startswith(command)
        head, _, rest = file.read_text().partition("@")
        assert head.startswith("% workbench: {") and head.count("\n") == 2 and rest


def test_rows_agree_to_nine_digits_and_whatever_time_they_took():
    again = ROWS.assign(seconds=9.0, value=ROWS.value * (1 + 1e-14))
    assert row_digest(again) == row_digest(ROWS)
    assert row_digest(ROWS.assign(value=ROWS.value * 1.001)) != row_digest(ROWS)
    timed = ROWS.assign(metric="throughput")
    assert row_digest(timed.assign(value=7.0)) == row_digest(timed)


def test_the_record_of_a_release_has_its_guarantee_and_its_hash(tmp_path):
    private = SparseTable(Domain(("x",), (8,)), np.array([1]), np.array([5]), bound=Bound(1, 1))
    file = GeometricHistogram(DP(1.0))(private).save(tmp_path / "r.parquet")
    record = release_record(file)
    assert record["guarantee"] == "1-DP" and not record["simulated"]
    assert record["sha256"] == provenance.file_sha256(file)


def test_noise_of_the_system_is_told_from_simulated_noise():
    assert noise_of(ROWS.assign(simulated=False), False) == "system"
    assert noise_of(ROWS.assign(simulated=[True, True]), False) == noise_of(ROWS, False)


@pytest.mark.parametrize(
    "name, content, why",
    [
        ("x.png", b"\x89PNG\r\n\x1a\nnone", "has no record of how it was made"),
        ("x.pdf", b"%PDF-1.4 /Keywords (not json)", "has no record of how it was made"),
        ("x.pdf", b"%PDF-1.4 /Keywords (", "has no record of how it was made"),
        ("x.svg", b"<svg><dc:description>[1]</dc:description></svg>", "has no record"),
        ("x.parquet", b"PAR1", "has no record of how it was made"),
        ("x.md", b'<!-- workbench: {"command": "", "files": []} -->', "has no record"),
        ("x.md", b"<!-- workbench: {" + b'"a":{' * 10**5 + b"} -->", "has no record"),
        ("x.csv", b"a,b\n1,2\n", "has no record of how it was made"),
        (
            "x.md",
            b'<!-- workbench: {"command": "x", "format": 2} -->',
            "another version.*format 2",
        ),
    ],
)
def test_a_file_from_elsewhere_is_said_to_be_one(name, content, why, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=why):
        provenance.read(tmp_path / name)


def test_a_table_that_was_changed_is_not_believed(tmp_path):
    (rows,) = written(tmp_path, formats=["csv"])
    rows.write_text("value\n1\n")
    with pytest.raises(ValueError, match="changed since"):
        provenance.read(rows)


@pytest.mark.parametrize("text", ["", "gif", "pdf,gif", ","])
def test_formats_that_there_are_not_are_named(text):
    with pytest.raises(ValueError, match="--format.*pdf,svg,png,csv,tex,md"):
        parse_formats(text)


def test_tables_have_numbers_as_people_write_them():
    assert markdown_table(TABLE.set_index("what")).splitlines() == [
        "| what | we measure |",
        "| --- | --- |",
        "| S̃ at ε ≤ 1 | 0.3 |",
        "| 10⁻³ & 50 % | 1,000,000 |",
    ]
    latex = table_float(TABLE, "c", "l", wide=False)
    assert r"$\tilde{S}$ at $\varepsilon$ $\le$ 1 & 0.3 \\" in latex
    assert r"10$^{-3}$ \& 50 \%" in latex
    assert escape("日") == "[U+65E5]"


def test_a_table_whose_words_fit_no_column_takes_the_page():
    many = pd.DataFrame({f"measurement{i}": ["1,000,000"] for i in range(9)})
    assert r"\begin{table*}" in table_float(many, "c", "l", wide=False)
    assert r"\begin{table}" in table_float(TABLE, "c", "l", wide=False)


def test_a_long_table_is_divided_into_pages(tmp_path):
    long = pd.DataFrame({"what": ["Gowalla twin"] * 100})
    written(tmp_path, replace(EXPORT, tables={"Numbers": long}), formats=["tex"])
    (file,) = tmp_path.glob("*_tables.tex")
    text = file.read_text()
    assert text.count("Gowalla stand-in") == 100 and "twin" not in text
    assert text.count(r"\begin{table}") == 3 and text.count("Numbers, continued: ") == 2
    labels = re.findall(r"label\{(.*?)\}", text)
    assert len(set(labels)) == 3


def test_a_caption_names_the_data_for_which_others_stand_in():
    (said,) = data_in_words([InteractionsTwin.foursquare()])
    assert said.startswith(
        "Stand-in data for Foursquare of February to July 2012, which nobody"
    )
    assert said.endswith("users = 45,289, items = 17,967, records = 1,276,988)")


def test_a_panel_of_a_mechanism_says_its_settings_and_data_in_words():
    export = widgets.from_settings("ThresholdSampling", ["epsilon=0.5"]).to_export()
    assert export.caption.startswith("ε = 0.5, τ = ")
    assert "Simulated data: Synthetic table" in export.caption and "1,000" in export.caption
    (drawing,) = export.draw().values()
    titles = [ax.get_title(loc="left").replace("\n", " ") for ax in drawing.axes]
    plt.close(drawing)
    assert titles and all(title.endswith(", ε = 0.5") for title in titles)
    said = export.description.title + export.caption
    assert "ThresholdSampling" not in said and "GaussianSparse" not in said


PAGE = r"""\documentclass[twocolumn]{article}
\usepackage{graphicx,booktabs,tabularx}
\begin{document}
\title{A page}\author{Nobody}\maketitle
INPUTS
\bibliographystyle{plain}\bibliography{workbench}
\end{document}
"""


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
@pytest.mark.parametrize("width", ["column", "page"])
def test_a_page_of_two_columns_takes_what_is_exported(width, tmp_path):
    says = (
        "With t ≥ b + ln 2/ε the structure costs at most 2ε; the cost is independent of depth."
    )
    judged = pd.DataFrame({"the paper says": [says], "verdict": ["holds"], "measured": [says]})
    tables = {"Numbers": TABLE, "Verdicts": judged}
    files = written(tmp_path, replace(EXPORT, tables=tables), width=width)
    inputs = [rf"\input{{{path.stem}}}" for path in files if path.suffix == ".tex"]
    (tmp_path / "page.tex").write_text(PAGE.replace("INPUTS", "\n".join(inputs)))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    made = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stdout[-2000:]
    assert "Overfull" not in made.stdout and "Missing character" not in made.stdout
