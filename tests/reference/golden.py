"""Golden numbers of methods.md 9.5 and 9.2, and check(): this package reproduces them."""

import math

from . import geometric, high_pass_filter, threshold_sampling

# 9.5, first case; two-sided unless said; "p1"/"p2": the one- and two-sided filter at theta
SMALL_EPSILON = {
    "section": "9.5",
    "epsilon": 0.1,
    "theta": 40,
    "tau": 100,
    "alpha": 0.904837418036,
    "p1": 0.00961532922197,
    "p2": 0.0192306584439,
    "p_tau": 0.0998289951378,
    "p_theta_tau": 0.00951624578245,
    "mean_abs": 9.9833527573,
    "variance": 199.833416634,
    "cdf_tau": {
        -200: 1.083916304e-08,
        -100: 2.387484538e-4,
        -1: 0.5,
        0: 0.5,
        1: 0.5045281641,
        100: 0.9997839715,
        200: 0.9999999902,
    },
    "cdf_theta_tau": {
        -200: 1.137068944e-07,
        -100: 0.002504561019,
        -40: 0.5,
        0: 0.5,
        40: 0.5384613671,
        100: 0.9977337795,
        200: 0.9999998971,
    },
}

# 9.5, second case
LARGE_EPSILON = {
    "section": "9.5",
    "epsilon": 1.0,
    "theta": 3,
    "tau": 10,
    "p1": 0.0363972634352,
    "p2": 0.0727945268703,
    "p_tau": 0.0850879496616,
    "p_theta_tau": 0.0260709668014,
    "cdf_tau": {1: 0.6997972712},
    "cdf_theta_tau": {3: 0.7647480473},
}

# 9.5, default data of the paper: expected empty cells that pass the two-sided filter
DEFAULT_DATA = {
    "section": "9.5",
    "epsilon": 0.1,
    "m": 1_000_000,
    "n": 100_000,
    "l1_norm": 10_000_000,
    "surviving_zeros": {20: 127_887, 40: 17_308, 50: 6_367, 70: 862},
    "t": 100_000,
    "printed_tau_rule": 199.83,
}

# 9.2, all at epsilon = 0.1; "printed" is what the paper's formula gives
ERRATA = {
    "section": "9.2",
    "epsilon": 0.1,
    "real_theta": {"item": 1, "theta": 4.3, "sides": 1, "true": 0.31842, "printed": 0.34150},
    "real_tau_below_one": {"item": 2, "tau": 0.5, "true": 0.95004, "printed": 0.97379},
    "real_tau": {"item": 2, "tau": 7.3, "true": 0.70785, "printed": 0.70853},
    "theta_zero": {"item": 3, "true": 1.0},
    "filtered_to_zero": {"item": 5, "theta": 3, "true": 0.2222, "printed": 0.2721},
    "two_sided_theta": {
        "item": 6,
        "t": 100_000,
        "m": 1_000_000,
        "n": 100_000,
        "real": 22.46,
        "with_m_minus_n": 23,
        "with_m": 24,  # not printed in 9.2: what item 0's rule (m, not m - n) gives
    },
}


def _same(value, golden, relative=0.0, absolute=0.0):
    assert math.isclose(value, golden, rel_tol=relative, abs_tol=absolute), (value, golden)


def _check_case(case):
    epsilon, theta, tau = case["epsilon"], case["theta"], case["tau"]
    a = geometric.alpha_for(epsilon)
    for survival in (high_pass_filter.survival, high_pass_filter.survival_closed):
        _same(survival(a, theta, 1), case["p1"], relative=5e-12)
        _same(survival(a, theta, 2), case["p2"], relative=5e-12)
    for survival in (threshold_sampling.survival, threshold_sampling.survival_closed):
        _same(survival(a, 0, tau, 2), case["p_tau"], relative=5e-12)
        _same(survival(a, 1, tau, 2), case["p_tau"], relative=5e-12)
        _same(survival(a, theta, tau, 2), case["p_theta_tau"], relative=5e-12)
        # 9.1: tau = 1 is Pr[G != 0]; tau <= theta is the filter alone
        _same(survival(a, 0, 1, 2), 1 - geometric.pmf(0, a), relative=1e-13)
        _same(survival(a, theta, theta, 2), case["p2"], relative=5e-12)
    for value, golden in case["cdf_tau"].items():
        _same(threshold_sampling.value_cdf(value, a, 0, tau, 2), golden, relative=5e-10)
    for value, golden in case["cdf_theta_tau"].items():
        _same(threshold_sampling.value_cdf(value, a, theta, tau, 2), golden, relative=5e-10)


def _printed_p_tau(alpha, tau):
    return 2 * alpha * (1 - alpha**tau) / (tau * (1 - alpha**2))


def _check_errata():
    a = geometric.alpha_for(ERRATA["epsilon"])
    row = ERRATA["real_theta"]
    for survival in (high_pass_filter.survival, high_pass_filter.survival_closed):
        _same(survival(a, row["theta"], row["sides"]), row["true"], absolute=5.1e-6)
        _same(survival(a, 0, 2), ERRATA["theta_zero"]["true"], relative=1e-14)
    _same(a ** row["theta"] / (1 + a), row["printed"], absolute=5.1e-6)
    for row in (ERRATA["real_tau_below_one"], ERRATA["real_tau"]):
        for survival in (threshold_sampling.survival, threshold_sampling.survival_closed):
            _same(survival(a, 0, row["tau"], 2), row["true"], absolute=5.1e-6)
        _same(_printed_p_tau(a, row["tau"]), row["printed"], absolute=5.1e-6)
    row = ERRATA["filtered_to_zero"]
    dropped = 1 - high_pass_filter.survival(a, row["theta"], 2)
    _same(dropped, row["true"], absolute=5.1e-5)
    _same(dropped + geometric.pmf(0, a), row["printed"], absolute=5.1e-5)
    row = ERRATA["two_sided_theta"]
    zeros, t, m = row["m"] - row["n"], row["t"], row["m"]
    real = math.log((1 + a) * t / (2 * zeros)) / math.log(a)
    _same(real, row["real"], absolute=5.1e-3)
    assert high_pass_filter.theta_for(zeros, t, 0.1, 1, 2) == row["with_m_minus_n"]
    assert high_pass_filter.theta_for(m, t, 0.1, 1, 2) == row["with_m"]


def check():
    """Assert that the formulas of this package reproduce every golden number."""
    a = geometric.alpha_for(SMALL_EPSILON["epsilon"])
    _same(a, SMALL_EPSILON["alpha"], relative=5e-12)
    _same(geometric.mean_abs(a), SMALL_EPSILON["mean_abs"], relative=5e-12)
    _same(geometric.variance(a), SMALL_EPSILON["variance"], relative=5e-12)
    _check_case(SMALL_EPSILON)
    _check_case(LARGE_EPSILON)
    data = DEFAULT_DATA
    for theta, golden in data["surviving_zeros"].items():
        expected = (data["m"] - data["n"]) * high_pass_filter.survival(a, theta, 2)
        _same(expected, golden, absolute=0.5)
    printed_rule = (data["l1_norm"] + data["m"] * geometric.mean_abs(a)) / data["t"]
    _same(printed_rule, data["printed_tau_rule"], absolute=5.1e-3)
    _check_errata()
