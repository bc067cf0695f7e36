"""Fits to a bank, kept in a file beside the ledger: public numbers, which save time and nothing else.

The file says which answers it was made from, by their checksum. Of a bank that has grown since, its
parameters are taken over and not searched anew, and trees start from its weights; of any other bank it is
not used, and replaced. Eigenqueries are decomposed anew: to border them by k answers takes a product of
m × m matrices each, and one decomposition costs about as much as six products.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.answer_bank import TREE, AnswerBank, Candidate
from workbench.inference.eigenqueries import Eigenqueries
from workbench.inference.markov_network import NetworkFit
from workbench.temporary import Draft
from workbench.value import sealed
from workbench.workload import serialise

FEWEST = 300  # answers: fits to fewer take no longer than a file
_VERSION = 2


def fits_path(session: Path) -> Path:
    """Where the fits of a session's bank are."""
    return session.with_name(f"{session.name}.fits")


def key_of(answers: NoisyAnswers, count: int, bank: AnswerBank) -> str:
    """A checksum of the first so many answers, and of what else a fit rests on."""
    first = answers if count == len(answers) else answers[np.arange(count)]
    parts = [
        json.dumps([_VERSION, serialise.to_text(first.workload), bank.total, bank.given_prior])
    ]
    digest = sha256(parts[0].encode())
    digest.update(first.values.tobytes())
    digest.update(first.variances.tobytes())
    return digest.hexdigest()


def load_fits(path: Path, bank: AnswerBank) -> None:
    """Take over what a file holds of this bank; nothing if there is none, or it is of another bank."""
    with suppress(OSError, ValueError, KeyError, BadZipFile):
        with np.load(path, allow_pickle=False) as held:
            count = int(held["count"])
            if count > len(bank.history) or held["key"].item() != key_of(
                bank.history, count, bank
            ):
                return
            parameters = held["parameters"].tolist()
            methods = held["methods"].tolist()
            if count < len(bank.history):
                bank.strengths = _of_trees(methods, parameters) or bank.strengths
                for parameter in bank.strengths:
                    weights = np.zeros(len(bank.history))
                    weights[held["rows"]] = held[f"weights {parameter!r}"]
                    bank.starts[parameter] = weights
                return
            arrays = [sealed(held[name]) for name in ("squares", "basis", "answers", "means")]
            bank.eigen = Eigenqueries(
                bank.domain, bank.history.workload, bank.total, bank.prior, *arrays
            )
            bank.candidates = tuple(
                Candidate(by, parameter, at_bought, at_new, scale)
                for by, parameter, at_bought, at_new, scale in zip(
                    methods,
                    parameters,
                    held["at_bought"],
                    held["at_new"],
                    held["scales"].tolist(),
                    strict=True,
                )
            )
            for parameter in _of_trees(methods, parameters):
                weights = held[f"weights {parameter!r}"]
                residual = float(held[f"residual {parameter!r}"])
                bank.keep_fit(TREE, parameter, NetworkFit(bank.network, weights, residual, 0))


def save_fits(path: Path, bank: AnswerBank) -> None:
    """Write what a later process would make again; a disk that refuses costs that time and no more."""
    candidates = bank.candidates
    if not candidates:
        return
    eigen = bank.eigen
    arrays = {
        "count": np.array(len(bank.history)),
        "key": np.array(key_of(bank.history, len(bank.history), bank)),
        "methods": np.array([c.by for c in candidates]),
        "parameters": np.array([c.parameter for c in candidates]),
        "scales": np.array([c.scale for c in candidates]),
        "at_bought": np.stack([c.at_bought for c in candidates]),
        "at_new": np.stack([c.at_new for c in candidates]),
        "squares": eigen.squares,
        "basis": eigen.basis,
        "answers": eigen.answers,
        "means": eigen.means,
    }
    if bank.network is not None:
        arrays["rows"] = bank.network.rows
    for candidate in candidates:
        if candidate.by == TREE:
            fitted = bank.fit(TREE, candidate.parameter)
            arrays[f"weights {candidate.parameter!r}"] = fitted.weights
            arrays[f"residual {candidate.parameter!r}"] = np.array(fitted.residual)
    with suppress(OSError), closing(Draft(path)) as draft:
        with open(draft.path, "wb") as file:
            np.savez(file, **arrays)
        draft.replace(path)


def _of_trees(methods: Sequence[str], parameters: Sequence[float]) -> tuple[float, ...]:
    return tuple(p for by, p in zip(methods, parameters, strict=True) if by == TREE)
