"""The picture of a release shows its counts and its noise, whatever its labels are."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.container import BarContainer, ErrorbarContainer

from tests.agreement import seeded
from workbench import DP, Bound, Domain, Prefixes, Quadtree, Records, SparseTable
from workbench.figures import plots
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    GeometricHistogram,
    HighPassFilter,
    PrivTree,
)
from workbench.mechanisms.laws import Subject

EPSILON = DP(0.1)
FILTER = HighPassFilter(EPSILON, 40)


def released(domain, mechanism=FILTER, counts=300):
    keys = np.arange(0, domain.size, 2)
    table = SparseTable.from_keys(domain, keys, np.full(len(keys), counts), Bound())
    return mechanism(table, seeded(1))


def drawn(release):
    fig = plots.release_picture(release)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        fig.canvas.draw()
    texts = [text.get_text() for box in fig.legends for text in box.get_texts()]
    plots.close(fig)
    assert "0.1-DP" in fig.get_suptitle() and fig.get_figwidth() == pytest.approx(3.4)
    return fig.axes[0], texts


def test_one_ordered_attribute_is_a_series_with_both_parts_of_its_error():
    release = released(Domain(("hour",), (100,)))
    ax, texts = drawn(release)
    assert set(texts) == {"count", "± 2 deviations of noise", "absent cells, at most"}
    assert ax.patches[0].get_data().values == pytest.approx(release.marginal("hour")["count"])
    dense, texts = drawn(released(Domain(("hour",), (100,)), GeometricHistogram(EPSILON)))
    assert set(texts) == {"count", "± 2 deviations of noise"}


def test_a_picture_says_what_counts_of_a_truncated_table_are_about():
    table = SparseTable.from_keys(
        Domain(("x",), (9,)), [1], [50], Bound(4, 1).enforced("a patient")
    )
    release = HighPassFilter(DP(1.0), theta=5)(table)
    fig = plots.release_picture(release)
    heading = fig.get_suptitle()
    assert release.counts_what in heading.replace("\n", " ")
    fig.canvas.draw()
    assert fig._suptitle.get_window_extent().x1 <= fig.bbox.x1


def test_a_long_series_is_added_up():
    release = released(Domain(("minute",), (5000,)))
    ax, texts = drawn(release)
    values = ax.patches[0].get_data().values
    assert len(values) == 100 and values.sum() == pytest.approx(release.answer({})[0])
    assert "count of 50 values of minute" in texts


def test_two_attributes_are_a_map_in_which_noise_is_grey():
    domain = Domain(("town", "hour"), (3, 24), (("Bern", "Genf", "Zug"), None))
    release = released(domain, GeometricHistogram(EPSILON))
    ax, texts = drawn(release)
    assert texts == ["within two deviations of noise"]
    shown = len(ax.collections[0].get_paths())
    assert shown + len(ax.patches) == 72 and 36 <= shown <= 50
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["Bern", "Genf", "Zug"]
    ax, texts = drawn(released(domain, HighPassFilter(EPSILON, 10**6)))
    assert texts == ["nothing released"] and not ax.collections and not ax.patches


def test_all_else_are_the_largest_cells_with_their_noise():
    domain = Domain(("a", "b", "c"), (3, 2, 2))
    release = released(domain, GeometricHistogram(EPSILON))
    ax, texts = drawn(release)
    bars = next(x for x in ax.containers if isinstance(x, BarContainer))
    assert [bar.get_width() for bar in bars] == release.largest(14).counts.tolist()
    assert "chosen" not in ax.figure.get_suptitle()
    errors = next(x for x in ax.containers if isinstance(x, ErrorbarContainer))
    ends = np.array(errors[2][0].get_segments())[:, :, 0]
    assert np.ptp(ends, axis=1) == pytest.approx(4 * release.deviations()[0])
    assert texts == ["count", "± 2 deviations of noise"]
    ax, _ = drawn(released(domain, HighPassFilter(EPSILON, 10**6)))
    assert ax.texts[0].get_text() == "nothing was released"


@pytest.mark.parametrize(
    "shape, mechanism, says",
    [
        ((8, 9, 10), GeometricHistogram(EPSILON), "14 largest of 720 cells"),
        ((3, 4, 5), FILTER, "14 largest of {released} released cells"),
        ((3, 2, 2), HighPassFilter(EPSILON, 150), "6 released of 12 cells"),
    ],
)
def test_cells_that_were_chosen_by_their_counts_have_no_error_bars(shape, mechanism, says):
    release = released(Domain(("a", "b", "c"), shape), mechanism)
    ax, texts = drawn(release)
    says = says.format(released=len(release.estimate))
    heading = ax.figure.get_suptitle().replace("\n", " ")
    assert f"{says}, chosen by their noisy counts" in heading
    assert texts == ["count"]
    assert not any(isinstance(x, ErrorbarContainer) for x in ax.containers)


def test_nodes_that_were_chosen_by_their_counts_have_no_error_bars():
    words = np.repeat([a + b for a in "abcd" for b in "abcdx"], 500)
    release = PrivTree.example(EPSILON)(records(Prefixes("abcdx", 2), words), seeded(1))
    ax, texts = drawn(release)
    assert f"14 largest of {len(release.estimate)} nodes" in ax.figure.get_suptitle()
    assert texts == ["count"]


def test_labels_are_neither_mathematics_nor_long():
    labels = ("$x_", "a\nb", "x" * 100_000, "東京", "", "\x1b[2J")
    for domain in (
        Domain(("$a_", "b"), (6, 2), (labels, None)),
        Domain(("a",), (6,), (labels,)),
        Domain(("a", "b", "c"), (6, 2, 2), (labels, None, None)),
    ):
        drawn(released(domain))


def records(hierarchy, values):
    return Records.from_values(hierarchy, values, Bound())


def test_points_are_the_boxes_that_were_released():
    rng = seeded(2)
    square = Quadtree(2, 6, (0.0, 5.0), (4.0, 9.0), ("x", "y"))
    values = np.concatenate([rng.uniform((0, 5), (1, 6), (4000, 2)), [[3.0, 8.0]]])
    release = BasicAdaptiveHistogram(EPSILON, depth=3, threshold=100)(
        records(square, values), seeded(1)
    )
    ax, texts = drawn(release)
    shown = len(ax.collections[0].get_paths())
    assert shown + len(ax.patches) == len(release.estimate) and shown >= 4
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 4), (5, 9))
    line = Quadtree(1, 6, (0.0,), (4.0,), ("x",))
    release = PrivTree.example(EPSILON)(records(line, values[:, :1] / 2), seeded(1))
    ax, _ = drawn(release)
    assert ax.get_xlabel() == "x" and not len(ax.get_yticks())


def test_strings_are_the_largest_nodes():
    words = np.repeat(["abc", "abd", "x"], [5000, 3000, 4000])
    release = PrivTree.example(EPSILON)(records(Prefixes("abcdx", 3), words), seeded(1))
    ax, texts = drawn(release)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[:3] == ["abc", "x", "abd"] and "string" in ax.get_title("left")


def test_what_has_no_labels_has_no_picture():
    subject = Subject(PrivTree)
    release = subject.release(subject.table([9, 1, 4]), seeded(1))

    class Bits:
        domain = Prefixes()
        contents = "bits"

    with pytest.raises(ValueError, match="there is no picture of bits: need"):
        plots.release_picture(replace(release, estimate=Bits()))
