"""The latent-class model: the prior from exact counts, one-step bootstrap draws against refitted ones, slopes."""

from itertools import product

import numpy as np
import pytest

from usimul.class_prior.curves import GRID, TupleCurve, bootstrap_peaks, profile_interval
from usimul.class_prior.latent import Counts, _Model, count_bins, interpolated_peak, profile, redrawn
from usimul.events import EVENTS
from usimul.validation import InputError

# A world of four kinds of points; no kind is pure, and the order of kinds is not that of the classes' odds.
PLUS, MINUS = np.array([0.1, 0.25, 0.6, 0.05]), np.array([0.3, 0.15, 0.05, 0.5])
SAYS = {  # independent of the library's tables of events: how often labels y, y', y'' become a triplet
    "triplet": lambda y: float(y[0] in y[1:]),
    "shuffled-pair": lambda y: 0.5 * (y[0] == y[1]) + 0.5 * (y[0] == y[2]),
}


def population(event, p, n=1.0, m=1.0):
    """Exact shares of kinds in triplets and among points, by enumeration of labels and kinds."""
    law = {1: p * PLUS, 0: (1 - p) * MINUS}
    cells = np.zeros((4, 4, 4))
    for y in product((0, 1), repeat=3):
        for kinds in product(range(4), repeat=3):
            cells[kinds] += SAYS[event](y) * np.prod([law[label][kind] for label, kind in zip(y, kinds, strict=True)])
    return Counts(n * cells / cells.sum(), m * (law[1] + law[0]))


def drawn(event, p, n, m, seed):
    exact, rng = population(event, p), np.random.default_rng(seed)
    cells = rng.multinomial(n, exact.tuples.ravel()).reshape(4, 4, 4).astype(float)
    return Counts(cells, rng.multinomial(m, exact.points).astype(float))


@pytest.mark.parametrize("event", SAYS)
@pytest.mark.parametrize("p", [0.1, 0.2, 0.4, 0.7, 0.9])
def test_exact_counts_give_the_prior_and_the_laws(event, p):
    curve = TupleCurve(population(event, p, n=3000, m=6000), EVENTS[event])
    found = interpolated_peak(GRID, curve.fitted.log_likelihood)
    assert found == pytest.approx(min(p, 1 - p), abs=1e-3)
    rarer, other = (PLUS, MINUS) if p < 0.5 else (MINUS, PLUS)
    np.testing.assert_allclose(curve.laws(min(p, 1 - p)), [rarer, other], atol=5e-3)


def test_likelihood_is_that_of_the_counts():
    """At the true laws, against the sum over cells written out."""
    counts = population("triplet", 0.4, n=10, m=20)
    theta = np.stack([0.4 * PLUS, 0.6 * MINUS])
    exact = population("triplet", 0.4)
    expected = (counts.tuples * np.log(exact.tuples)).sum() + (counts.points * np.log(exact.points)).sum()
    fit = _Model(EVENTS["triplet"]).step(theta, counts.tuples, counts.points)[1] - 10 * np.log(1 - 0.4 * 0.6)
    assert fit == pytest.approx(expected, rel=1e-12)
    found = profile(counts, EVENTS["triplet"], [0.4]).log_likelihood[0]
    assert found == pytest.approx(expected, abs=1e-4)  # the true laws are the best


def test_steps_of_expectation_maximisation_never_lower_the_likelihood():
    model, counts = _Model(EVENTS["triplet"]), drawn("triplet", 0.3, 500, 500, 0)
    theta, last = np.stack([0.2 * np.full(4, 0.25), 0.8 * np.array([0.4, 0.3, 0.2, 0.1])]), -np.inf
    for _ in range(30):
        expected, fit = model.step(theta, counts.tuples, counts.points)
        assert fit >= last - 1e-9
        assert expected.sum() == pytest.approx(3 * 500 + 500)  # every point has one class
        last, theta = fit, np.array([[0.2], [0.8]]) * expected / expected.sum(axis=1, keepdims=True)


COARSE = np.arange(1, 26) / 50


def profiles(p, seeds, n=2000):
    """Of many samples side by side, on a coarse grid."""
    some = [drawn("triplet", p, n, n, s) for s in seeds]
    counts = Counts(np.stack([c.tuples for c in some]), np.stack([c.points for c in some]))
    return profile(counts, EVENTS["triplet"], COARSE, tolerance=1e-3).log_likelihood


def test_sampled_counts_come_near_and_the_profile_interval_covers():
    """More than 6 of 40 misses have a chance of 0.3 % at 95 %; with 400 times the data errors are 20 times smaller."""
    curves = profiles(0.4, range(40))
    ends = [profile_interval(COARSE, curve, 0.95) for curve in curves]
    assert sum(not low <= 0.4 <= high for low, high in ends) <= 6
    spread = np.std(interpolated_peak(COARSE, curves))
    error = abs(float(interpolated_peak(COARSE, profiles(0.4, [0], n=800_000))[0]) - 0.4)
    assert error < 4 * spread / 20 + 2e-3  # the last: of the grid


@pytest.mark.parametrize("event", SAYS)
def test_slopes_are_derivatives(event):
    model, theta = _Model(EVENTS[event]), np.stack([0.3 * PLUS, 0.7 * MINUS])
    by_tuple, by_point = model.slopes(theta)

    def logs(of):
        return np.log(model.parts(of)[2].ravel()), np.log(of.sum(axis=0))

    for x, b in product(range(2), range(4)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = theta.copy()
            moved[x, b] *= np.exp(step)
            moved[x] *= theta[x].sum() / moved[x].sum()
            ends.append(logs(moved))
        for slope, up, down in zip((by_tuple, by_point), *ends, strict=True):
            np.testing.assert_allclose(slope[4 * x + b], (up - down) / 2e-5, atol=1e-8)


@pytest.mark.parametrize("p", [0.2, 0.4])
def test_draws_by_one_step_are_those_of_refitting(p):
    event, counts, rng = EVENTS["triplet"], drawn("triplet", p, 2000, 2000, 1), np.random.default_rng(2)
    priors = p + 0.02 * np.arange(-5, 5)
    fitted = profile(counts, event, priors)
    cells = rng.multinomial(2000, counts.tuples.ravel() / 2000, size=25).astype(float)
    points = rng.multinomial(2000, counts.points / 2000, size=25).astype(float)
    one = redrawn(fitted, event, cells, points)
    start = np.broadcast_to(fitted.theta, (25, *fitted.theta.shape))
    full = profile(Counts(cells.reshape(25, 4, 4, 4), points), event, priors, start=start)
    first, second = (interpolated_peak(priors, c) for c in (one, full.log_likelihood))
    assert np.corrcoef(first, second)[0, 1] > 0.95
    assert np.std(first) / np.std(second) == pytest.approx(1.0, abs=0.1)


def test_redrawing_the_same_counts_changes_nothing():
    event, counts = EVENTS["triplet"], drawn("triplet", 0.3, 2000, 2000, 1)
    fitted = profile(counts, event, [0.25, 0.3, 0.35], tolerance=1e-9)
    again = redrawn(fitted, event, counts.tuples.reshape(1, -1), counts.points[None])
    np.testing.assert_allclose(again[0], fitted.log_likelihood, atol=0.01)


def test_bootstrap_peaks_spread_as_repeated_samples_do():
    """Standard deviation of the bootstrap against that over 60 fresh samples, which is known to 10 % itself."""
    fresh = interpolated_peak(COARSE, profiles(0.3, range(60)))
    spreads = []
    for seed in range(3):
        curve = TupleCurve(drawn("triplet", 0.3, 2000, 2000, seed), EVENTS["triplet"])
        peaks = bootstrap_peaks([curve], GRID, curve.heights(GRID), 200, np.random.default_rng(seed))
        spreads.append(np.std(peaks))
    assert np.mean(spreads) == pytest.approx(np.std(fresh), rel=0.4)


def test_priors_are_mirrored():
    curve = TupleCurve(drawn("triplet", 0.3, 500, 500, 0), EVENTS["triplet"])
    np.testing.assert_array_equal(curve.heights(1.0 - GRID), curve.heights(GRID))


def test_bins_without_information_leave_the_prior_open():
    law = np.full(4, 0.25)
    cells = np.einsum("j,k,l->jkl", law, law, law)
    curve = TupleCurve(Counts(2000 * cells, 2000 * law), EVENTS["triplet"])
    low, high = profile_interval(GRID, curve.heights(GRID), 0.95)
    assert (low, high) == (GRID[0], GRID[-1])


def test_no_points_beside_the_triplets():
    counts = population("triplet", 0.2, n=3000, m=0)
    found = profile(counts, EVENTS["triplet"], GRID).log_likelihood
    assert interpolated_peak(GRID, found) == pytest.approx(0.2, abs=1e-3)


def test_counting():
    tuples = np.random.default_rng(0).integers(0, 3, (50, 3))
    counts = count_bins(tuples, np.array([2, 2, 0]), 3)
    expected = np.zeros((3, 3, 3))
    for i, j, k in tuples:
        expected[i, j, k] += 1
    np.testing.assert_array_equal(counts.tuples, expected)
    np.testing.assert_array_equal(counts.points, [1, 0, 2])


def test_only_events_of_three_points():
    with pytest.raises(InputError, match="three points"):
        profile(Counts(np.ones((2, 2, 2)), np.ones(2)), EVENTS["similar-pair"], [0.3])


def test_profile_interval_ends_where_the_likelihood_fell_by_half_a_quantile():
    """Of a parabola: 1.96 standard deviations, and to the end of the grid where it does not fall that far."""
    low, high = profile_interval(GRID, -0.5 * ((GRID - 0.2) / 0.02) ** 2, 0.95)
    assert (low, high) == pytest.approx((0.2 - 0.0392, 0.2 + 0.0392), abs=5e-4)
    assert profile_interval(GRID, -0.5 * ((GRID - 0.48) / 0.02) ** 2, 0.95)[1] == GRID[-1]
