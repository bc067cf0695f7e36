"""Releases, sweeps and audits on a real Dask cluster: scheduler and workers are processes of their own."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import polars as pl
import pytest

import workbench
from tests.cli.commands import run_command
from workbench import DP, Bound, Domain, RandomRanges
from workbench.datasets import GaussianSparse
from workbench.mechanisms import HighPassFilter, PrioritySampling
from workbench.owner.scale import Rows, release
from workbench.queries import Dyadic
from workbench.trials import Sweep, run
from workbench.trials.metrics import MeanAbsoluteError

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
from workbench.owner.scale.dask import connect  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]
HOME = Path(workbench.__file__).parents[1]
DOMAIN = Domain(("a", "b"), (40, 50))
SMALL = GaussianSparse(m=2000, density=0.05)
ERROR = MeanAbsoluteError(RandomRanges(100, 20))
MECHANISMS = [
    HighPassFilter(DP(1.0), theta=4),
    PrioritySampling(DP(1.0), size=60),
    HighPassFilter(DP(2.0), theta=9, transform=Dyadic()),
]


def started(stack, folder, kind, *arguments, home=HOME):
    """A scheduler or a worker; killed afterwards by its own id."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard"]
    alone = {"PYTHONPATH": str(home), "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    made = subprocess.Popen([*command, *arguments], cwd=folder, env=os.environ | alone, **quiet)
    stack.callback(made.wait)
    stack.callback(made.kill)
    return made


class OwnCluster:
    """A scheduler, its file, and workers."""

    def __init__(self, folder, stack, *security, client=None):
        self.folder, self.stack, self.security, self.client = folder, stack, security, client
        self.file = folder / "scheduler.json"
        self.place = ("--host", "127.0.0.1", "--scheduler-file", str(self.file), *security)
        self.scheduler = started(stack, folder, "scheduler", "--port", "0", *self.place)
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("}"))

    def worker(self, home=HOME):
        alone = ("--no-nanny", "--nthreads", "1")
        return started(self.stack, self.folder, "worker", *alone, *self.place, home=home)

    def workers(self, number, home=HOME):
        """So many, once they are there."""
        made = [self.worker(home) for _ in range(number)]
        address = json.loads(self.file.read_text())["address"]
        with distributed.Client(address, security=self.client) as client:
            client.wait_for_workers(number, timeout=60)
        return made


def copied(folder):
    """The package, elsewhere."""
    shutil.copytree(
        HOME / "workbench", folder / "workbench", ignore=shutil.ignore_patterns("*.pyc")
    )
    return folder


def wait_until(true, seconds=60):
    end = monotonic() + seconds
    while not true():
        assert monotonic() < end, "it did not happen"
        sleep(0.05)


@pytest.fixture
def cluster(tmp_path):
    with ExitStack() as stack:
        yield OwnCluster(tmp_path, stack)


@pytest.fixture
def table(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(6):
        columns = {"a": rng.integers(0, 40, 4000), "b": rng.integers(0, 50, 4000)}
        pl.DataFrame(columns).write_parquet(folder / f"{i}.parquet")
    return folder


def released(table, mechanism, **how):
    rows = Rows.read(table, DOMAIN, Bound(1, 1))
    made = release(mechanism, rows, ranges=7, rng=np.random.default_rng(3), **how)
    return made.estimate.keys.tolist(), made.estimate.values.tolist(), made.ledger


@pytest.mark.parametrize(
    "stage, least, mechanisms",
    [
        ("reading", 0, MECHANISMS[:1]),
        ("cells", 0, MECHANISMS),
        ("cells", 1, MECHANISMS[1:2]),  # between the rounds of priority sampling
    ],
)
def test_a_cluster_gives_the_bytes_of_one_process_though_a_worker_is_killed(
    stage, least, mechanisms, cluster, table, tmp_path
):
    here = [released(table, mechanism) for mechanism in mechanisms]
    first, _ = cluster.workers(2)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    killed = []

    def kill(what, share):
        if what == stage and share >= least and not killed:
            killed.append(os.kill(first.pid, signal.SIGKILL))

    with connect(cluster.file) as executor:
        for mechanism, expected in zip(mechanisms, here, strict=True):
            how = {"executor": executor, "scratch": scratch, "progress": kill}
            assert released(table, mechanism, **how) == expected
    assert killed and not list(scratch.iterdir())


def test_sweeps_have_the_rows_of_one_process(cluster, tmp_path, monkeypatch):
    cluster.workers(2)
    sweep = Sweep([SMALL], [HighPassFilter(DP(0.5), theta=6)], [ERROR], seeds=3)
    here = run(sweep, tmp_path / "here").drop(columns="seconds")
    with connect(cluster.file) as executor:
        there = run(sweep, tmp_path / "there", executor=executor).drop(columns="seconds")
    assert here.equals(there) and len(here) == 3
    assert len(list((tmp_path / "there").iterdir())) == len(list((tmp_path / "here").iterdir()))
    monkeypatch.setenv("WORKBENCH_SCHEDULER", str(cluster.file))
    assert run(sweep, tmp_path / "named").drop(columns="seconds").equals(here)


def test_a_worker_of_other_sources_or_without_the_package_is_refused_by_name(cluster, tmp_path):
    other = copied(tmp_path / "other")
    changed = other / "workbench" / "noise" / "laws.py"
    changed.write_text(changed.read_text() + "\n# another law\n")
    (worker,) = cluster.workers(1, other)
    with pytest.raises(ValueError, match=r"has other source files.*workbench/noise/laws\.py"):
        connect(cluster.file)
    worker.kill()
    empty = tmp_path / "empty"
    empty.mkdir()
    missing = "raise ModuleNotFoundError('No module named workbench')"
    (empty / "workbench.py").write_text(missing)
    cluster.worker(empty)

    def why():
        with pytest.raises(ValueError) as refused:
            connect(cluster.file)
        return str(refused.value)

    wait_until(lambda: "cannot run this package" in why() and "No module named" in why())


def test_a_worker_that_joins_later_is_checked_by_its_first_task(cluster, tmp_path):
    (first,) = cluster.workers(1)
    other = copied(tmp_path / "other")
    (other / "workbench" / "new.py").write_text("")
    with connect(cluster.file) as executor:
        assert executor.submit(max, 1, 2).result() == 2
        cluster.worker(other)
        first.kill()
        with pytest.raises(RuntimeError, match="other source files"):
            executor.submit(max, 1, 2).result(60)


def test_a_scheduler_that_dies_leaves_nothing(cluster, table, tmp_path):
    cluster.workers(1)
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def kill(what, share):
        cluster.scheduler.kill()

    with pytest.raises(ConnectionError, match="nothing was released"):
        with connect(cluster.file) as executor:
            released(table, MECHANISMS[0], executor=executor, scratch=scratch, progress=kill)
    assert not list(scratch.iterdir())
    assert released(table, MECHANISMS[0], scratch=scratch) == released(table, MECHANISMS[0])


def test_a_client_that_was_closed_does_not_hide_that_the_cluster_was_lost(cluster):
    cluster.workers(1)
    with pytest.raises(ConnectionError, match="nothing was released"):
        with connect(cluster.file) as executor:
            executor.submit(len, ())
            executor._client.status = "closed"
            raise ConnectionError("nothing was released")
    executor._client.status = "running"
    executor._client.close()


@pytest.mark.parametrize(
    "address", ["tcp://192.0.2.1:8786", "192.0.2.1:8786", "ucx://127.0.0.1:1", "x"]
)
def test_what_is_not_encrypted_stays_on_this_machine(address):
    with pytest.raises(ValueError, match="unencrypted"):
        connect(address)


def test_an_address_that_does_not_answer_is_said(tmp_path):
    with pytest.raises(ConnectionError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        connect("127.0.0.1:9", timeout=0.5)
    for text in ("{}", "not JSON", "[1]"):
        (tmp_path / "s.json").write_text(text)
        with pytest.raises(ValueError, match="not a file that a Dask scheduler"):
            connect(tmp_path / "s.json")
    with pytest.raises(ValueError, match="not a file that a Dask scheduler"):
        connect(tmp_path / "nowhere.json")
    result = run_command("reproduce cormode2012_fig5 --scheduler tcp://192.0.2.1:1", code=2)
    assert "--insecure" in result.output


def test_a_scheduler_without_workers_is_refused(cluster):
    with pytest.raises(ValueError, match="has no workers"):
        connect(cluster.file)


def test_the_command_releases_on_a_cluster(cluster, table, tmp_path):
    cluster.workers(1)
    (tmp_path / "domain.json").write_text(json.dumps({"a": 40, "b": 50}))
    line = f"release {table} --domain {tmp_path}/domain.json --bound 1,1 --unit row --epsilon 1"
    line += " --mechanism HighPassFilter --theta 4 --simulated --seed 5"
    run_command(f"{line} --out {tmp_path}/here.parquet --scratch {tmp_path}")
    run_command(f"{line} --out {tmp_path}/there.parquet --scheduler {cluster.file}")
    here, there = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("here", "there"))
    assert here.equals(there) and len(here) > 10
    run_command(f"{line} --out {tmp_path}/x.parquet --scheduler x --workers 2", code=2)


def test_tls_with_certificates_of_its_own(tmp_path, table):
    """Of an authority that signs itself, which is also everybody's certificate."""
    made = distributed.Security.temporary()
    files = {
        "ca_file": made.tls_ca_file,
        "cert": made.tls_client_cert,
        "key": made.tls_client_key,
    }
    arguments = []
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        arguments += [f"--tls-{name.replace('_', '-')}", str(tmp_path / name)]
    with ExitStack() as stack:
        cluster = OwnCluster(tmp_path, stack, "--protocol", "tls", *arguments, client=made)
        cluster.workers(1)
        assert json.loads(cluster.file.read_text())["address"].startswith("tls://")
        with connect(cluster.file, security=made) as executor:
            got = released(table, MECHANISMS[0], executor=executor, scratch=tmp_path)
    assert got == released(table, MECHANISMS[0])
