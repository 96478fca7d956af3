"""Intervals on labels, against SciPy, exact laws and simulation."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from usimul.intervals import area_interval, balanced_interval, mean_interval, wilson_interval
from usimul.metrics import area_under_curve
from usimul.validation import InputError


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (3, 7), (20, 20), (700, 1000), (1, 1)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilson_is_that_of_scipy(hits, n, level):
    found = wilson_interval(hits, n, level=level)
    wanted = binomtest(hits, n).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == (pytest.approx(wanted.low, abs=1e-9), pytest.approx(wanted.high, abs=1e-9))
    assert found.value == hits / n


@pytest.mark.parametrize(("a", "b", "n", "m"), [(0.95, 0.8, 30, 60), (0.97, 0.9, 40, 40)])
def test_balanced_covers_by_the_exact_law(a, b, n, m):
    """Sum over all outcomes of two binomial laws: no simulation."""
    covered = 0.0
    first = [math.comb(n, k) * a**k * (1 - a) ** (n - k) for k in range(n + 1)]
    second = [math.comb(m, k) * b**k * (1 - b) ** (m - k) for k in range(m + 1)]
    for k, chance in enumerate(first):
        for j, other in enumerate(second):
            if chance * other > 1e-9:
                found = balanced_interval((k, j), (n, m))
                covered += chance * other * (found.low <= 0.5 * (a + b) <= found.high)
    assert covered > 0.92


@pytest.mark.parametrize(("shift", "n"), [(1.0, 40), (2.5, 30)])
def test_area_covers(shift, n):
    """Normal scores, whose area is known: Phi(shift / sqrt 2). At 95 %, 25 or more misses of 300 happen once in 100."""
    truth, rng, missed = 0.5 * (1 + math.erf(shift / 2)), np.random.default_rng(0), 0
    y = np.repeat([1, -1], n)
    for _ in range(300):
        found = area_interval(area_under_curve(y, rng.normal(size=2 * n) + shift * (y > 0)), n, n)
        missed += not found.low <= truth <= found.high
    assert missed <= 24


def test_areas_at_the_edge_stay_open():
    one, none = area_interval(1.0, 12, 8), area_interval(0.0, 12, 8)
    assert one.high == 1.0
    assert none.low == 0.0
    assert 0.5 < one.low < 1.0
    assert none.high == pytest.approx(1 - one.low, abs=1e-9)


def test_mean_is_the_normal_interval():
    values = np.arange(10.0)
    found = mean_interval(values)
    half = 1.959964 * values.std(ddof=1) / math.sqrt(10)
    assert (found.low, found.high) == (pytest.approx(4.5 - half), pytest.approx(4.5 + half))
    assert mean_interval([3.0]).high == math.inf


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: wilson_interval(3, 2), "0 <= hits <= n"),
        (lambda: wilson_interval(0, 0), "n >= 1"),
        (lambda: area_interval(0.5, 0, 3), "both classes"),
        (lambda: mean_interval([]), "vector of values"),
        (lambda: wilson_interval(1, 2, level=2.0), "level"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(InputError, match=match):
        call()
