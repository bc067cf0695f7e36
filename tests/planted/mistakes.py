"""Mistakes that people really make here, each with the test that must see it; `test_planted` runs them.

Each silently breaks privacy, a law, a receipt or the cache, and crashes nothing. `file` lies in
`workbench/`, where `old` stands exactly once; `test` lies in `tests/`.
"""

from typing import NamedTuple


class Mistake(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    test: str
    why: str


MISTAKES = (
    Mistake(
        "noise for one cell of a unit",
        "shares.py",
        "return table.bound.l1\n",
        "return table.bound.linf\n",
        "laws/test_laws.py::test_neighbours_are_hard_to_tell_apart[two cells-GeometricHistogram]",
        "a unit that moves two cells is protected by half of what was promised",
    ),
    Mistake(
        "a cut rounded down for empty cells",
        "noise/empty_cells.py",
        "self.theta = max(ceil(theta), lowest)",
        "self.theta = max(int(theta), lowest)",
        "noise/test_noise.py::test_an_empty_cell_survives_and_is_valued_as_the_literal_process_says",
        "at a θ that is not whole, values between its floor and θ mark a cell as empty",
    ),
    Mistake(
        "a filter on exact counts",
        "noise/summaries.py",
        "kept = _passes_and_sampled(occupied, theta, sides, tau, words)",
        "kept = _passes_and_sampled(\n"
        "            np.asarray(counts)[cells.occupied], theta, sides, tau, words\n"
        "        )",
        "inference/test_refilter.py::test_a_raised_cut_has_the_law_of_the_higher_filter",
        "which occupied cells are released is decided by private counts",
    ),
    Mistake(
        "survivors among all cells",
        "noise/summaries.py",
        "(block.size - len(noisy[own.occupied]), law.alpha)",
        "(block.size, law.alpha)",
        "laws/test_laws.py::test_no_cell_is_released_twice_or_from_outside_the_domain",
        "m cells are taken for empty where m − n are: ranks run past the domain",
    ),
    Mistake(
        "an extension without its condition",
        "noise/empty_cells.py",
        "p = (p - earlier) / (Interval.of(1, work) - earlier)",
        "p = p - earlier",
        "noise/test_noise.py::test_an_extension_draws_what_did_not_enter_before",
        "cells that stayed out above the guess enter too rarely below it: τ_s is biased",
    ),
    Mistake(
        "a tail that is dropped",
        "noise/laws.py",
        "some[far] += sign * self._upper(far.size, own)",
        "pass",
        "noise/test_noise.py::test_a_law_is_the_same_wherever_its_tail_starts",
        "noise never exceeds the table: one count more is told for certain now and then",
    ),
    Mistake(
        "zero counted with both signs",
        "noise/laws.py",
        "todo = todo[negative & (magnitude == 0)]",
        "todo = todo[:0]",
        "noise/test_noise.py::test_a_law_is_the_same_wherever_its_tail_starts",
        "0 is twice as likely as it should be, so the ratio to ±1 is 2 at any ε",
    ),
    Mistake(
        "a key that outlives the call",
        "noise/bits.py",
        "    stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()\n"
        "    return lambda n: np.frombuffer(stream.update(bytes(8 * n)), np.uint64)\n",
        "    return lambda n: np.frombuffer(STREAM.update(bytes(8 * n)), np.uint64)\n\n\n"
        "from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes\n"
        "STREAM = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()\n",
        "noise/test_noise.py::test_system_noise_never_repeats_across_a_fork",
        "two workers add the same noise, and the difference of their releases is exact",
    ),
    Mistake(
        "a cut that depends on how many cells are filled",
        "mechanisms/_sparse_summary.py",
        "theta, tau = self._thresholds(blocks)\n",
        "theta, tau = self._thresholds([b._replace(size=b.size - len(table)) for b in blocks])\n",
        "mechanisms/test_summaries.py::"
        "test_what_is_released_reaches_the_cut_and_tells_nothing_of_how_many_cells_are_filled",
        "θ is released, was never paid for, and follows n (the paper prints it so)",
    ),
    Mistake(
        "rows of an older mechanism",
        "experiment/store.py",
        "actors = [trial.dataset, trial.mechanism, *sweep.metrics, *sweep.estimators]",
        "actors = [trial.dataset, *sweep.metrics, *sweep.estimators]",
        "experiment/test_experiment.py::test_a_row_is_renamed_when_a_source_that_decides_it_changes",
        "a corrected mechanism is still shown with the numbers of the wrong one",
    ),
    Mistake(
        "a place counted in floats",
        "noise/kernels.py",
        "start += gaps[i] + np.uint64(1)",
        "start += gaps[i] + 1",
        "noise/test_noise.py::test_places_of_survivors_are_exact_on_the_largest_domains",
        "beyond 2^53 cells rounded places tell the empty cells from the occupied ones",
    ),
    Mistake(
        "as many levels as the paper counts",
        "transform/dyadic.py",
        "return (NodeBlock(self.size, len(self.levels), Fraction(1)),)",
        "return (NodeBlock(self.size, max(1, len(self.levels) - 1), Fraction(1)),)",
        "transform/test_transform.py::test_the_shares_of_the_budget_add_up_whatever_a_unit_moves",
        "a count moves log₂m + 1 nodes, leaf and root included, and one of them is not paid for",
    ),
    Mistake(
        "a wavelet without its total",
        "transform/haar.py",
        "return (NodeBlock(self.domain.size, self.axis.height + 1, Fraction(1)),)",
        "return (NodeBlock(self.domain.size, max(1, self.axis.height), Fraction(1)),)",
        "transform/test_transform.py::test_coefficients_and_weights_are_those_of_the_literal_wavelet",
        "the total moves too, beside a difference a level",
    ),
    Mistake(
        "nodes of one level among those of another",
        "noise/summaries.py",
        "merge_cells(keys[cells.occupied], occupied, kept, ranks, values, cells.start)",
        "merge_cells(keys[cells.occupied], occupied, kept, ranks, values, 0)",
        "transform/test_transform.py::test_the_shortcut_has_the_law_of_the_laborious_process",
        "survivors of fine levels are released as coarse nodes, beside the true ones",
    ),
    Mistake(
        "consistent with parents alone",
        "inference/consistent.py",
        "remains[nodes] &= remains[at] & (tree.keys[at] == parents)",
        "remains[nodes] &= tree.keys[at] == parents",
        "transform/test_transform.py::test_consistency_drops_what_lies_below_nothing_and_nothing_else",
        "a node stays whose parent was dropped for want of its own",
    ),
    Mistake(
        "one level's noise for all levels",
        "mechanisms/hierarchical_histogram.py",
        "l1 = Fraction(sensitivity(table)) * len(level_sizes(table.domain.size, k))",
        "l1 = Fraction(sensitivity(table))",
        "inference/test_consistency.py::test_hierarchical_answers_have_the_law_of_the_literal_ones",
        "a count moves a node on every level, and the noise hides one of them",
    ),
    Mistake(
        "full cells are the worst",
        "noise/stability.py",
        "numbers_of_cells.add(cells)",
        "pass",
        "noise/test_stability.py::test_many_cells_of_little_can_show_more_easily_than_few_of_much",
        "a unit that fills many cells with one count each shows more often than δ says",
    ),
    Mistake(
        "a float law that may be published",
        "noise/source.py",
        "self._idealised = True",
        "pass",
        "noise/test_dirichlet.py::test_receipts_and_answers",
        "synthetic data drawn with floating point is saved as if its guarantee were exact",
    ),
    Mistake(
        "decisions priced for one record",
        "mechanisms/improved_adaptive_histogram.py",
        "                l1=l1,\n",
        "                l1=1,\n",
        "mechanisms/test_adaptive.py::test_every_look_is_priced_for_what_a_unit_moves",
        "a unit of four records is split off by decisions whose noise hides one",
    ),
    Mistake(
        "children that are never empty",
        "records/frontier.py",
        "stays_empty[spawning] = False",
        "pass",
        "mechanisms/test_adaptive.py::test_empty_nodes_that_are_split_leave_a_partition",
        "an empty node that was split is counted once more, above its own children",
    ),
    Mistake(
        "a discount that forgets the noise",
        "mechanisms/improved_adaptive_histogram.py",
        "least = ceil(self.threshold + log(2) * l1 / epsilon)",
        "least = ceil(self.threshold)",
        "mechanisms/test_adaptive.py::test_a_discount_below_the_bound_is_refused",
        "Theorem 3 needs counts to fall by ln 2/ε more than the threshold",
    ),
    Mistake(
        "a bound that is believed",
        "interactions/value.py",
        "self._columns, self._starts, min(limit, _MOST_RECORDS), rng",
        "self._columns, self._starts, min(l, _MOST_RECORDS), rng",
        "mechanisms/test_contributions.py::test_a_bound_that_is_not_true_is_made_true",
        "noise is for as many records as the caller says that a user has, not for what is counted",
    ),
    Mistake(
        "popularity learnt for one record",
        "mechanisms/hpa.py",
        "sample.item_counts(), l1=sensitivity(sample)",
        "sample.item_counts(), l1=1",
        "mechanisms/test_contributions.py::test_every_look_is_priced_for_what_a_user_moves",
        "what items are popular is learnt from d records of a user, and the noise hides one",
    ),
    Mistake(
        "a total priced for one record",
        "mechanisms/gs.py",
        "counts.sum(keepdims=True), l1=bound, epsilon=total_epsilon",
        "counts.sum(keepdims=True), l1=1, epsilon=total_epsilon",
        "mechanisms/test_fpa_gs.py::test_no_measurement_moves_further_than_it_is_priced_for",
        "a user's M records move the noisy total by M, and its noise hides one of them",
    ),
    Mistake(
        "empty nodes that are never refined",
        "mechanisms/direct_synthesis.py",
        "refined = ~single & (nodes.allotted >= self._least_refined(l1))",
        "refined = ~single & (nodes.allotted >= self._least_refined(l1))\n"
        "            refined &= (nodes.stop > nodes.start) | (self.stop is None)",
        "mechanisms/test_adaptive.py::test_signal_ends_by_the_noisy_count_alone",
        "with stop = 'count' a node of many synthetic records that stays whole holds no true one",
    ),
    Mistake(
        "rounding that nobody pays for",
        "mechanisms/laplace_queries.py",
        "moved_steps = Fraction(moved) / Fraction(step) + Fraction(_count_terms(workload), 2)",
        "moved_steps = Fraction(moved) / Fraction(step)",
        "mechanisms/test_summaries.py::test_the_rounding_of_every_query_term_is_paid_for",
        "terms that round away from 0 move the answers by half a step more each",
    ),
)
