"""Mechanisms that add noise and then make the noisy counts agree with each other. Two of these mechanisms
release histograms. The third, InfTDA, adds noise first to the counts of large regions, and then to the counts
of smaller regions.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import ceil, log, prod
from typing import Any, NamedTuple

import numpy as np

from workbench import noise
from workbench.data import Bound, SparseTable
from workbench.data.cells import cells_of_counts
from workbench.estimates import HierarchicalSums, Histogram, Summary
from workbench.estimates.linear_noise import TreeNoise
from workbench.estimates.release import Release
from workbench.inference import (
    isotonic,
    round_to_counts,
    tree_least_squares,
    zero_negative_subtrees,
)
from workbench.inference.consistency import tree_sums
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import (
    Mechanism,
    add_noise,
    as_bound,
    budget_field,
    gaussian_law,
    memory_field,
    noise_law_field,
    private_bound,
    settle_noise,
    split_epsilon,
)
from workbench.privacy import DP, REPLACE, ZCDP, Receipt
from workbench.queries import Ranges, Recipe, level_sizes
from workbench.spaces import Domain
from workbench.value import Float, Int, not_allowed, parameter, sealed, shown, value

# Hierarchical histogram

_MAX_BRANCHING = 2**20


def _check_branching(k: Any) -> str | None:
    whole = isinstance(k, int) and not isinstance(k, bool)
    if k == "optimal" or (whole and 2 <= k <= _MAX_BRANCHING):
        return None
    return f'need an integer from 2 to {_MAX_BRANCHING}, or "optimal"'


@value
class HierarchicalHistogram(Mechanism):
    """Release a tree of consistent noisy counts.

    The leaves of the tree are the cells of the domain in order. Every other node has `branching` children on
    the level below, and is the sum of these children. The mechanism adds noise to all nodes. Then it adjusts
    the noisy counts by least squares, so that each parent is the sum of its children. Hay et al. call this
    estimate H̄. With `consistent` = False, the mechanism releases the noisy tree without this adjustment (the
    estimate H̃ of Hay et al.).

    Guarantee  The release is ε-DP for each unit, or ρ-zCDP if the budget is a ρ. If the count of one cell
               changes by one, one node on each level of the tree changes by one. So each of the ℓ levels of the
               tree gets ε/ℓ, or ρ/ℓ. The adjustment uses only noisy counts, so the adjustment costs no budget.
    Assumes    No protected unit changes the counts by more than the table's bound allows. All cells of the
               domain (the public list of possible cells) fit in memory.
    Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, section 4, Theorems 3 and 4. The choice of the
               branching factor is due to Qardaji, Yang & Li, PVLDB 2013.
    Differs    By default, the mechanism sets each node with a negative count to 0, together with all nodes
               below this node. A parent may then differ from the sum of its children. Hay et al. do not say how
               to answer a query for a range of cells from such a tree. With `ranges` = "nodes", we add up the
               fewest nodes that cover the range. This sum gives the errors that Hay et al. print. With `ranges`
               = "leaves", we add up the leaves in the range. Because negative leaves were set to 0, a leaf with
               a true count of 0 is too high on average, by up to half the mean absolute value of its noise.
               `inference.NonnegativeLeastSquares` gives smaller errors than both choices of `ranges`. If the
               domain size is not a power of the branching factor, some nodes have fewer children. We add no
               cells to fill the tree. The result is not rounded to integers (see `inference.round_to_counts`).
               The noise is the same as in LaplaceHistogram.
    Cost       Time and memory are O(number of possible cells).
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    branching: int | str = parameter(
        2, check=_check_branching, doc='children per node, k ("optimal" is best for ranges)'
    )
    consistent: bool = parameter(
        True,
        choices=(True, False),
        doc="make each parent the sum of its children, by least squares",
    )
    nonnegative: bool = parameter(
        True, choices=(True, False), doc="set each negative node to 0, and all nodes below"
    )
    ranges: str = parameter(
        "nodes",
        choices=("nodes", "leaves"),
        doc="answer to a range of cells (sum of the fewest nodes, or sum of the leaves)",
    )
    noise: str = noise_law_field(zcdp=True)
    memory: int = memory_field()
    cite = "hay2010"
    title = "hierarchical histogram"
    audited = audited_at(2, consistent=False)
    fixed_price = True

    def __post_init__(self) -> None:
        settle_noise(self)

    def branching_factor(self, m: int) -> int:
        """Return the number k of children per node, for a domain of m cells. If the field `branching` is a
        number, k is this number. If `branching` is "optimal", the function chooses k so that the average
        variance of range queries is about as small as possible.

        The optimal k minimises (k − 1)·h³ − 2(k + 1)·h²/3, where h = ⌈log_k m⌉ is the height of the tree. The
        formula is Equation 3 of Qardaji, Yang & Li (2013), who add no noise to the root of the tree. For fewer
        than about a hundred cells, the best tree has one level below the root. If the budget is a ρ, the
        variance of a node grows with h instead of h². The function then divides the formula by h, so k = 4 is
        best for large domains.
        """
        if isinstance(self.branching, int):
            return self.branching

        def cost(k: int) -> float:
            h = len(level_sizes(m, k)) - 1
            nodes = (k - 1) * h - 2 * (k + 1) / 3  # of a range, about
            return nodes * (h if isinstance(self.budget, ZCDP) else h**2)

        largest = min(m, _MAX_BRANCHING, 2 + ceil(log(max(m, 2)) ** 3))
        return min(range(2, max(2, largest) + 1), key=cost)

    def variance(
        self, domain: Domain, workload: Recipe, l1: Bound | float
    ) -> Float[np.ndarray, " queries"]:
        """Return the exact variance of the answer to each query of a workload. Each query is for a range of
        cells. The answers are sums of leaves after the least-squares adjustment, with `nonnegative` = False.
        The tree must be complete, so all leaves must have the same depth.

        `l1` is the largest total change of the counts that one protected unit can cause. If the budget is a
        ρ, pass the table's `Bound` as `l1` instead.

        The function computes the variance from eigenvalues. The least-squares adjustment solves a linear
        system. The matrix of this system has the eigenvalues λ_j = 1 + k + … + k^j, where k is the branching
        factor. Each eigenvector of λ_j has one entry per cell. The entries are constant on blocks of k^j cells,
        and add up to 0 over blocks of k^(j+1) cells. Let w be the vector with a one for each cell in the range,
        and zeros elsewhere. A block of k^j cells contains c cells of the range. Let |w|_j² be the sum of c²/k^j
        over all blocks of k^j cells. The projection of w on the eigenvectors of λ_j has the squared norm |w|_j²
        − |w|_(j+1)².
        """
        k = self.branching_factor(domain.size)
        ranges = workload.on(domain)
        if not isinstance(ranges, Ranges):
            raise ValueError(f"{type(ranges).__name__} have no closed form here: need Ranges")
        height = len(level_sizes(domain.size, k)) - 1
        if k**height != domain.size:
            raise ValueError(f"a {k}-ary tree over {domain.size} cells is not complete")
        lo = ranges.lo
        hi = ranges.hi

        def squared_norm(width: int) -> Float[np.ndarray, " queries"]:
            first = lo // width
            last = (hi - 1) // width
            head = np.minimum(hi, (first + 1) * width) - lo
            tail = np.where(first == last, 0, hi - last * width)
            between = np.maximum(last - first - 1, 0) * float(width) ** 2
            return (head.astype(float) ** 2 + tail.astype(float) ** 2 + between) / width

        norms = [squared_norm(k**j) for j in range(height + 1)] + [np.zeros(len(lo))]
        total = 0
        eigenvalue = 0
        for j in range(height + 1):
            eigenvalue += k**j
            total = total + (norms[j] - norms[j + 1]) / eigenvalue
        return np.where(lo < hi, total, 0) * self._node_variance(as_bound(l1), domain.size, k)

    def _node_variance(self, bound: Bound, m: int, k: int) -> float:
        if isinstance(self.budget, ZCDP):
            return gaussian_law(tree_l2_squared(bound, m, k), self.budget).variance
        levels = len(level_sizes(m, k))
        return noise.variance(bound.l1 * levels, self.budget.epsilon, self.noise)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release a noisy count for every node of the tree, or only for every cell of the domain. The fields
        `consistent`, `nonnegative` and `ranges` determine which of the two is released.
        """
        k = self.branching_factor(table.domain.size)
        nodes = tree_sums(self.dense_counts(table, 80), k).astype(np.int64)
        m = table.domain.size
        bound = private_bound(table)
        noisy, variance, receipt = add_noise(
            nodes,
            self.budget,
            l1=Fraction(bound.l1) * len(level_sizes(m, k)),
            linf=bound.l1,
            l2_squared=tree_l2_squared(bound, m, k),
            law=self.noise,
            rng=rng,
        )
        estimate = self._estimate(table.domain, k, noisy.astype(float), variance)
        return Release(estimate, (receipt,), self, bound)

    def _estimate(
        self, domain: Domain, k: int, noisy: Float[np.ndarray, " nodes"], variance: float
    ) -> HierarchicalSums | Histogram:
        """Return the estimate to release, computed from the noisy counts of all nodes as the mechanism's
        fields prescribe.
        """
        if not self.consistent:
            return HierarchicalSums(domain, k, sealed(noisy), variance)
        sums = tree_least_squares(noisy, k)
        if self.nonnegative:
            sums = zero_negative_subtrees(sums, k)
        if self.nonnegative and self.ranges == "nodes":
            return HierarchicalSums(domain, k, sealed(sums), None)
        leaves = sealed(sums[-domain.size :].copy())
        law = None if self.nonnegative else TreeNoise(k, variance)
        return Histogram(domain, leaves, noise=law)


def tree_l2_squared(bound: Bound, m: int, k: int) -> Fraction:
    """Return the squared l2 norm of the largest change that one unit can cause in all nodes of a k-ary tree
    over m cells. A node of height j is the sum of k^j cells.
    """
    levels = range(len(level_sizes(m, k)))
    return sum((bound.merged(k**j).l2_squared for j in levels), Fraction(0))


# Unattributed histogram


@value
class UnattributedHistogram(Mechanism):
    """Release the noisy counts in ascending order.

    The release shows how often each count occurs, but not which cell has which count. For example, the counts
    may be the degrees of the nodes of a graph.

    The mechanism sorts the true counts and adds noise. With `estimator` = "isotonic", it then fits an ascending
    sequence to the noisy counts (S̄ in Hay et al.). With `estimator` = "sorted", it sorts and rounds the noisy
    counts (S̃ᵣ). With `estimator` = "noisy", it releases the noisy counts unchanged (S̃).

    The fourth choice, "prevalence", is our own. Let φ(r) be the number of counts that are at least r. The
    mechanism then adds noise to φ(r) for each r from 1 to `largest`. It fits a non-increasing sequence of
    integers to these noisy numbers, and converts this sequence back to counts.

    Guarantee  The release is ε-DP for each unit, or ρ-zCDP if the budget is a ρ. The whole budget pays for the
               noise on the sorted counts, or for the noise on φ. One record changes φ(r) by one at a single r.
               So the largest total change l1 of the counts also bounds the total change of φ. All steps after
               the noise use only noisy numbers, so these steps cost no budget.
    Assumes    No protected unit changes the counts by more than the table's bound allows. The same bound then
               holds for the sorted counts, in the l1 and the l2 norm. All cells of the domain (the public
               list of possible cells) fit in memory.
    Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, section 3, Theorems 1 and 2.
    Differs    One edge of a graph changes the degrees of two nodes, so a table of degrees has l1 = 2. Hay et
               al. use 1. The noise is the same as in LaplaceHistogram. We added "prevalence" for comparison
               with the anonymised histograms of Suresh (2019), which use another algorithm. With "prevalence",
               counts above `largest` become `largest`.
    Cost       Time and memory are O(number of possible cells), plus the time of a sort. "prevalence" also
               takes O(largest).
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    estimator: str = parameter(
        "isotonic",
        choices=("isotonic", "sorted", "noisy", "prevalence"),
        doc="method that puts the noisy counts in order (prevalence is our own)",
    )
    noise: str = noise_law_field(zcdp=True)
    memory: int = memory_field()
    largest: int = parameter(
        10_000,
        1,
        2**28,
        integer=True,
        unit="counts",
        doc="largest count that prevalence can release (public)",
    )
    cite = "hay2010"
    title = "unattributed histogram"
    audited = audited_at(2)
    fixed_price = True
    ranked = True  # its domain is that of ranks

    def __post_init__(self) -> None:
        settle_noise(self)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release a noisy count for every rank, from the smallest count to the largest."""
        bound = private_bound(table)
        ranks = table.ranked()
        counts = self.dense_counts(ranks)
        linf, l2_squared = bound.linf, bound.l2_squared  # sorting moves no count further
        if self.estimator == "prevalence":
            self.refuse_dense(len(counts) + self.largest)
            counts = prevalences(counts, self.largest)
            linf = min(bound.l0, bound.l1)  # cells that one unit takes beyond the same r
            l2_squared = Fraction(linf) * Fraction(bound.l1)
        noisy, variance, receipt = add_noise(
            counts,
            self.budget,
            l1=bound.l1,
            linf=linf,
            l2_squared=l2_squared,
            law=self.noise,
            rng=rng,
        )
        values = noisy.astype(float)
        if self.estimator == "prevalence":
            values = counts_of_prevalences(values, ranks.domain.size)
        elif self.estimator == "isotonic":
            values = isotonic(values)
        elif self.estimator == "sorted":
            values = round_to_counts(np.sort(values))
        known = self.estimator == "noisy"  # of what is sorted there is no closed form
        histogram = Histogram(ranks.domain, sealed(values), variance if known else None)
        return Release(histogram, (receipt,), self, bound)


def prevalences(counts: Int[np.ndarray, " cells"], largest: int) -> Int[np.ndarray, " largest"]:
    """Return φ(r) for r = 1, 2, …, `largest`, where φ(r) is the number of counts that are at least r. The
    given counts must be in ascending order.
    """
    return len(counts) - np.searchsorted(counts, np.arange(1, largest + 1))


def counts_of_prevalences(
    noisy: Float[np.ndarray, " largest"], cells: int
) -> Float[np.ndarray, " cells"]:
    """Return counts in ascending order, computed from noisy prevalences φ(r), the numbers of counts that are
    at least r = 1, 2, …. The function first fits a non-increasing sequence of integers between 0 and `cells`
    to the prevalences.
    """
    rising = np.clip(np.rint(isotonic(noisy[::-1])), 0, cells)
    ranks = np.arange(cells, 0, -1)  # the i-th largest count is the number of r with φ(r) >= i
    return (len(rising) - np.searchsorted(rising, ranks)).astype(float)


# InfTDA

_MOST_VALUES = 2**22  # of an attribute
_MOST_CHARACTERS = 1000
_AT_ONCE = 2**22  # children that get noise at a time


def _check_prefixes(x: Any) -> str | None:
    lengths = x if isinstance(x, tuple) else (x,)
    whole = all(type(length) is int and 1 <= length <= _MOST_CHARACTERS for length in lengths)
    if lengths and whole and all(a < b for a, b in pairwise(lengths)):
        return None
    return f"need an integer from 1 to {_MOST_CHARACTERS}, or a tuple of them that rises, so that levels nest"


class Level(NamedTuple):
    """Level of a public tree of regions. On this level, the groups of values of one attribute are divided
    into smaller groups.

    The smaller groups within a group have the numbers from `first[group]` to `first[group + 1] - 1`. `axis`
    is the number of the attribute, `groups` contains the group of each of its values, and `cells` is the
    largest number of cells below a node.
    """

    axis: int
    first: Int[np.ndarray, " groups"]
    groups: Int[np.ndarray, " values"]
    cells: int

    def children(
        self, nodes: Int[np.ndarray, "attributes nodes"], sizes: Int[np.ndarray, " nodes"]
    ) -> Int[np.ndarray, "attributes children"]:
        """Return all children of the given nodes. A node is a column of group numbers, one per attribute.
        `sizes` contains the number of children of each node.
        """
        children = np.repeat(nodes, sizes, axis=1)
        starts = self.first[nodes[self.axis]] - np.cumsum(sizes) + sizes
        children[self.axis] = np.repeat(starts, sizes) + np.arange(children.shape[1])
        return children


def _portions(sizes: Int[np.ndarray, " nodes"]) -> Iterator[slice]:
    """Yield slices of consecutive nodes, so small that the noise of all children in a slice can be drawn at
    once.
    """
    portion = np.cumsum(sizes) // _AT_ONCE
    starts = np.flatnonzero(np.diff(portion, prepend=-1))
    for a, b in pairwise([*starts.tolist(), len(sizes)]):
        yield slice(a, b)


def public_levels(
    domain: Domain, lengths: tuple[int, ...]
) -> tuple[list[Level], list[Int[np.ndarray, " values"]]]:
    """Return the levels of a tree in which labels with the same first characters form a group. Also return
    the values of each attribute in the order of the tree. `lengths` contains the numbers of characters.

    For each number of characters in `lengths`, there is one level per attribute. The last levels divide
    groups into single values. Levels that divide no group are left out.
    """
    longest = lengths[-1] if lengths else 0
    texts, orders = [], []
    named = domain.labels or (None,) * len(domain.shape)
    for name, n, labels in zip(domain.attributes, domain.shape, named, strict=True):
        if n > _MOST_VALUES:
            need = f"InfTDA lists all values of an attribute, so need at most {_MOST_VALUES}"
            raise ValueError(f"attribute {shown(name)} has {n} values: {need}")
        digits = len(str(n - 1))
        words = [f"{code:0{digits}}" for code in range(n)] if labels is None else labels
        text = np.array([str(word)[:longest] for word in words])
        orders.append(np.argsort(text, kind="stable"))
        texts.append(text[orders[-1]])
    groups = [np.zeros(n, np.int64) for n in domain.shape]
    levels = []
    for length in (*lengths, None):
        for axis, text in enumerate(texts):
            before, after = groups[axis], np.arange(len(text))
            if length is not None:
                prefix = text.astype(f"U{length}")
                after = np.cumsum(np.append(False, prefix[1:] != prefix[:-1]))
            if after[-1] == before[-1]:
                continue
            groups[axis] = after
            starts = np.flatnonzero(np.diff(before, prepend=-1))
            first = np.append(after[starts], after[-1] + 1)
            cells = prod(int(np.bincount(x).max()) for x in groups)
            levels.append(Level(axis, first, after[np.argsort(orders[axis])], cells))
    return levels, orders


def chebyshev_counts(
    noisy: Int[np.ndarray, " children"],
    sizes: Int[np.ndarray, " parents"],
    counts: Int[np.ndarray, " parents"],
) -> Int[np.ndarray, " children"]:
    """Change the noisy counts of children to integers >= 0 that add up to the count of their parent. The
    function makes the largest change of any noisy count as small as possible.

    Let t be this largest change. Each count is raised or lowered by at most t. If several results have the
    same t, the smallest noisy counts are lowered first. If noisy counts are equal, the
    last one is lowered first.
    """
    starts = np.cumsum(sizes) - sizes
    parent = np.repeat(np.arange(len(sizes)), sizes)
    limit = 2**61 // sizes[parent]  # so that sums fit, which are of far smaller numbers
    order = np.lexsort((-noisy, parent))  # stable
    x = np.clip(noisy, -limit, limit)[order]

    def before(values: Int[np.ndarray, " children"]) -> Int[np.ndarray, " children"]:
        """Return, for each node, the sum of the values of its larger siblings."""
        sums = np.cumsum(values) - values
        return sums - sums[starts][parent]

    # t must be so large that the largest siblings, lowered by t, do not exceed the count
    place = np.arange(len(x)) - starts[parent] + 1
    over = -((counts[parent] - before(x) - x) // place)
    least = np.maximum(np.maximum.reduceat(over, starts), -x[starts + sizes - 1])
    missing = counts - np.add.reduceat(x, starts)
    t = np.maximum(np.maximum(least, -(-missing // sizes)), 0)[parent]
    low = np.maximum(x - t, 0)
    room = x + t - low
    rest = (counts - np.add.reduceat(low, starts))[parent]
    y = np.empty_like(x)
    y[order] = low + np.clip(rest - before(room), 0, room)
    return y


@value
class InfTDA(Mechanism):
    """Release counts of trips, from regions to places.

    A trip has several attributes, for example a start and a destination. The mechanism goes down a public tree,
    from large regions to single places. Each level of the tree divides one attribute further, so the first
    levels divide each attribute into large regions. At each node, the mechanism adds noise to the counts of the
    children. Then the mechanism replaces the noisy counts by the nearest integers >= 0 that add up to the count
    of the node. If the count of a node is 0, the mechanism does not measure the children of the node.

    Guarantee  The release is ρ-zCDP if one unit is replaced by another. ρ is divided equally among the levels
               of the tree. Let a be the largest change of the counts on one level, in the l2 norm, if one unit
               is added. If one unit is replaced by another, the change is at most √2·a. For example, the change
               is at most √2·m if a unit may have any m trips. If you do not give `total`, the mechanism
               measures a noisy total number of trips, which counts as one more level. Replacing a unit changes
               the total by at most m, the largest number of trips per unit. If you give `total`, the release
               contains this exact number. Each unit must then have one trip, so that replacing a unit does not
               change the total. The replacement of noisy counts by integers uses only noisy counts, so it costs
               no budget.
    Assumes    No protected unit changes the counts by more than the table's bound allows, and adding a unit
               never lowers a count. The labels of places are public. If you give `total`, the total number of
               trips must be public knowledge.
    Source     Boninsegna & Silvestri, 2025, who call the mechanism InfTDA.
    Differs    The sensitivity is the largest change of a level if one unit is replaced. We computed the
               sensitivity ourselves, because the published number is too small (see docs/errata.md). If all
               trips of a unit are different, replacing the unit changes the last level by only √(2m). This
               level then gets less noise. If several ways to change the noisy counts to integers are equally
               good, we lower the smallest noisy counts first.
    Cost       Time is O(non-empty cells · levels + children of nodes with a count above 0). Memory is
               O(non-empty cells + released cells + values of an attribute). Neither time nor memory depends
               on the number of possible cells.
    """

    budget: ZCDP = budget_field(dp=False, zcdp=True)
    prefixes: int | tuple[int, ...] | None = parameter(
        None,
        check=_check_prefixes,
        doc="number of first characters that the labels of a region share, for each level of regions",
    )
    total: int | None = parameter(
        None,
        1,
        2**53,
        integer=True,
        unit="trips",
        doc="public number of trips in the table (by default a noisy number is measured)",
    )
    cite = "boninsegna2025"
    title = "InfTDA"
    fixed_price = True
    relation = REPLACE

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells whose count is above 0 after noise and adjustment."""
        bound, domain = private_bound(table), table.domain
        lengths = (self.prefixes,) if isinstance(self.prefixes, int) else self.prefixes or ()
        levels, orders = public_levels(domain, lengths)
        self._refuse_total(table, bound, levels)
        parts = len(levels) + (self.total is None)
        rhos = iter(split_epsilon(self.budget.rho, [Fraction(1, parts)] * parts))
        ledger: list[Receipt] = []

        def measured(l2_squared: Fraction) -> noise.PortionedGaussian:
            add_to = noise.PortionedGaussian(
                l2_squared=l2_squared, rho=next(rhos), relation=REPLACE, rng=rng
            )
            ledger.append(add_to.receipt)
            return add_to

        total = self.total
        if total is None:
            noisy_total = measured(Fraction(bound.l1) ** 2)(np.array([table.total]))
            total = max(0, int(noisy_total[0]))
        codes = domain.codes(table.keys)
        true_nodes = np.zeros_like(codes)
        nodes = np.zeros((len(orders), int(total > 0)), np.int64)
        counts = np.full(nodes.shape[1], total)
        for level in levels:
            axis = level.axis
            add_to = measured(2 * bound.merged(level.cells).l2_squared)
            true_nodes[:, axis] = level.groups[codes[:, axis]]
            keys, exact = cells_of_counts(domain.keys(true_nodes), table.counts.copy())
            keys, exact = np.append(keys, -1), np.append(exact, 0)
            all_sizes = np.diff(level.first)[nodes[axis]]
            below = [(nodes[:, :0], counts[:0])]
            for part in _portions(all_sizes):
                sizes = all_sizes[part]
                children = level.children(nodes[:, part], sizes)
                asked = domain.keys(children.T)
                at = np.searchsorted(keys[:-1], asked)
                noisy = add_to(np.where(keys[at] == asked, exact[at], 0))
                values = chebyshev_counts(noisy, sizes, counts[part])
                below.append((children[:, values > 0], values[values > 0]))
            nodes, counts = (np.concatenate(x, axis=-1) for x in zip(*below, strict=True))
        codes = np.stack(
            [order[node] for order, node in zip(orders, nodes, strict=True)], axis=1
        )
        keys = domain.keys(codes)
        by_key = np.argsort(keys)
        # without a law: a cell's error is that of its ancestors too, and rounded
        summary = Summary(domain, sealed(keys[by_key]), sealed(counts[by_key]), None)
        return Release(summary, tuple(ledger), self, bound)

    def _refuse_total(self, table: SparseTable, bound: Bound, levels: list[Level]) -> None:
        """Raise a ValueError if replacing a unit could change the stated total, or if the release would
        contain only the total.
        """
        if self.total is None:
            return
        self.refuse_lost_records(table)
        if bound.l1 != 1:
            why = "replacing a unit of several trips may change it. Need one trip per unit, or leave it out"
            raise not_allowed(self, "total", why, f" with {bound!r}")
        if table.total != self.total or not levels:
            why = "need the table's own total, which must be public, and more than one cell"
            raise not_allowed(self, "total", why)
