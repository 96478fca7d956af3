r"""A latent-class model of tuples of independent points: the prior from what can be counted, with no label.

Sort points into K bins by any rule fixed beforehand. Given its class a point falls into bin b with probability
:math:`\mu_b` (positive) or :math:`\nu_b` (negative). A tuple is kept if its event holds, with probability
:math:`T_{y_1 y_2 y_3}` given the labels (`usimul.events`), so that with :math:`\theta_+ = p\mu, \theta_- = q\nu`

.. math:: P(b_1, b_2, b_3 \mid Y) = \frac{1}{P(Y)} \sum_{y} T_{y_1 y_2 y_3}\,
          \theta_{y_1 b_1} \theta_{y_2 b_2} \theta_{y_3 b_3},
          \qquad P(b) = \theta_{+b} + \theta_{-b} \text{ for unlabeled points.}

For uncertain-similarity triplets, with :math:`u_b = 2 P(+ \mid b) - 1 = D + v_b`, :math:`D = 2p - 1`, the first line is
:math:`P(b_1)P(b_2)P(b_3) [1 + (2 D v_1 + v_1 v_2 + v_1 v_3 - v_2 v_3)/(3 + D^2)]`: the products tell v up to its sign,
the shift of the anchors tells D beside it, and both signs turn together. So p is known up to p <-> 1 - p as soon as the
bins carry any information about the class.

For a fixed p the other parameters are found by expectation-maximisation, whose steps are closed; the largest likelihood
at each p of a grid is the profile.

Reference: Dempster, Laird, Rubin (1977); latent-class models: Goodman (1974). Differs from the paper, which takes the
prior as known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.events import Event
from usimul.validation import InputError, IntArray

__all__ = ["Counts", "Profile", "count_bins", "interpolated_peak", "profile", "redrawn"]

FloatArray = NDArray[np.float64]

FLOOR = 1e-300
ROUGH = 0.05  # of a log likelihood, until the better of two starts is chosen
LONGEST = 1e3  # of an extrapolation
SINGULAR = 1e-6  # of the largest eigenvalue: empty bins and the sum of a law say nothing
FLAT = 0.02  # the smallest share of a class in a bin that a start gives


@dataclass(frozen=True)
class Counts:
    """How many kept tuples fell into each combination of bins, and how many unlabeled points into each bin.

    A leading axis, if there is one, runs over independent parts (folds, bootstrap draws).
    """

    tuples: FloatArray
    points: FloatArray

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.points.shape[-1])


@dataclass(frozen=True)
class Profile:
    """Log likelihood maximised at each prior of a grid, ``(..., n_priors)``, and the parameters that reach it.

    ``theta[..., i, 0, :]`` is p times the law of the bins of the class whose share is ``priors[i]``;
    ``theta[..., i, 1, :]`` is q times that of the other.
    """

    priors: FloatArray
    log_likelihood: FloatArray
    theta: FloatArray


def count_bins(tuples: IntArray, points: IntArray, n_bins: int) -> Counts:
    """Count combinations of bins, given the bin of each member of each tuple and of each unlabeled point.

    >>> counts = count_bins(np.array([[0, 1, 0], [1, 1, 0]]), np.array([0, 1, 1]), 2)
    >>> float(counts.tuples[0, 1, 0]), counts.points
    (1.0, array([1., 2.]))
    """
    size = tuples.shape[1]
    flat = np.ravel_multi_index(tuple(tuples.T), (n_bins,) * size)
    cells = np.bincount(flat, minlength=n_bins**size).astype(np.float64)
    return Counts(cells.reshape((n_bins,) * size), np.bincount(points.ravel(), minlength=n_bins).astype(np.float64))


class _Model:
    """The event as a 2 x 2 x 2 table, first index of each axis the positive class; likelihood and one EM step."""

    def __init__(self, event: Event) -> None:
        if event.size != 3:
            raise InputError(f"the latent-class model is built for events of three points. Got {event.name!r}.")
        self.event = event
        self.table = np.zeros((2, 2, 2))
        for labels, accepted in zip(event.admissible, event.accepted, strict=True):
            self.table[tuple(1 - y for y in labels)] = accepted

    def parts(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``sum_z T_xyz theta_zl``, ``sum_y theta_yk`` of that, and the law of three bins ``j, (k, l)``."""
        k = theta.shape[-1]
        last = (self.table.reshape(4, 2) @ theta).reshape(*theta.shape[:-2], 2, 2, k)
        pair = np.swapaxes(theta, -1, -2)[..., None, :, :] @ last  # (..., x, k, l)
        flat = pair.reshape(*pair.shape[:-2], k * k)
        return last, flat, np.swapaxes(theta, -1, -2) @ flat

    def step(self, theta: FloatArray, tuples: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected numbers of points by class and bin, and the log likelihood without the normaliser."""
        k = theta.shape[-1]
        last, flat, law = self.parts(theta)
        cells = tuples.reshape(*tuples.shape[:-3], k, k * k)
        law = np.maximum(law, FLOOR)
        ratio = cells / law
        first = flat @ np.swapaxes(ratio, -1, -2)  # (..., class, bin)
        back = (theta @ ratio).reshape(*theta.shape[:-1], k, k)  # (..., x, k, l)
        second = np.swapaxes(back @ np.swapaxes(last, -1, -2), -1, -2).sum(axis=-3)
        third = (theta[..., None, :, :] @ back).reshape(*theta.shape[:-2], 4, k)
        third = self.table.reshape(4, 2).T @ third
        plain = np.maximum(theta.sum(axis=-2), FLOOR)
        expected = theta * (first + second + third + (points / plain)[..., None, :])
        fit = (cells * np.log(law)).sum(axis=(-1, -2)) + (points * np.log(plain)).sum(axis=-1)
        return expected, fit

    def slopes(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes of the log law of tuples and of points in log ratios of the laws, ``(priors, 2 K, cells)``."""
        k = theta.shape[-1]
        last, flat, law = self.parts(theta)
        eye = np.eye(k)
        pair = flat.reshape(*flat.shape[:-1], k, k)
        middle = np.einsum("...xj,...xyl->...yjl", theta, last)
        end = np.einsum("...xj,...yk,xyz->...zjk", theta, theta, self.table)
        raw = (
            np.einsum("bj,...xkl->...xbjkl", eye, pair)
            + np.einsum("bk,...xjl->...xbjkl", eye, middle)
            + np.einsum("bl,...xjk->...xbjkl", eye, end)
        ).reshape(*theta.shape[:-1], k, k**3) / np.maximum(law.reshape(*law.shape[:-2], 1, 1, k**3), FLOOR)
        by_point = np.broadcast_to(eye / np.maximum(theta.sum(axis=-2), FLOOR)[..., None, None, :], (*theta.shape, k))
        own = theta / theta.sum(axis=-1, keepdims=True)

        def in_log_ratios(slope: FloatArray) -> FloatArray:
            mean = (own[..., None] * slope).sum(axis=-2, keepdims=True)
            turned = theta[..., None] * (slope - mean)
            flat: FloatArray = turned.reshape(*theta.shape[:-2], 2 * k, slope.shape[-1])
            return flat

        return in_log_ratios(raw), in_log_ratios(by_point)


def profile(
    counts: Counts,
    event: Event,
    priors: ArrayLike,
    *,
    start: FloatArray | None = None,
    max_steps: int = 2000,
    tolerance: float = 1e-5,
) -> Profile:
    """Maximise the likelihood over the laws of the bins, at each prior.

    Parameters
    ----------
    counts
        What was counted; leading axes are fitted side by side.
    event
        The event that the tuples were kept for.
    priors
        Grid of shares of the first class, strictly between 0 and 1.
    start
        ``theta`` of an earlier profile to go on from; None starts from both orders of the bins and keeps the better.
    max_steps, tolerance
        Steps end where a group of three raised the log likelihood by no more than ``tolerance``.
    """
    p = np.asarray(priors, dtype=np.float64)
    model = _Model(event)
    share = np.stack([p, 1.0 - p], axis=-1)[..., None]  # (priors, 2, 1)
    tuples, points = counts.tuples[..., None, :, :, :], counts.points[..., None, :]
    if start is None:
        found = [_climb(model, s, share, tuples, points, max_steps, ROUGH) for s in _starts(counts, share)]
        start = np.where((found[1][1] > found[0][1])[..., None, None], found[1][0], found[0][0])
    theta, fit = _climb(model, start, share, tuples, points, max_steps, tolerance)
    n_tuples = counts.tuples.sum(axis=(-1, -2, -3))[..., None]
    probability = np.array([event.probability(float(value)) for value in p])
    return Profile(p, fit - n_tuples * np.log(probability), theta)


def redrawn(fitted: Profile, event: Event, tuples: FloatArray, points: FloatArray) -> FloatArray:
    r"""Profile log likelihoods of other counts of the same bins, ``(n, n_priors)``, by one scoring step from a profile.

    With g the slopes of the other counts' log likelihood at the fitted laws and I the expected information of those
    laws, the maximum is higher by :math:`\tfrac12 g^\top I^{-1} g`, up to an error of a higher order in 1/n. So draws
    of a bootstrap cost a few matrix products and no steps of their own.

    Parameters
    ----------
    fitted
        Profile of all counts, without leading axes.
    event
        Its event.
    tuples, points
        Counts of the draws, ``(n, K^3)`` and ``(n, K)``; each draw has as many as all the others.
    """
    model = _Model(event)
    law = model.parts(fitted.theta)[2].reshape(len(fitted.priors), -1)
    plain = fitted.theta.sum(axis=-2)
    tuple_slopes, point_slopes = model.slopes(fitted.theta)
    n_tuples, n_points = tuples[0].sum(), points[0].sum()
    probability = np.array([event.probability(float(p)) for p in fitted.priors])
    fit: FloatArray = tuples @ np.log(np.maximum(law, FLOOR)).T + points @ np.log(np.maximum(plain, FLOOR)).T
    fit -= n_tuples * np.log(probability)
    for i in range(len(fitted.priors)):
        g = tuples @ tuple_slopes[i].T + points @ point_slopes[i].T
        information = n_tuples * (tuple_slopes[i] * (law[i] / probability[i])) @ tuple_slopes[i].T
        information += n_points * (point_slopes[i] * plain[i]) @ point_slopes[i].T
        fit[:, i] += 0.5 * ((g @ np.linalg.pinv(information, rcond=SINGULAR, hermitian=True)) * g).sum(axis=1)
    scored: FloatArray = fit
    return scored


def _starts(counts: Counts, share: FloatArray) -> list[FloatArray]:
    """Bins in order of the score, one class rising through them and one falling; and the other way round."""
    rise = np.linspace(FLAT, 1.0 - FLAT, counts.n_bins)
    seen = counts.points + counts.tuples.sum(axis=(-3, -2)) + 1e-9  # the last companions stand for unlabeled points
    law = (seen / seen.sum(axis=-1, keepdims=True))[..., None, :]
    found = []
    for up in (rise, rise[::-1]):
        theta = np.stack([law * up, law * (1.0 - up)], axis=-2)
        found.append(share * theta / theta.sum(axis=-1, keepdims=True))
    return found


def _climb(
    model: _Model,
    theta: FloatArray,
    share: FloatArray,
    tuples: FloatArray,
    points: FloatArray,
    max_steps: int,
    tolerance: float,
) -> tuple[FloatArray, FloatArray]:
    """Take EM steps at fixed class shares, in groups of three with a squared extrapolation (Varadhan, Roland 2008).

    Problems along the leading axes are independent; each stops when its own likelihood grows no more.
    """
    shape, k = theta.shape[:-2], theta.shape[-1]
    at = theta.reshape(-1, 2, k).copy()
    shares = np.broadcast_to(share, (*shape, 2, 1)).reshape(-1, 2, 1)
    cells = np.broadcast_to(tuples, (*shape, k, k, k)).reshape(-1, k, k, k)
    plain = np.broadcast_to(points, (*shape, k)).reshape(-1, k)
    reached = np.full(len(at), -np.inf)
    active = np.arange(len(at))
    for _ in range(max(1, max_steps // 3)):
        own = shares[active], cells[active], plain[active]
        one, fit = _move(model, at[active], *own)
        going = fit - reached[active] > tolerance
        reached[active] = fit
        if not going.any():
            break
        active, one, fit = active[going], one[going], fit[going]
        own = shares[active], cells[active], plain[active]
        before = at[active]
        two, _ = _move(model, one, *own)
        r, v = one - before, two - 2.0 * one + before
        norm_r, norm_v = (np.sqrt((x**2).sum(axis=(-1, -2), keepdims=True)) for x in (r, v))
        length = np.clip(norm_r / np.maximum(norm_v, FLOOR), 1.0, LONGEST)
        far = before + 2.0 * length * r + length**2 * v
        # A step that leaves the simplex, or lowers the likelihood, is not taken; plain EM never lowers it.
        inside = (far > 0).all(axis=(-1, -2), keepdims=True)
        tried, height = _move(model, np.where(inside, far, two), *own)
        at[active] = np.where((height >= fit)[..., None, None], tried, two)
    return at.reshape(theta.shape), model.step(at, cells, plain)[1].reshape(shape)


def _move(
    model: _Model, theta: FloatArray, share: FloatArray, tuples: FloatArray, points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Take one EM step; return also the log likelihood before it."""
    expected, fit = model.step(theta, tuples, points)
    return share * expected / np.maximum(expected.sum(axis=-1, keepdims=True), FLOOR), fit


def interpolated_peak(grid: FloatArray, heights: FloatArray) -> FloatArray:
    """Place of the maximum along the last axis, by a parabola through the best grid point and its neighbours.

    >>> x = np.linspace(0, 1, 11)
    >>> round(float(interpolated_peak(x, -((x - 0.43) ** 2))), 6)
    0.43
    """
    best = np.argmax(heights, axis=-1)
    middle = np.clip(best, 1, len(grid) - 2)
    left, top, right = (np.take_along_axis(heights, (middle + i)[..., None], -1)[..., 0] for i in (-1, 0, 1))
    bend = left - 2.0 * top + right
    step = grid[1] - grid[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = np.where(bend < 0, 0.5 * (left - right) / bend, best - middle)
    return np.asarray(np.clip(grid[middle] + step * np.clip(offset, -1.0, 1.0), grid[0], grid[-1]))
