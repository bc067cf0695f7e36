"""Golden numbers of methods.md 9.5, and check(): this package reproduces them. Those of 9.2 are errata."""

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


def _same(value, golden, relative=0.0, absolute=0.0):
    assert math.isclose(value, golden, rel_tol=relative, abs_tol=absolute), (value, golden)


def _check_case(case):
    epsilon, theta, tau = case["epsilon"], case["theta"], case["tau"]
    a = geometric.alpha_for(epsilon)
    for survival in (high_pass_filter.survival, high_pass_filter.survival_closed):
        _same(survival(a, theta, 1), case["p1"], relative=5e-12)
        _same(survival(a, theta, 2), case["p2"], relative=5e-12)
    survival = threshold_sampling.survival
    _same(survival(a, 0, tau, 2), case["p_tau"], relative=5e-12)
    _same(survival(a, 1, tau, 2), case["p_tau"], relative=5e-12)
    _same(survival(a, theta, tau, 2), case["p_theta_tau"], relative=5e-12)
    # 9.1: tau = 1 is Pr[G != 0], and tau <= theta is the filter alone
    _same(survival(a, 0, 1, 2), 1 - geometric.pmf(0, a), relative=1e-13)
    _same(survival(a, theta, theta, 2), case["p2"], relative=5e-12)
    for value, golden in case["cdf_tau"].items():
        _same(threshold_sampling.value_cdf(value, a, 0, tau, 2), golden, relative=5e-10)
    for value, golden in case["cdf_theta_tau"].items():
        _same(threshold_sampling.value_cdf(value, a, theta, tau, 2), golden, relative=5e-10)


def check():
    """Assert that the formulas of this package reproduce every golden number."""
    a = geometric.alpha_for(SMALL_EPSILON["epsilon"])
    _same(a, SMALL_EPSILON["alpha"], relative=5e-12)
    _same(geometric.mean_abs(a), SMALL_EPSILON["mean_abs"], relative=5e-12)
    _same(geometric.variance(a), SMALL_EPSILON["variance"], relative=5e-12)
    _check_case(SMALL_EPSILON)
    _check_case(LARGE_EPSILON)
