"""Release files of every mechanism, written before its names changed, load and answer the same."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from workbench import Boxes, Domain, Marginals, RandomRanges, Ranges, Release

FOLDER = Path(__file__).parent / "releases"
MECHANISMS, FRAMES = {}, {}
for file in FOLDER.glob("mechanisms*.json"):  # one for each time that files were added
    MECHANISMS |= json.loads(file.read_text())
for file in FOLDER.glob("frames*.json.xz"):
    FRAMES |= json.loads(lzma.decompress(file.read_bytes()))


@pytest.fixture(scope="module")
def recorded():
    return {
        name: answers
        for file in FOLDER.glob("answers*.npz")
        for name, answers in np.load(file).items()
    }


def workloads(release):
    """What was asked when the files were written."""
    domain = release.estimate.domain
    if isinstance(domain, Domain):
        cells = np.arange(domain.size)
        yield "ranges", RandomRanges(5, 40, 1)
        yield "cells", Ranges(cells, cells + 1)
        yield "marginals", Marginals(1)
        return
    random = np.random.default_rng(3)
    lo = random.integers(0, 5, (40, 2))
    hi = lo + random.integers(1, 4, (40, 2))
    yield "boxes", Boxes(lo, np.minimum(hi, 8))


def answered(release, workload, error):
    """The answers, empty where the estimate refuses the workload."""
    try:
        answers = release.answer(workload, error=error)
    except ValueError:
        return np.array([])
    return np.stack(answers) if error else np.asarray(answers)


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_old_file_loads_and_answers_the_same(name, recorded):
    release = Release.load(FOLDER / f"{name}.parquet")
    assert release.simulated and str(release.mechanism) == MECHANISMS[name]
    frame = release.estimate.to_frame()
    if release.estimate.kind == "answers":  # whose frame was that of the file
        frame = release.estimate.to_arrow().to_pandas()
        frame.insert(1, "deviation", np.sqrt(frame.pop("variance")))
    assert frame.to_csv(index=False) == FRAMES[name]
    for what, workload in workloads(release):
        for error in (False, True):
            expected = recorded[f"{name}/{what}-{error}"]
            found = answered(release, workload, error)
            is_model = release.estimate.kind == "tree-model"  # whose sums are of exponentials
            np.testing.assert_allclose(found, expected, rtol=1e-9 if is_model else 0)
    if f"{name}/own" in recorded:
        answers = release.answer(release.estimate.workload, error=True)
        np.testing.assert_array_equal(np.stack(answers), recorded[f"{name}/own"])


def test_every_mechanism_that_can_be_saved_has_a_file():
    from workbench import mechanisms

    saved = {name.partition("-")[0] for name in MECHANISMS}
    unsaved = {cls.__name__ for cls in mechanisms.ALL} - saved
    idealised = {cls.__name__ for cls in mechanisms.ALL if cls.idealised}
    assert unsaved == idealised, "never saved"
