"""Mistakes that people really make here, each with the test that must see it; `test_planted` runs them.

Each silently breaks privacy, a law, a receipt or the cache, and crashes nothing. `where` is a package
of `workbench/`, or a public name of one, in which `old` stands exactly once. Capital letters are holes (see
`rewrite`): no name of a variable, a private function or a file matters. `test` lies in `tests/`.
"""

from tests.planted.mistake import Mistake

MISTAKES = (
    Mistake(
        "noise for one cell of a unit",
        "mechanisms.LaplaceQueries",
        "L = B.l1",
        "L = B.linf",
        "mechanisms/test_summaries.py::test_answers_have_noise_for_all_tuples_of_a_unit",
        "a unit that moves two cells is protected by half of what was promised",
    ),
    Mistake(
        "a cut rounded down for empty cells",
        "noise.EmptyCell",
        "self.theta = max(ceil(T), L)",
        "self.theta = max(int(T), L)",
        "noise/test_noise.py::"
        "test_an_empty_cell_survives_and_is_valued_as_the_literal_process_says",
        "at a θ that is not whole, values between its floor and θ mark a cell as empty",
    ),
    Mistake(
        "a filter on exact counts",
        "noise",
        "L.add(N, W)\nK = P(N, *A)",
        "K = P(N, *A)\nL.add(N, W)",
        "inference/test_refilter.py::test_a_raised_cut_has_the_law_of_the_higher_filter",
        "which occupied cells are released is decided by private counts",
    ),
    Mistake(
        "survivors among all cells",
        "noise",
        "(R.block.size - len(O), R.block.law)",
        "(R.block.size, R.block.law)",
        "laws/test_laws.py::test_no_cell_is_released_twice_or_from_outside_the_domain",
        "m cells are taken for empty where m − n are: ranks run past the domain",
    ),
    Mistake(
        "an extension without its condition",
        "noise",
        "(P - E) / (Interval.of(1, B) - E)",
        "P - E",
        "noise/test_noise.py::test_an_extension_draws_what_did_not_enter_before",
        "cells that stayed out above the guess enter too rarely below it: τ_s is biased",
    ),
    Mistake(
        "a tail that is dropped",
        "noise",
        "X[F] += S * T(F.size, W)",
        "pass",
        "noise/test_noise.py::test_a_law_is_the_same_wherever_its_tail_starts",
        "noise never exceeds the table: one count more is told for certain now and then",
    ),
    Mistake(
        "zero counted with both signs",
        "noise",
        "T = T[N & (M == 0)]",
        "T = T[:0]",
        "noise/test_noise.py::test_a_law_is_the_same_wherever_its_tail_starts",
        "0 is twice as likely as it should be, so the ratio to ±1 is 2 at any ε",
    ),
    Mistake(
        "a key that outlives the call",
        "noise",
        "Keystream(os.urandom(N))",
        "globals().setdefault('STREAM', Keystream(os.urandom(N)))",
        "noise/test_noise.py::test_system_noise_never_repeats_across_a_fork",
        "two workers add the same noise, and the difference of their releases is exact",
    ),
    Mistake(
        "a cut that depends on how many cells are filled",
        "mechanisms",
        "C = self.F(B)\n...\nE = X.forward(T.keys, T.counts)",
        "C = self.F([B[0]._replace(size=B[0].size - len(T)), *B[1:]])\n"
        "...\n"
        "E = X.forward(T.keys, T.counts)",
        "mechanisms/test_summaries.py::"
        "test_what_is_released_reaches_the_cut_and_tells_nothing_of_how_many_cells_are_filled",
        "θ is released, was never paid for, and follows n (the paper prints it so)",
    ),
    Mistake(
        "rows of an older mechanism",
        "trials",
        "[T.dataset, T.mechanism, *A]",
        "[T.dataset, *A]",
        "trials/test_experiment.py::"
        "test_a_row_is_renamed_when_a_source_that_decides_it_changes",
        "a corrected mechanism is still shown with the numbers of the wrong one",
    ),
    Mistake(
        "a place counted in floats",
        "noise",
        "S += G + np.uint64(1)",
        "S += G + 1",
        "noise/test_noise.py::test_places_of_survivors_are_exact_on_the_largest_domains",
        "beyond 2^53 cells rounded places tell the empty cells from the occupied ones",
    ),
    Mistake(
        "as many levels as the paper counts",
        "queries",
        "NodeBlock(self.size, len(L), S, W)",
        "NodeBlock(self.size, max(1, len(L) - 1), S, W)",
        "queries/test_transform.py::"
        "test_the_shares_of_the_budget_add_up_whatever_a_unit_moves",
        "a count moves log₂m + 1 nodes, leaf and root included, and one of them is not paid for",
    ),
    Mistake(
        "a wavelet without its total",
        "queries",
        "NodeBlock(N, H + 1, S, W)",
        "NodeBlock(N, max(1, H), S, W)",
        "queries/test_transform.py::"
        "test_coefficients_and_weights_are_those_of_the_literal_wavelet",
        "the total moves too, beside a difference a level",
    ),
    Mistake(
        "nodes of one level among those of another",
        "noise",
        "kernels.merge(R.keys, R.noisy, R.kept, R.ranks, R.values, R.chosen, R.start, K, V)",
        "kernels.merge(R.keys, R.noisy, R.kept, R.ranks, R.values, R.chosen, 0, K, V)",
        "queries/test_transform.py::test_the_shortcut_has_the_law_of_the_laborious_process",
        "survivors of fine levels are released as coarse nodes, beside the true ones",
    ),
    Mistake(
        "consistent with parents alone",
        "inference",
        "R[N] &= R[A] & E",
        "R[N] &= E",
        "queries/test_transform.py::"
        "test_consistency_drops_what_lies_below_nothing_and_nothing_else",
        "a node stays whose parent was dropped for want of its own",
    ),
    Mistake(
        "one level's noise for all levels",
        "mechanisms",
        "Fraction(T.l1) * len(L)",
        "Fraction(T.l1)",
        "inference/test_consistency.py::"
        "test_hierarchical_answers_have_the_law_of_the_literal_ones",
        "a count moves a node on every level, and the noise hides one of them",
    ),
    Mistake(
        "full cells are the worst",
        "noise",
        "N = {A, B}\n...\nreturn [F(C, *R) for C in N]",
        "return [F(A, *R)]",
        "noise/test_stability.py::"
        "test_many_cells_of_little_can_show_more_easily_than_few_of_much",
        "a unit that fills many cells with one count each shows more often than δ says",
    ),
    Mistake(
        "a float law that may be published",
        "noise",
        "self.I = True\nreturn generator(R)",
        "return generator(R)",
        "noise/test_dirichlet.py::test_receipts_and_answers",
        "synthetic data drawn with floating point is saved as if its guarantee were exact",
    ),
    Mistake(
        "decisions priced for one record",
        "mechanisms",
        "noise.noisy_threshold(*A, l1=L, **K)",
        "noise.noisy_threshold(*A, l1=1, **K)",
        "mechanisms/test_adaptive.py::test_every_look_is_priced_for_what_a_unit_moves",
        "a unit of four records is split off by decisions whose noise hides one",
    ),
    Mistake(
        "children that are never empty",
        "data",
        "E = np.ones(self.N, bool)\nE[S] = False",
        "E = np.ones(self.N, bool)",
        "mechanisms/test_adaptive.py::test_empty_nodes_that_are_split_leave_a_partition",
        "an empty node that was split is counted once more, above its own children",
    ),
    Mistake(
        "a discount that forgets the noise",
        "mechanisms",
        "ceil(self.threshold + log(2) * L / E)",
        "ceil(self.threshold)",
        "mechanisms/test_adaptive.py::test_a_discount_below_the_bound_is_refused",
        "Theorem 3 needs counts to fall by ln 2/ε more than the threshold",
    ),
    Mistake(
        "a bound that is believed",
        "data",
        "B = F(G(N, L))\nS = sample_records(C, T, min(B, M), R)",
        "B = F(G(N, L))\nS = sample_records(C, T, min(L, M), R)",
        "mechanisms/test_contributions.py::test_a_bound_that_is_not_true_is_made_true",
        "noise is for as many records as the caller says that a user has, not for what is counted",
    ),
    Mistake(
        "users by their place in the table",
        "data",
        "seeds(K, U.ids_of(N))",
        "seeds(K, U._replace(ids=None).ids_of(N))",
        "data/test_contributions.py::"
        "test_what_stays_depends_on_a_user_s_own_value_and_not_on_its_place[text]",
        "leaving a user out moves the numbers of others, and with them what stays of these",
    ),
    Mistake(
        "one stream over all users",
        "data",
        "mark_some(N, L, S[U], T)",
        "mark_some(N, L, S[0], T)",
        "data/test_contributions.py::"
        "test_a_user_is_cut_to_the_bound_and_nobody_else_matters",
        "a user who draws moves what stays of all who draw later",
    ),
    Mistake(
        "a cap one too high",
        "data",
        "if C[I] > L:\n    C[I] = L\n    K[U] = True",
        "if C[I] > L + 1:\n    C[I] = L\n    K[U] = True",
        "data/test_bounded_tables.py::"
        "test_leaving_out_a_user_moves_the_table_by_the_bound_at_most",
        "a count of linf + 1 stays, and noise is made for linf",
    ),
    Mistake(
        "popularity learnt for one record",
        "mechanisms",
        "add_noise(S.item_counts(), B, l1=sensitivity(S), **K)",
        "add_noise(S.item_counts(), B, l1=1, **K)",
        "mechanisms/test_contributions.py::test_every_look_is_priced_for_what_a_user_moves",
        "what items are popular is learnt from d records of a user, and the noise hides one",
    ),
    Mistake(
        "a total priced for one record",
        "mechanisms",
        "noise.geometric(C.sum(keepdims=True), l1=B, **K)",
        "noise.geometric(C.sum(keepdims=True), l1=1, **K)",
        "mechanisms/test_fpa_gs.py::test_no_measurement_moves_further_than_it_is_priced_for",
        "a user's M records move the noisy total by M, and its noise hides one of them",
    ),
    Mistake(
        "empty nodes that are never refined",
        "mechanisms",
        "~S & (N.allotted >= L)",
        "~S & (N.allotted >= L) & ((N.stop > N.start) | (self.stop is None))",
        "mechanisms/test_adaptive.py::test_signal_ends_by_the_noisy_count_alone",
        "with stop = 'count' a node of many synthetic records that stays whole holds no true one",
    ),
    Mistake(
        "rounding that nobody pays for",
        "mechanisms",
        "Fraction(M) / Fraction(S) + Fraction(T, 2)",
        "Fraction(M) / Fraction(S)",
        "mechanisms/test_summaries.py::test_the_rounding_of_every_query_term_is_paid_for",
        "terms that round away from 0 move the answers by half a step more each",
    ),
    Mistake(
        "rows that one attribute drops",
        "spaces",
        "K = S if K is None else K & S",
        "K = S",
        "spaces/test_rules.py::"
        "test_a_row_alone_has_the_cell_that_it_has_among_others[arrow]",
        "whether a row is left out depends on the rows that stand beside it",
    ),
    Mistake(
        "a bin that loses its edge",
        "spaces",
        'P: Q = "right" if self.closed == "left" else "left"',
        'P: Q = "left" if self.closed == "left" else "right"',
        "spaces/test_rules.py::test_a_number_falls_into_the_bin_that_holds_it",
        "a number on an edge is counted beside the bin that its label promises",
    ),
)
