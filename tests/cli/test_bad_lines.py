"""More than 300 command lines that cannot be done: each is one clear line on stderr, and nothing is written.

Lines whose words are tested stand in a table `BAD` or `NAMED` of the other files.
"""

import gzip
import json
import os
import shlex
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.cli.commands import last_options
from workbench.cli import app
from workbench.compiled import WITH

HEAD = "who,home,age,day,x,y,word,n"
ROWS = """\
u1,kent,30,2024-02-01,1.5,2.5,abc,5
u2,bristol,41,2024-02-02,9.0,0.5,x,7
u1,kent,30,2024-02-03,3.0,3.0,abd,7"""
DOMAIN = {"home": ["kent", "bristol"], "age": {"from": 0, "to": 99}}
BASE = "release t.csv --domain domain.json --bound 1,1 --unit row --epsilon 1 --out new.parquet"
FILTER = f"{BASE} --mechanism HighPassFilter --theta 20"
USERS = "release t.csv --domain domain.json --user who --epsilon 1 --out new.parquet"
SRA = f"{USERS} --mechanism SRA --l 2"
POINTS = (
    "release t.csv --bound 1,1 --unit row --epsilon 1 --out new.parquet --mechanism PrivTree"
)
SYNTHESIZE = (
    "synthesize t.csv --domain domain.json --bound 1,1 --unit row --epsilon 1 --out new.csv "
    "--rows 5 --marginals 1"
)
ADVISE = "advise --domain domain.json --epsilon 1 --size 10 --records 500 --cells 20"
NUMBERS = ("x", "1_0", "", "1,2", "0x1")


def bad_tables():
    """Files of tables that are damaged, or hold what the domain does not allow."""
    good = f"{HEAD}\n{ROWS}\n"
    field = "u1,kent,30,2024-02-01,1,1,a,5\n"
    return {
        "empty.csv": b"",
        "header.csv.gz": gzip.compress(good.encode())[:40],
        "twice.csv": f"{HEAD},home\n{ROWS.splitlines()[0]},kent\n".encode(),
        "some.csv": f"{good}u3,kent\n".encode(),
        "more.csv": f"{good}{field[:-1]},9,9\n".encode(),
        "utf16.csv": good.encode("utf-16"),
        "latin.csv": f"{good}u3,k\xe9nt,30,2024-02-01,1,1,a,5\n".encode("latin-1"),
        "zero.csv": f"{good}u3,k\0nt,30,2024-02-01,1,1,a,5\n".encode(),
        "outside.csv": f"{good}u3,dover,30,2024-02-01,1,1,a,5\n".encode(),
        "mixed.csv": f"{good}u3,kent,thirty,2024-02-01,1,1,a,5\n".encode(),
        "missing.csv": f"{good}u3,,30,2024-02-01,1,1,a,5\n".encode(),
        "long.csv": f"{good}u3,{'k' * 200_000},30,2024-02-01,1,1,a,5\n".encode(),
        "script.csv": f"{good}u3,Кент,30,2024-02-01,1,1,a,5\n".encode(),
        "comma.csv": f'{good}u3,"ke,n""t",30,2024-02-01,1,1,a,5\n'.encode(),
        "quote.csv": f'{good}u3,"kent,30,2024-02-01,1,1,a,5\n'.encode(),
        "other.csv": b"a,b\n1,2\n",
        "torn.parquet": b"PAR1 and no more",
        "torn.sqlite": b"SQLite format 3\0 and no more",
    }


BAD_COUNTS = ("1.5", "-1", "NaN", "inf", "1e300", "9007199254740993", "x", "")
BAD_DOMAINS = {
    "repeated.json": '{"home": ["kent"], "home": ["bristol"]}',
    "step.json": '{"age": {"from": 0, "to": 9, "step": "x"}}',
    "nostep.json": '{"age": {"from": 0, "to": 9, "step": 0}}',
    "large.json": '{"home": 10000000000000000000000}',
    "deep.json": '{"home": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "list.json": '["home", "age"]',
    "nothing.json": "",
    "half.json": '{"home": ["kent"',
    "empty.json": "{}",
    "nolabels.json": '{"home": []}',
    "count.json": '{"count": ["kent"]}',
    "same.json": '{"home": ["kent", "kent"]}',
    "null.json": '{"home": null}',
    "bool.json": '{"home": true}',
    "float.json": '{"home": 2.5}',
    "minus.json": '{"home": -3}',
    "mixed.json": '{"home": ["kent", 3]}',
    "nofile.json": '{"home": {"file": "nowhere.txt"}}',
    "public.json": '{"home": ["kent"], "truth_public": "yes"}',
    "bins.json": '{"age": {"low": 9, "high": 1, "width": 2}}',
    "edges.json": '{"age": {"edges": [3, 1]}}',
    "time.json": '{"hour": {"time": "century", "column": "day"}}',
    "map.json": '{"canton": {"map": "nowhere.csv", "column": "home"}}',
    "huge.json": '{"age": {"from": 0, "to": 1e400}}',
    "surrogate.json": '{"home": ["\\ud800"]}',
}


def lines():
    """The lines, as they are typed."""
    yield from _of_release()
    yield from _of_files()
    yield from _of_kinds()
    yield from _of_others()


def _of_release():
    for option in ("--epsilon", "--delta", "--seed"):
        for text in NUMBERS:
            yield last_options(f"{FILTER} {option}={shlex.quote(text)}")
    for option in ("--theta", "--size", "--sides"):
        for text in (*NUMBERS, "nan", "inf", "-1"):
            yield f"{BASE} --mechanism HighPassFilter {option}={shlex.quote(text)}"
    for text in ("-1", "-inf", "1e-400"):
        yield last_options(f"{FILTER} --epsilon {text}")
    for text in ("", *"1,0 -1,1 1.5,1 1,1,1,1 2,1,9 1_0,1".split()):
        yield last_options(f"{FILTER} --bound {shlex.quote(text)}")
    for text in ("2", "-1", "nan"):
        yield last_options(f"{FILTER} --delta {text}")
    for name in ("", "DirichletSynthesis", "../x"):
        yield f"{BASE} --mechanism {shlex.quote(name)}"
    for rest in (
        "--nope", "--nope=3", "-x", "more", "--seed -1 --simulated", "--out domain.json", "--out .",
        "--out new.txt", "--domain .", "--count word", "--context age", "--choose theta=1,2",
        "--choose-epsilon 1", "--choose sides=1,2 --choose-epsilon 1", "--box x=0..1",
        "--taxonomy codes.csv", "--transform x", "--user who --report-cut x",
    ):  # fmt: skip
        yield last_options(f"{FILTER} {rest}")
    yield from (
        "release t.csv", "release --out new.parquet",
        "release t.csv --epsilon 1 --out new.parquet --mechanism HighPassFilter",
        "release t.csv --epsilon 1 --out new.parquet --bound 1,1 --mechanism HighPassFilter",
    )  # fmt: skip


def _of_files():
    for name in bad_tables():
        yield FILTER.replace("t.csv", name)
        if name not in ("header.csv.gz", "torn.sqlite"):
            yield SYNTHESIZE.replace("t.csv", name)
    for i in range(len(BAD_COUNTS)):
        yield f"{FILTER} --count n".replace("t.csv", f"count{i}.csv")
    for name in BAD_DOMAINS:
        yield FILTER.replace("domain.json", name)
        yield ADVISE.replace("domain.json", name)
        yield f"domain check {name} t.csv"
    yield SRA.replace("t.csv", "nobody.csv")
    yield f"{FILTER} --user who".replace("t.csv", "nobody.csv")


def _of_kinds():
    for rest in (
        "--mechanism SRA --l 0", "--mechanism SRA --l x", "--mechanism HPA --l 2 --d 0",
        "--mechanism HPA --l 2 --d 1 --split 1,1", "--mechanism LPA --bound 0",
        "--mechanism FPA --bound 3 --k 2", "--mechanism GS --bound 3 --grouping best",
        "--mechanism GS --bound 3 --beta 0", "--mechanism SRA --l 2 --domain-from-data",
        "--mechanism SRA --l 2 --item nothing",
        "--mechanism SRA --l 2 --item home --context home", "--mechanism SRA --l 2 --report-cut 0",
        "--mechanism SRA --l suggested", "--mechanism SRA --choose l=0,1 --choose-epsilon 1",
    ):  # fmt: skip
        yield f"{USERS} {rest}"
    for rest in (
        "--box x", "--box x=1", "--box x=0..x", "--box x=0..0", "--box =0..1", "--box x=0..inf",
        "--box x=0..nan", "--box x=0..1,x=0..1", "--box nothing=0..1", "--box x=0..9 --levels 0",
        "--box x=0..9 --levels 99",
        "--strings nothing", "--strings word --length 0", "--strings word --length 999",
        "--strings word --alphabet aa", "--strings word --alphabet ''", "--taxonomy t.csv --code home",
        "--taxonomy codes.csv --code nothing", "--box x=0..9 --threshold -1",
        "--box x=0..9 --measure 2", "--box x=0..9 --depth 3",
        "--box x=0..9 --count word", "--box count=0..9", "--box x=0..9 --bound 1",
    ):  # fmt: skip
        yield last_options(f"{POINTS} {rest}")
    laplace = f"{BASE} --mechanism LaplaceQueries"
    for rest in (
        "", "--marginals 0", "--marginals x", "--marginals -1", "--marginals codes.csv",
        "--workload nowhere.txt", "--workload t.csv", "--workload half.json", "--workload list.json",
        "--workload empty.csv", "--workload deep.json", "--workload .", "--marginals 1 --noise x",
    ):  # fmt: skip
        yield f"{laplace} {rest}"
    for rest in (
        "--rows -1", "--rows 1.5", "--rows 1_0", "--rows 1e99", "--rows ''", "--marginals 0",
        "--marginals nowhere", "--marginals deep.json", "--out new", "--epsilon 0",
        "--domain nowhere.json", "--bound 1", "--seed 3", "--mechanism SRA", "--nope",
    ):  # fmt: skip
        yield last_options(f"{SYNTHESIZE} {rest}")


def _of_others():
    for file in ("", *". nowhere.parquet t.csv plain.parquet torn.parquet domain.json".split()):
        yield f"show {shlex.quote(file)}"
        yield f"answer {shlex.quote(file)} home=kent"
    for top in (*NUMBERS, "-1"):
        yield f"show good.parquet --top={shlex.quote(top)}"
    for query in (
        "", "home", "home=", "=kent", "home=dover", "age=7..", "age=9..7", "age=100", "town=kent",
        "age=7..9..11",
        "home=kent|", "home=kent home=bristol", "'home=\"kent'", "age=x",
    ):  # fmt: skip
        yield f"answer good.parquet {shlex.quote(query)}"
    yield from (
        "answer", "show", "answer good.parquet --errors home=kent",
    )  # fmt: skip
    for rest in (
        "--epsilon 0", "--epsilon nan", "--epsilon x", "--size 0", "--size 1_0", "--size -1", "--size 1e9",
        "--bound 1", "--bound x", "--delta 2", "--density 0.5", "--density 2 --mean 1 --spread 1",
        "--queries 0", "--queries x", "--queries 1_0", "--queries 99999", "--task x",
        "--task boxes --shape 1",
        "--task boxes --shape x", "--task marginals --order 0", "--task marginals --order 9",
        "--task rows --rows x", "--task users", "--task users --users 3", "--task points", "--task strings",
        "--task points --box x", "--task users --users 0 --per-user 1", "--task rows --order 0",
        "--task degrees --records -1", "--task points --box x=0..1 --records -3", "--mechanism SRA",
    ):  # fmt: skip
        yield last_options(f"{ADVISE} {rest}")
    yield from ("advise", "advise --epsilon 1", "advise --epsilon 1 --size 3")
    yield from (
        "budget new", "budget new b", "budget new b --people p --unit u --epsilon 0",
        "budget new b --people '' --unit u --epsilon 1",
        "budget new b --people p --unit u --epsilon 1 --delta 2",
        "budget new b --people p --unit u --epsilon 1 --relation x",
        "budget new there/b --people p --unit u --epsilon 1",
        "budget new t.csv --people p --unit u --epsilon 1", "budget show nowhere", "budget show .",
        "budget spend", "budget show", "budget new b --people p --unit u --epsilon 1_0",
    )  # fmt: skip
    yield from (
        "domain", "domain new --from torn.parquet", "domain new --from empty.csv",
        "domain new --from t.csv --out domain.json", "domain check",
        "domain check domain.json torn.parquet", "domain nope", "domain new --from .",
    )  # fmt: skip
    yield from (
        "nope", "--nope", "data nope", "data path nothing", "data verify nothing", "data fetch nothing",
        "data path", "whereis", "whereis nowhere.png", "whereis t.csv", "whereis .", "export",
        "export nothing -p a=b", "new", "new mechanism", "new mechanism lower", "new mechanism ../X",
        "laws", "laws nothing", "laws nowhere:X", "laws workbench:X", "init", "init .",
        "reproduce --workers x", "reproduce --profile full", "reproduce --workers 0",
        "reproduce --timeout x", "reproduce --timeout 0", "reproduce nothing", "lab --port x",
        "explore --port x", "audit --runs x", "data fetch", "release --with nowhere_at_all t.csv",
        "--with", "--with nowhere_at_all release t.csv",
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a good table, a good release, and all that is bad."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKBENCH_TRACEBACKS", raising=False)
    for name in (WITH, "PYTHONPATH"):  # which --with sets
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("t.csv").write_text(f"{HEAD}\n{ROWS}\n")
    Path("domain.json").write_text(json.dumps(DOMAIN))
    Path("codes.csv").write_text("A,\nA1,A\n")
    Path("nobody.csv").write_text(f"{HEAD}\n{ROWS}\n,kent,30,2024-02-01,1,1,a,5\n")
    for name, content in bad_tables().items():
        Path(name).write_bytes(content)
    for name, text in BAD_DOMAINS.items():
        Path(name).write_text(text)
    for i, count in enumerate(BAD_COUNTS):
        Path(f"count{i}.csv").write_text(
            f"{HEAD}\n{ROWS}\nu3,kent,30,2024-02-01,1,1,a,{count}\n"
        )
    pd.DataFrame({"a": [1]}).to_parquet("plain.parquet")
    done = CliRunner().invoke(app, shlex.split(FILTER.replace("new.parquet", "good.parquet")))
    assert done.exit_code == 0, done.output
    return tmp_path


def _complaints(line):
    """What is wrong with how a line is refused, in words."""
    before = {(p.name, p.stat().st_mtime_ns) for p in Path().iterdir()}
    done = CliRunner().invoke(app, shlex.split(line))
    after = {(p.name, p.stat().st_mtime_ns) for p in Path().iterdir()}
    said = done.stderr
    if done.exit_code != 2:
        yield f"exit code {done.exit_code}, {done.stdout[:80]!r}"
    first = said.splitlines()[0] if said else ""
    helps = not line.split()[1:] and "Usage:" in done.output  # a group of commands without one
    if not (first.startswith("Error: ") and 10 < len(first) < 1500) and not helps:
        yield f"says {first[:200]!r}"
    if "Traceback" in done.output or "mistake of the workbench" in said:
        yield f"a mistake of ours: {said[:200]!r}"
    if before != after:
        yield f"wrote {after ^ before}"


def test_no_bad_line_ends_in_a_traceback(folder):
    every = list(dict.fromkeys(lines()))
    assert len(every) >= 300
    wrong = [f"{line}: {what}" for line in every for what in _complaints(line)]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(every)}", *wrong])


def test_a_mistake_of_ours_is_a_line_too(folder, monkeypatch):
    from workbench.cli import publishing

    monkeypatch.setattr(publishing, "read", lambda *_: 1 / 0)
    done = CliRunner().invoke(app, shlex.split(FILTER))
    assert done.exit_code == 1 and "Traceback" not in done.output
    assert "mistake of the workbench, please report it (ZeroDivisionError" in done.stderr
    assert not os.path.exists("new.parquet")
