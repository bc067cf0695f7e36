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
        "mechanism.py",
        "return table.bound.l1\n",
        "return table.bound.linf\n",
        "test_laws.py::test_neighbours_are_hard_to_tell_apart[two cells-GeometricHistogram]",
        "a unit that moves two cells is protected by half of what was promised",
    ),
    Mistake(
        "a cut rounded down for empty cells",
        "noise/empty_cells.py",
        "self.theta = max(ceil(theta), lowest)",
        "self.theta = max(int(theta), lowest)",
        "test_noise.py::test_an_empty_cell_survives_and_is_valued_as_the_literal_process_says",
        "at a θ that is not whole, values between its floor and θ mark a cell as empty",
    ),
    Mistake(
        "a filter on exact counts",
        "noise/__init__.py",
        "kept = _sample(noisy[own], theta, sides, tau, words)\n        new =",
        "kept = _sample(np.asarray(counts)[own], theta, sides, tau, words)\n        new =",
        "test_inference.py::test_a_raised_cut_has_the_law_of_the_higher_filter",
        "which occupied cells are released is decided by private counts",
    ),
    Mistake(
        "survivors among all cells",
        "noise/__init__.py",
        "(block.size - (own.stop - own.start), law.alpha)",
        "(block.size, law.alpha)",
        "test_laws.py::test_no_cell_is_released_twice_or_from_outside_the_domain",
        "m cells are taken for empty where m − n are: ranks run past the domain",
    ),
    Mistake(
        "an extension without its condition",
        "noise/empty_cells.py",
        "p = (p - earlier) / (Interval.of(1, work) - earlier)",
        "p = p - earlier",
        "test_noise.py::test_an_extension_draws_what_did_not_enter_before",
        "cells that stayed out above the guess enter too rarely below it: τ_s is biased",
    ),
    Mistake(
        "a tail that is dropped",
        "noise/laws.py",
        "part[far] += sign * self._upper(far.size, words)",
        "pass",
        "test_noise.py::test_a_law_is_the_same_wherever_its_tail_starts",
        "noise never exceeds the table: one count more is told for certain now and then",
    ),
    Mistake(
        "zero counted with both signs",
        "noise/laws.py",
        "todo = todo[negative & (magnitude == 0)]",
        "todo = todo[:0]",
        "test_noise.py::test_a_law_is_the_same_wherever_its_tail_starts",
        "0 is twice as likely as it should be, so the ratio to ±1 is 2 at any ε",
    ),
    Mistake(
        "a key that outlives the call",
        "noise/bits.py",
        "    stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()\n"
        "    return lambda n: np.frombuffer(stream.update(bytes(8 * n)), np.uint64)\n",
        "    return lambda n: np.frombuffer(STREAM.update(bytes(8 * n)), np.uint64)\n\n\n"
        "STREAM = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()\n",
        "test_noise.py::test_system_noise_never_repeats_across_a_fork",
        "two workers add the same noise, and the difference of their releases is exact",
    ),
    Mistake(
        "a cut that depends on how many cells are filled",
        "mechanisms/high_pass_filter.py",
        "theta = self.cut(table.domain, l1)",
        'theta = self.cut(Domain(("x",), (table.domain.size - len(table),)), l1)',
        "test_mechanisms.py::"
        "test_what_is_released_reaches_the_cut_and_tells_nothing_of_how_many_cells_are_filled",
        "θ is released, was never paid for, and follows n (the paper prints it so)",
    ),
    Mistake(
        "rows of an older mechanism",
        "experiment.py",
        "actors = [trial.dataset, trial.mechanism, *sweep.metrics, *sweep.estimators]",
        "actors = [trial.dataset, *sweep.metrics, *sweep.estimators]",
        "test_experiment.py::test_a_row_is_renamed_when_a_source_that_decides_it_changes",
        "a corrected mechanism is still shown with the numbers of the wrong one",
    ),
    Mistake(
        "a place counted in floats",
        "noise/kernels.py",
        "start += gaps[i] + np.uint64(1)",
        "start += gaps[i] + 1",
        "test_noise.py::test_places_of_survivors_are_exact_on_the_largest_domains",
        "beyond 2^53 cells rounded places tell the empty cells from the occupied ones",
    ),
)
