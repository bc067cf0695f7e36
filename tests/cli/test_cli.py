"""Commands: what they print and write, and that bad input is one clear line and nothing written."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from typer.main import get_command
from typer.testing import CliRunner

from docs.pages.api import commands
from tests.cli.commands import last_options, run_command
from tests.crash import disks
from tests.widgets.pages import until
from workbench.cli import app
from workbench.estimates import files
from workbench.estimates.release import Release
from workbench.figures import batch as reproduction_batch
from workbench.figures.status import NotebookRun, read_status
from workbench.spaces import Domain

BIN = Path(sys.executable).parent
DOMAIN = {"home": ["kent", "bristol"], "age": {"from": 0, "to": 99}, "hour": 24}
TABLE = "home,age,hour,n,note\nkent,30,8,50,\nbristol,41,9,70,x\nkent,30,8,7,\nkent,5,0,0,\n"
RELEASE = "--domain domain.json --count n --bound 1,1 --unit x --epsilon 1 --out out.parquet"
FILTER = f"{RELEASE} --mechanism HighPassFilter --theta 20"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder that holds a table and its domain."""
    monkeypatch.chdir(tmp_path)
    Path("domain.json").write_text(json.dumps(DOMAIN))
    Path("t.csv").write_text(TABLE)
    return run_command


def complaint(result):
    """What a command says went wrong, in its first line."""
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()[0]


# --- release ------------------------------------------------------------------------------


def test_release_writes_a_summary(run):
    result = run(f"release t.csv {FILTER}")
    assert "1-DP: if the records of x" in result.stdout
    assert "of 4,800 cells" in result.stdout
    assert "at most 1 to one cell" in result.stdout
    release = Release.load("out.parquet")
    assert not release.simulated and release.privacy.epsilon == 1
    frame = pd.read_parquet("out.parquet")  # any reader opens it
    assert set(zip(frame.home, frame.age, frame.hour, strict=True)) >= {
        ("kent", 30, 8),
        ("bristol", 41, 9),
    }
    assert abs(frame.set_index("home")["count"]["bristol"].max() - 70) < 40


def test_release_tells_nothing_of_rows_but_through_the_release(run):
    """How many rows repeat a cell is private: the same counts in other rows print the same."""
    seeded = f"{FILTER} --seed 1 --simulated --force"
    said = run(f"release t.csv {seeded}").stdout
    head, *lines = TABLE.splitlines()
    summed = [line.replace(",50,", ",57,") for line in lines if ",7," not in line]
    Path("t.csv").write_text("\n".join([head, *summed]))
    assert run(f"release t.csv {seeded}").stdout == said


def test_mechanism_options_may_stand_anywhere(run):
    run(f"release --size 5 --mechanism PrioritySampling t.csv --theta=2 {RELEASE}")
    assert len(Release.load("out.parquet").estimate) <= 5


BAD = {
    "release t.csv --count n --bound 1,1 --epsilon 1 --mechanism HighPassFilter --theta 9 "
    "--out out.parquet": "--domain is missing",
    "release t.csv --count n --domain domain.json --epsilon 1 --mechanism HighPassFilter "
    "--out out.parquet": "--bound is missing",
    f"release t.csv {FILTER} --domain-from-data": "need exactly one of them",
    f"release nowhere.csv {FILTER}": "nowhere.csv: no such file",
    f"release t.csv {FILTER} --out there/out.parquet": "there: no such folder",
    f"release t.csv {FILTER} --out t.csv": "t.csv is an input of this command",
    f"release t.csv {FILTER} --domain nowhere.json": "nowhere.json",
    f"release t.csv {FILTER} --domain t.csv": "t.csv, line 1: not JSON",
    f"release t.csv {FILTER} --bound 1": "--bound '1': need L0,LINF",
    f"release t.csv {FILTER} --bound 1,x": "--bound = 'x' is not allowed",
    f"release t.csv {FILTER} --bound 0,1": "--bound: l0 = 0",
    f"release t.csv {FILTER} --bound 1,nan": "--bound: linf = nan",
    f"release t.csv {FILTER} --epsilon 0": "--epsilon = 0 is not allowed: need a finite number > 0",
    f"release t.csv {FILTER} --epsilon nan": "--epsilon = nan is not allowed: need a finite number > 0",
    f"release t.csv {FILTER} --epsilon inf": "--epsilon = inf is not allowed: need a finite number > 0",
    f"release t.csv {RELEASE} --mechanism GeometricHistogram --delta 1e-6": "spends no delta",
    f"release t.csv {RELEASE} --mechanism HighPassFilter --theta -1": "--theta = -1",
    f"release t.csv {RELEASE} --mechanism HighPassFilter --theta x": "--theta = 'x'",
    f"release t.csv {FILTER} --tau 3": "HighPassFilter has no option --tau; it has --theta",
    f"release t.csv {RELEASE} --mechanism HighPassFilter": "needs either theta or size",
    f"release t.csv {RELEASE} --mechanism PrioritySampling": "PrioritySampling needs --size",
    f"release t.csv {RELEASE} --mechanism PrioritySampling --size 0": "--size = 0",
    f"release t.csv {RELEASE} --mechanism PrioritySampling --size 5000": "at most 4800",
    f"release t.csv {RELEASE} --mechanism Laborious": "Laborious cannot be asked for here",
    f"release t.csv {FILTER} --seed 1": "anyone who knows --seed can subtract the noise",
    f"release t.csv {FILTER} --count home": "is an attribute of the domain",
    f"release t.csv {FILTER} --count m": "t.csv has no column m. It has ['home'",
    f"release t.csv {FILTER} --count note": "row 1, column 'note': found nothing",
}


@pytest.mark.parametrize("line", BAD)
def test_release_refuses(run, line, monkeypatch):
    from workbench import noise

    def drawn(*_, **__):
        raise AssertionError("noise was drawn")

    for name in ("threshold_sample", "priority_sample"):
        monkeypatch.setattr(noise, name, drawn)
    assert BAD[line] in complaint(run(last_options(line), code=2))
    assert {p.name for p in Path().iterdir()} == {"domain.json", "t.csv"}


def test_release_reads_lines_as_people_write_them(run):
    """A byte order mark, quotes, spaces, lines within a field, empty lines at the end."""
    text = '\ufeffhome,"age",hour,n\r\n"kent ",30, 8,40.0\r\n"a\r\nb",1,1,1\r\n\r\n\r\n'
    Path("t.csv").write_bytes(text.encode())
    said = complaint(run(f"release t.csv {FILTER}", code=2))
    assert "row 2, column 'home': found 'a\\r\\nb'" in said
    Path("t.csv").write_bytes(text.replace("a\r\nb", "kent").encode())
    run(f"release t.csv {FILTER}")


@pytest.mark.parametrize("name", ["--simulate", "--thet 3", "--thet=3", "--domian d.json"])
def test_an_option_that_nobody_has_is_refused_with_those_alike(run, name):
    said = run(last_options(f"release t.csv {FILTER} {name}"), code=2).stderr
    assert f"No such option: {name.split('=')[0].split()[0]}" in said
    said = run(f"release {name} t.csv --mechanism HighPassFilter --bound 1,1", code=2).stderr
    assert "No such option" in said, "not that another option is missing"


def test_a_missing_domain_is_explained_with_an_example(run):
    line = FILTER.replace("--domain domain.json", "")
    said = run(f"release t.csv {line}", code=2).stderr
    Path("example.json").write_text(re.search(r"\{.*\}", said).group())
    assert Domain.read("example.json").attributes == ("age", "sex", "hour")
    assert "--domain-from-data" in said and "voids the guarantee" in said


def test_a_domain_from_the_data_promises_nothing(run):
    words = FILTER.replace("--domain domain.json", "--domain-from-data")
    Path("t.csv").write_text("home,n\nkent,50\nbristol,60\n")
    result = run(f"release t.csv {words}")
    assert "promises nothing" in result.stdout and "No guarantee" in result.stdout
    release = Release.load("out.parquet")
    assert release.privacy.epsilon == np.inf
    assert release.ledger[0].name == "domain read off the data"
    assert release.estimate.domain.labels == (("bristol", "kent"),)
    assert "promises nothing" in run("show out.parquet").stdout


def test_a_seed_is_said(run):
    for _ in range(2):
        result = run(f"release t.csv {FILTER} --seed 3 --simulated --force")
        assert "Simulated: anyone with the seed" in result.stdout
    assert Release.load("out.parquet").simulated
    assert "Do not publish" in run("show out.parquet").stdout


def test_lines_of_help_break_where_the_screen_ends():
    from workbench.cli import app

    helps = [info.help for info in app.registered_commands]
    assert helps and all("\n" not in help.replace("\n\n", "") for help in helps)


def test_every_option_is_described():
    """By a name in a docstring, in which a typing error would leave it without help."""
    for name, command in commands(get_command(app), "workbench"):
        assert all(param.help for param in command.params), name
        assert "--with MODULE" in f"{command.epilog} {command.help}", name


def test_help_lists_the_mechanisms_on_one_screen(run):
    narrow = CliRunner().invoke(app, ["release", "--help"], terminal_width=60).stdout
    assert max(map(len, narrow.splitlines())) <= 60
    lines = run("release --help").stdout.splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 80
    family = lines[lines.index("Histograms and trees:") :]
    assert family[1].startswith("  LaplaceHistogram ") and "Chosen queries:" in family
    names = {word for line in lines for word in line.split()}
    assert {"HighPassFilter", "SRA", "PrivTree", "LaplaceQueries"} <= names
    assert "Laborious" not in names and "--with MODULE" in "\n".join(lines)


def test_help_of_a_mechanism_shows_its_own_options_alone(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    said = run("release highpassfilter --help").stdout
    assert "Usage: root release HighPassFilter" in said and "--theta" in said
    assert "--tau" not in said and "--item" not in said and "--box" not in said
    assert "--item" in run("release SRA --help").stdout
    assert "--box" in run("release --mechanism PrivTree --help").stdout


def test_the_first_word_is_the_mechanism(run):
    run(f"release highpassfilter t.csv {RELEASE} --theta 20")
    assert Release.load("out.parquet").mechanism.startswith("HighPassFilter(")
    Path("SRA").write_text(TABLE)
    run(f"release HighPassFilter ./SRA {RELEASE} --theta 20 --force")
    run(f"release HighPassFilter SRA {RELEASE} --theta 20 --force")


TYPED = {
    f"release HighPassFilter t.csv {RELEASE} --theta 3,5 --force": "need a number, with a point: 3.5",
    "release HighPassFilter t.csv --epsilon 0,5": "--epsilon = '0,5' is not allowed: need a number, "
    "with a point: 0.5",
    "show ex.py": "ex.py is not a release: need a .parquet file, or a .csv file",
    "answer out.parquet hour=0-10": "A range is written 0..10",
    "release HPA t.csv --domain domain.json --user note --epsilon 1 --l 3 --out two.parquet": "--d is "
    "missing: need the number of records per user",
    f"release HighPassFilter t.csv {RELEASE} --theta 1e20 --force": "need a number >= 0 and <= 11258",
    f"release HighPassFilter t.csv {RELEASE} --theta 20": "out.parquet exists: choose another name, or "
    "--force to",
    "release HighPassFilter t.csv --domain domain.json --count n --user home --epsilon 1 --theta 9 "
    "--bound 1000000000,1000000000 --out two.parquet": "Lower the bound",
}


@pytest.mark.parametrize("line", TYPED)
def test_a_refusal_speaks_of_what_was_typed(run, line):
    Path("ex.py").write_text("x = 1")
    run(f"release HighPassFilter t.csv {RELEASE} --theta 20")
    assert TYPED[line] in complaint(run(line, code=2))


NAMED = {
    "release t.csv --mechanism": "--mechanism needs a name",
    "release HighPassFilter t.csv --with": "--with needs a name",
    "release": "which mechanism? Name it first",
    "release t.csv --epsilon 1": "which mechanism? Name it first",
    "release HighPasFilter t.csv": "no mechanism 'HighPasFilter'. Did you mean HighPassFilter",
    "release nowhere.csv": "no mechanism 'nowhere.csv'",
    "release HighPassFilter t.csv --mechanism SRA --out x.csv --epsilon 1 --domain domain.json": "HighPass"
    "Filter: no such file",
    "release SRA HPA t.csv --out x.csv --epsilon 1 --domain domain.json": "HPA: no such file",
    "release t.csv --mechanism SRA --mechanism SRA": "--mechanism SRA and SRA: need one mechanism",
    "release HighPassFilter t.csv --theta 1 --theta 2": "--theta is given twice",
    "release HighPassFilter t.csv --l 3": "has no option --l; it has --theta",
    "release HighPassFilter t.csv --alpha 3": "HighPassFilter has no option --alpha",
    "release HighPassFilter t.csv --thta 3": "No such option: --thta. Did you mean --theta",
    f"release LaplaceQueries t.csv {RELEASE} --marginals 1 --workload q.txt": "--workload or --marginals: need",
}


@pytest.mark.parametrize("line", NAMED)
def test_a_mechanism_and_its_options_are_asked_for_once_and_by_name(run, line):
    assert NAMED[line] in complaint(run(line, code=2))
    assert not Path("out.parquet").exists()


# --- show ---------------------------------------------------------------------------------


def test_show_says_what_a_release_promises(run):
    run(f"release t.csv {FILTER}")
    said = " ".join(run("show out.parquet --top 1").stdout.split())
    for words in (
        "1-DP: if the records of x", "e^1 = 2.72", "add-remove-one-unit", "survivors",
        "HighPassFilter(budget=DP(epsilon=1.0), theta=20)", "of 4,800 cells",
        "The largest of the", "bristol", "released cells, chosen by their noisy counts. Positive noise",
    ):  # fmt: skip
        assert words in said, words
    assert "Do not publish" not in said and "kent" not in said


def test_a_read_only_folder_is_named_with_the_reason(run):
    run(f"release t.csv {FILTER}")
    folder = Path("ro")
    folder.mkdir()
    lines = {
        "show out.parquet --picture ro/x.png": "ro: Read-only file system",
        f"release t.csv {FILTER} --out ro/x.parquet": "ro/x.parquet was not written: Read-only file system",
        "domain new --from t.csv --out ro/d.json": "ro/d.json: Read-only file system",
    }
    with disks.read_only(folder):
        said = [complaint(run(last_options(line), code=2)) for line in lines]
    for text, words in zip(said, lines.values(), strict=True):
        reasons = [words, words.replace("Read-only file system", "Permission denied")]
        assert any(reason in text for reason in reasons), text
        assert "Errno" not in text and "draft" not in text and "no room" not in text


def test_show_refuses_what_is_no_release(run):
    assert "does not exist" in complaint(run("show nowhere.parquet", code=2))
    assert "not a complete release" in complaint(run("show t.csv", code=2))
    Path("x.parquet").write_text(TABLE)
    assert "not a complete Parquet file" in complaint(run("show x.parquet", code=2))
    pd.read_csv("t.csv").to_parquet("t.parquet")
    assert "not a release" in complaint(run("show t.parquet", code=2))


def forged(path, edit):
    """A release file somebody else wrote: its record as `edit` leaves it."""
    table = parquet.read_table(path)
    record = json.loads(table.schema.metadata[b"workbench"])
    edit(record)
    metadata = {**table.schema.metadata, b"workbench": json.dumps(record).encode()}
    parquet.write_table(table.replace_schema_metadata(metadata), path)


NASTY = "\x1b]0;owned\x07\x1b[2J\x9b8m\u202e\r\n0.1-DP [bold]x[/bold] [/]"


def test_text_of_a_file_reaches_the_terminal_as_text(run):
    run(f"release t.csv {FILTER}")

    def edit(record):
        record["mechanism"] = NASTY
        record["ledger"][0]["name"] = NASTY
        record["versions"][NASTY] = NASTY

    forged("out.parquet", edit)
    said = run("show out.parquet").stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert (
        "Mechanism  \\x1b]0;owned\\x07\\x1b[2J\\x9b8m\\u202e\\r\\n0.1-DP [bold]x[/bold] [/]"
        in said
    )
    assert not re.search("^0.1-DP", said, re.M), "no line of our own can be forged"
    assert said.count("[bold]x[/bold]") == 2
    said = run("whereis out.parquet").stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert said.count("[bold]x[/bold]") == 4


def test_a_relation_of_a_file_reaches_the_terminal_as_text(run):
    run(f"release t.csv {FILTER}")
    forged("out.parquet", lambda record: record["ledger"][0].update(relation=NASTY))
    result = CliRunner().invoke(app, ["show", "out.parquet"])  # shown or refused
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", result.output)


def test_labels_and_names_of_columns_reach_the_terminal_as_text(run):
    Path("domain.json").write_text(json.dumps({"[red]\x1b[2J": ["[bold]\x1b[8m", "b"]}))
    column, label = "[red]\x1b[2J", "[bold]\x1b[8m"
    Path("t.csv").write_text(f"{column},n\n{label},100\nb,70\n")
    run(f"release t.csv {FILTER}")
    said = run("show out.parquet").stdout
    assert "\x1b" not in said and "[red]\\x1b[2J" in said and "[bold]\\x1b[8m" in said
    Path("t.csv").write_text(f"{column},n\n\x1b[2J,100\n")
    assert "\x1b" not in run(f"release t.csv {FILTER} --force", code=2).output


# --- data ---------------------------------------------------------------------------------


def test_data_lists_fetches_finds_and_verifies(run, monkeypatch):
    from workbench.datasets import published

    rows = [
        published.FileStatus("trips", "od.csv", Path("/d/od.csv.gz"), 1_234_567, "different"),
        published.FileStatus("trips", "xwalk.csv", None, None, "missing"),
    ]
    asked = []
    monkeypatch.setattr(published, "verify", lambda name=None: rows)
    monkeypatch.setattr(published, "path", lambda name: (rows[0].path,))
    monkeypatch.setattr(
        published, "fetch", lambda *a, **k: asked.append((a, k)) or [Path("/d")]
    )
    said = run("data list").stdout
    assert "1.2 MB" in said and "missing" in said and "workbench data fetch trips" in said
    assert run("data path trips").stdout == "/d/od.csv.gz\n"
    assert run("data fetch trips --force").stdout == "/d\n"
    assert asked == [(("trips",), {"force": True})]
    assert "od.csv.gz is not the published file" in complaint(run("data verify trips", code=1))


def test_data_list_says_what_figures_use_and_each_remedy_once(run, monkeypatch):
    from workbench.figures import figure as data

    remedy = "it stands in for a file that nobody publishes, " + "as far as anybody knows " * 3
    uses = [
        data.DataUse(figure, "ATwin()", "twin", remedy)
        for figure in ("p2001_fig1", "p2001_fig2")
    ]
    uses += [data.DataUse("p2001_fig2", "A()", "real file", data.OWN)] * 2
    monkeypatch.setattr(data, "data_in_use", lambda: uses)
    said = run("data list").stdout
    assert said.count("nobody") == 1 and said.count("as for p2001_fig1") == 1
    assert said.count("real file") == 2 and "as for p2001_fig2" not in said


def test_data_names_what_there_is(run):
    assert "adult" in run("data list").stdout
    assert "onthemap" in complaint(run("data path nothing", code=2))


# --- reproduce ----------------------------------------------------------------------------

HEAD = 'profile = "quick"\nresults = "../experiments/results"'


def book(stem, *cells):
    Path("notebooks").mkdir(exist_ok=True)
    head = new_code_cell(HEAD, metadata={"tags": ["parameters"]})
    made = new_notebook(cells=[head, *map(new_code_cell, cells)])
    nbformat.write(made, f"notebooks/{stem}.ipynb")


@pytest.mark.slow
def test_reproduce_runs_reports_and_says_what_failed(run, monkeypatch):
    monkeypatch.setattr(reproduction_batch, "source_hashes", lambda project, store: {})
    book("bad", "raise ValueError('no od.csv.gz')")
    book("good", "1")
    where = "--notebooks notebooks --results results"
    result = run(f"reproduce {where}", code=1)
    assert complaint(result) == (
        "Error: bad: In [3]: raise ValueError('no od.csv.gz') — ValueError: no od.csv.gz"
    )
    assert "bad.partial.ipynb" in result.stderr
    page = Path("results/quick/report.html")
    assert f"Report: {page.resolve()}" in result.stdout and page.exists()
    assert "good: done in" in result.stdout
    assert "good: up to date" in run(f"reproduce good {where}").stdout
    assert "no figure 'fig7'. There are: bad, good" in complaint(
        run(f"reproduce fig7 {where}", code=2)
    )
    assert "profile = 'full'" in complaint(run(f"reproduce {where} --profile full", code=2))


def test_each_change_of_a_run_is_a_line(capsys):
    from workbench.cli.figures import _announcer

    announce = _announcer({})
    for stem in ("fig1", "fig2", "fig3", "fig4"):
        announce(NotebookRun(stem))
    announce(NotebookRun("fig2", state="running"))
    announce(NotebookRun("fig3", state="done", seconds=2, verdicts={"holds": 3}))
    announce(NotebookRun("fig4", state="failed", error="KeyError: [x]"))
    assert capsys.readouterr().out.splitlines() == [
        "fig2: running",
        "fig3: done in 2.0 s (3 holds) — 1 of 4, under a minute left",
        "fig4: failed: KeyError: [x] — 2 of 4, under a minute left",
    ]


# --- the program --------------------------------------------------------------------------


def started(*words, **more):
    """A command in a process of its own."""
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen([str(BIN / words[0]), *words[1:]], **pipes, **more)


HEAVY = {"numpy", "pandas", "polars", "papermill", "matplotlib", "scipy", "numba", "pyarrow"}


def loaded(line):
    """The heavy libraries that a command loads; what it printed."""
    code = (
        "import sys; from workbench.cli import app\n"
        f"try: app({line.split()!r})\n"
        "except SystemExit: pass\n"
        f"print('loaded', *({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    *printed, last = done.stdout.splitlines()
    return set(last.split()[1:]), "\n".join(printed) + done.stderr


QUICK = {
    "--help": "reproduce",
    f"release t.csv {RELEASE} --mechanism HighPassFilter".replace(
        "--domain domain.json ", ""
    ): ("--domain is missing"),
    "release t.csv --mechanism X --epsilon 1 --out o.parquet": "no mechanism 'X'",
    f"release nowhere.csv {FILTER}": "nowhere.csv: no such file",
    "show nowhere.parquet": "'nowhere.parquet' does not exist",
    "bank nowhere.session": "'nowhere.session' does not exist",
    "laws Nowhere": "no mechanism 'Nowhere'",
    "audit Nowhere": "no mechanism 'Nowhere'",
    "lab --notebooks nowhere": "'nowhere' does not exist",
}


@pytest.mark.slow
@pytest.mark.parametrize("line", QUICK)
def test_help_and_the_usual_refusals_load_nothing_heavy(run, line):
    libraries, printed = loaded(line)
    needed = (
        {"numpy"} if line.startswith("release") else set()
    )  # of the mechanism's own options
    assert QUICK[line] in printed and libraries <= needed


def test_jupyter_knows_the_command():
    process = started("jupyter", "workbench", "show", "nowhere.parquet")
    out, err = process.communicate(timeout=90)
    assert process.returncode == 2 and out == ""
    assert "'nowhere.parquet' does not exist" in err.splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_stops_a_run_and_says_what_is_kept(run, workers):
    stems = ("fig1", "fig2")
    for stem in stems:
        begun = f"import os, pathlib\npathlib.Path('{stem}').write_text(str(os.getpid()))"
        book(stem, begun, "import time; time.sleep(600)")
    where = "--notebooks notebooks --results results --workers"
    process = started("workbench", "reproduce", *where.split(), workers)
    pids = [Path("notebooks", stem) for stem in stems[: int(workers)]]
    until(lambda: all(pid.exists() and pid.read_text() for pid in pids))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 130
    assert err.startswith("stopped\n0 of 2 notebooks are finished") and "Traceback" not in err
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
    assert read_status(Path("results/quick/fig1")) == {}, "the next run runs it"


def test_ctrl_c_elsewhere_is_one_line_too(run, monkeypatch):
    from workbench.datasets import published

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(published, "verify", interrupted)
    assert complaint(run("data list", code=130)) == "stopped"


def test_ctrl_c_during_an_import_of_a_library_is_one_line_too(run, monkeypatch):
    from workbench.datasets import published

    def interrupted():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("numpy's C extensions failed")  # noqa: B904

    monkeypatch.setattr(published, "verify", interrupted)
    assert complaint(run("data list", code=130)) == "stopped"


SCRIPT = "from workbench.__main__ import main; main()"


@pytest.mark.parametrize("started_as", [["-m", "workbench"], ["-c", SCRIPT]])
def test_ctrl_c_during_the_first_imports_is_one_line_too(tmp_path, started_as):
    (tmp_path / "typer.py").write_text(
        "import os, signal, time\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\n"
        "except BaseException:\n    raise ImportError('no typer')\n"
    )
    root = Path(__file__).parents[2]
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    assert {*scripts.values()} == {"workbench.__main__:main"}
    stopped = subprocess.run(
        [sys.executable, *started_as, "release"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])},
        timeout=60,
    )
    assert (stopped.returncode, stopped.stderr) == (130, "stopped\n")


@pytest.mark.slow
def test_lab_opens_and_stops(tmp_path):
    folders = {f"JUPYTER_{k}_DIR": str(tmp_path / k) for k in ("CONFIG", "DATA", "RUNTIME")}
    (tmp_path / "notebooks").mkdir()
    process = started(
        "workbench", "lab", "--no-browser", "--port", "8931",
        "--notebooks", str(tmp_path / "notebooks"), env=os.environ | folders,
    )  # fmt: skip
    address = re.search(r"http://127\.0\.0\.1:\d+/lab\?token=\S+", process.stdout.readline())
    assert address, process.communicate()
    import requests

    api = address.group().replace("/lab?", "/api/contents?")
    assert requests.get(api, timeout=60).json()["type"] == "directory"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 0
    with pytest.raises(requests.ConnectionError):
        requests.get(api, timeout=2)


def serving_of(folder, server):
    """A process that serves a module with this source."""
    (folder / "server.py").write_text(server)
    code = (
        "from pathlib import Path\nfrom workbench.cli import serving\n"
        "serving.serve('x', 8700, ['server'], '/', Path('.'), False)\n"
    )
    paths = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
    )


def test_a_server_ends_with_the_command_that_is_killed(tmp_path):
    """What the server writes to is closed when it has ended, and not before."""
    process = serving_of(tmp_path, "import os, time\nos.write(1, b'up')\ntime.sleep(600)\n")
    assert process.stdout.read(2) == "up"
    process.kill()
    assert process.stdout.read() == ""  # it has ended, or this would wait for ten minutes


@pytest.mark.parametrize("pressed", [True, False], ids=["after Ctrl-C", "on its own"])
def test_a_server_that_fails_while_it_stops_has_stopped(tmp_path, pressed):
    press = "os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)" if pressed else "pass"
    server = (
        f"import os, signal, time\ntry:\n    {press}\n"
        "except KeyboardInterrupt:\n    pass\nfinally:\n    raise RuntimeError('no such kernel')\n"
    )
    process = serving_of(tmp_path, server)
    said, wrong = process.communicate()
    assert (process.returncode == 0) == ("Stopping." in said) == pressed
    assert ("no such kernel" in wrong) == (not pressed)


@pytest.mark.slow
def test_export_writes_what_a_panel_shows(run, tmp_path):
    to = tmp_path / "out"
    words = "export HighPassFilter epsilon=0.2 theta=3.0 sides=1 seed=3"
    run(f"{words} --to {to} --width column --font serif")
    (sidecar,) = to.glob("*.json")
    command = json.loads(sidecar.read_text())["command"]
    assert command == f"workbench {words} --width column --font serif"
    kinds = {".pdf", ".svg", ".png", ".csv", ".json", ".tex", ".md", ".bib"}
    assert {p.suffix for p in to.iterdir()} == kinds
    before = {p.name: p.read_bytes() for p in to.iterdir()}
    run(f"{words} --to {to} --width column --font serif")
    assert {p.name: p.read_bytes() for p in to.iterdir()} == before
    for path in to.iterdir():
        if path.suffix != ".json":
            assert command in run(f"whereis {path}").stdout.replace("\n", "")
    assert "rows agree" in run(f"whereis --check {to / sidecar.stem}").stdout


EXPORTS = {
    "HighPasFilter": "no figure or mechanism 'HighPasFilter'. Did you mean HighPassFilter?",
    "../PrivTree": "no figure or mechanism '../PrivTree'",
    "HighPassFilter --width wide": "need column, page, slide, or a number of centimetres",
    "HighPassFilter --font Comic": "need one of sans, serif",
    "HighPassFilter --format pdf,gif": "--format 'gif' is not allowed: need some of pdf,svg",
    "cormode2012_fig5 -p epsilo=1": "no parameter 'epsilo'. Did you mean epsilon?",
    "cormode2012_fig5 --profile ../x": "profile = '../x' is not allowed",
    "SRA epsilon": "no figure or mechanism 'epsilon'. An example is cormode2012_fig5",
    "HighPassFilter epsilon=much": "epsilon = 'much' is not allowed: need a number",
}


@pytest.mark.parametrize("words", EXPORTS)
def test_export_says_what_is_wrong_in_one_line(run, words, tmp_path):
    said = complaint(run(f"export {words} --to {tmp_path / 'there'}", code=2))
    assert EXPORTS[words] in said and not (tmp_path / "there").exists()


def recorded(path, **more):
    """A file that says that of itself."""
    record = {
        "command": "workbench export HighPassFilter",
        "noise": "simulated",
        "rows": "x",
    } | more
    path.write_text(files.comment("md", record))
    return path


def test_whereis_prints_what_a_file_says_and_refuses_to_spend_again(run, tmp_path):
    file = recorded(
        tmp_path / "a.md", noise="system", figure="a_figure", commit="abc with changes"
    )
    told = run(f"whereis {file}").stdout
    assert "a_figure" in told and "system" in told and "abc with changes" in told
    assert told.endswith("\nworkbench export HighPassFilter\n")
    assert "figure with simulated noise" in complaint(run(f"whereis --check {file}", code=2))


STRANGE = {
    "rm -rf .": "",
    "workbench release private.csv": "",
    "workbench release t.csv --seed 1 --simulated": "",
    "workbench export 'a": "",
    "workbench export a;rm -rf": "workbench export 'a;rm' -rf\n",
}


@pytest.mark.parametrize("command", STRANGE)
def test_whereis_prints_nothing_of_a_strangers_file_that_does_harm(run, tmp_path, command):
    file = recorded(tmp_path / "a.md", command=command, title="\x1b[2J")
    told, shown = run(f"whereis {file}").stdout, STRANGE[command]
    assert told.endswith(f"\n\n{shown}") if shown else command not in told
    assert "\x1b" not in told
    assert complaint(run(f"whereis --check {file}", code=2))


@pytest.mark.slow
def test_whereis_says_that_rows_differ(run, tmp_path):
    file = recorded(tmp_path / "a.md", profile="explorer")
    assert "rows differ" in complaint(run(f"whereis --check {file}", code=1))


@pytest.mark.slow
def test_explore_says_what_it_needs(run, tmp_path):
    assert "'nowhere' does not exist" in complaint(run("explore --notebooks nowhere", code=2))
    assert "no such notebook" in complaint(run(f"explore --notebooks {tmp_path}", code=2))


def test_a_release_says_how_much_of_it_nothing_would_give(run):
    told = run(f"release t.csv {RELEASE} --mechanism HighPassFilter --theta 3").stdout
    assert "An empty table would release about" in told
    assert "every release of the same data adds its ε" in told


def test_rows_without_a_count_count_one(run):
    asked = "--domain domain.json --bound 1,1 --unit person --out out.parquet"
    asked += " --epsilon 1e6 --epsilon-is-meant"
    run(f"release t.csv {asked} --mechanism highpassfilter --theta 1")
    assert Release.load("out.parquet").estimate.weights().tolist() == [1, 2, 1]
    said = complaint(run("release HighPassFilter t.csv --theta --out x.parquet", code=2))
    assert "--theta needs a value" in said


def test_a_release_whose_lines_nobody_reads_is_made_all_the_same(run):
    reader, writer = os.pipe()
    os.close(reader)
    command = [BIN / "workbench", "release", "t.csv", *FILTER.split()]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    assert Release.load("out.parquet").bound.unit == "x"
