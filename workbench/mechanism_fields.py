"""Fields that several mechanisms declare: their budget, the kind of noise, memory, and a transform."""

from __future__ import annotations

from math import isfinite
from typing import Any

from workbench.estimates.law import GAUSSIAN
from workbench.privacy import DP, ZCDP
from workbench.transform import TRANSFORMS
from workbench.value import not_allowed, parameter


def pure_budget(
    *, zcdp: bool = False, refused: str = "its guarantee is not proven for it"
) -> Any:
    """The budget field of a mechanism that spends no δ.

    Parameters
    ----------
    zcdp : whether it takes a `ZCDP` as well, and then draws noise whose price is a ρ.
    refused : why it does not.

    Returns
    -------
    field
        Of a `value` class; it refuses what is no `DP` of finite ε > 0 and δ = 0.
    """

    def wrong(x: Any) -> str | None:
        if isinstance(x, ZCDP):
            return _wrong_zcdp(x, zcdp, refused)
        pure = "this mechanism is pure: it spends no delta, so ask for none"
        return _no_finite_budget(x) or (pure if x.delta else None)

    return parameter(check=wrong, doc="what the release may cost")


def approximate_budget(
    *,
    pure: bool = False,
    zcdp: bool = False,
    refused: str = "its guarantee is not proven for it",
) -> Any:
    """The budget field of a mechanism that spends δ.

    Parameters
    ----------
    pure : whether the mechanism may also do without.
    zcdp, refused : as for `pure_budget`; its δ is spent as that of a `DP` is.

    Returns
    -------
    field
        Of a `value` class; it refuses what is no `DP` of finite ε > 0 and 0 < δ < 1.
    """

    def wrong(x: Any) -> str | None:
        fails = "this mechanism can fail with probability delta: need 0 < delta < 1"
        if isinstance(x, ZCDP):
            missing = None if x.delta or pure else fails
            return _wrong_zcdp(x, zcdp, refused, spends_delta=True) or missing
        return _no_finite_budget(x) or (
            fails if x.delta == 1 or not (x.delta or pure) else None
        )

    return parameter(check=wrong, doc="what the release may cost, δ included")


def _wrong_zcdp(
    x: ZCDP, accepted: bool, refused: str, spends_delta: bool = False
) -> str | None:
    if not accepted:
        return f"this mechanism takes no ZCDP, {refused}: need a DP"
    return (
        "this mechanism spends no delta, so ask for none"
        if x.delta and not spends_delta
        else None
    )


def _no_finite_budget(x: Any) -> str | None:
    if not isinstance(x, DP):
        return "need a DP"
    if not (isfinite(x.epsilon) and x.epsilon > 0):
        return "need a finite epsilon > 0"
    return None


def gaussian_budget() -> Any:
    """The budget field of a mechanism whose noise is Gaussian.

    Returns
    -------
    field
        Of a `value` class; it refuses what is no `ZCDP` of δ = 0.
    """

    def wrong(x: Any) -> str | None:
        if isinstance(x, ZCDP):
            return _wrong_zcdp(x, True, "")
        return "this mechanism draws Gaussian noise: need a ZCDP, such as ZCDP.within(DP(1.0, 1e-9))"

    return parameter(check=wrong, doc="what the release may cost")


class _Unstated(str):
    """A default that is told from the same text where somebody states it."""


_LAPLACE = _Unstated("laplace")


def noise_law_field(*, zcdp: bool = False) -> Any:
    """The field of a mechanism that adds one of two kinds of noise.

    Parameters
    ----------
    zcdp : whether it takes a `ZCDP` as well, and then draws a third kind: see `settle_noise`.

    Returns
    -------
    field
        Of a `value` class.
    """
    choices = ("laplace", "geometric")
    if not zcdp:
        return parameter("laplace", choices=choices, doc="geometric: whole counts")
    doc = "of ε; geometric: whole counts; of ρ it is gaussian"
    return parameter(
        _LAPLACE,
        choices=choices,
        check=lambda x: None if isinstance(x, _Unstated) or x == GAUSSIAN else "another",
        doc=doc,
    )


def settle_noise(mechanism: Any) -> None:
    """Hold the field `noise` against the kind of the budget: a ρ buys Gaussian noise, an ε the others.

    Parameters
    ----------
    mechanism : whose `noise` is a `noise_law_field(zcdp=True)`.

    Raises
    ------
    ValueError
        If noise is stated that the budget does not buy.
    """
    of_rho = isinstance(mechanism.budget, ZCDP)
    given = f" with {mechanism.budget!r}"
    if of_rho and not isinstance(mechanism.noise, _Unstated) and mechanism.noise != GAUSSIAN:
        why = "what a rho buys is Gaussian noise: need 'gaussian', or leave it out"
        raise not_allowed(mechanism, "noise", why, given)
    if not of_rho and mechanism.noise == GAUSSIAN:
        why = "need 'laplace' or 'geometric', or a ZCDP, which buys Gaussian noise"
        raise not_allowed(mechanism, "noise", why, given)
    if not of_rho and mechanism.noise == _LAPLACE:
        object.__setattr__(mechanism, "noise", _LAPLACE)  # so that its text leaves it out


def memory_field() -> Any:
    """The field of a mechanism that holds every cell of its domain."""
    return parameter(2**32, 1, integer=True, unit="bytes", doc="refuse larger domains")


def transform_field() -> Any:
    """The field of a mechanism that can work in another basis."""
    return parameter(None, choices=(None, *TRANSFORMS), doc="of the table, before noise")


def consistent_field() -> Any:
    """The field of a mechanism that can drop nodes below absent ones."""
    return parameter(False, choices=(False, True), doc="drop nodes below absent ones (Dyadic)")
