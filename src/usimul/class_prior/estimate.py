"""Estimate the prior from what there is: counted answers, the triplets themselves, some labels, or all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from usimul.class_prior.curves import (
    GRID,
    LabelCurve,
    RateCurve,
    Source,
    TupleCurve,
    bootstrap_peaks,
    peak,
    profile_interval,
)
from usimul.class_prior.latent import count_bins
from usimul.class_prior.rates import ASSUMPTIONS as COUNTED
from usimul.class_prior.rates import Rate, chosen, counted_rate, from_rate, mirrored
from usimul.class_prior.result import SIDES, Interval, PriorEstimate, refuse_near_half
from usimul.events import EVENTS
from usimul.intervals import wilson_interval
from usimul.supervision import Labels, Supervision, Triplets
from usimul.validation import (
    InputError,
    InputTypeError,
    check_choice,
    check_class_labels,
    check_count,
    check_fraction,
    check_seed,
)

if TYPE_CHECKING:
    from usimul.class_prior.scores import Binned, Progress

__all__ = ["METHODS", "estimate_prior"]

FloatArray = NDArray[np.float64]
RandomState = int | np.random.Generator | np.random.RandomState | None

METHODS = ("auto", "acceptance", "likelihood", "labels")
NEAR_HALF = ("error", "estimate")

WORLD_EVENTS = {None: "triplet", "definition1": "triplet", "pair_plus_unlabeled": "shuffled-pair"}

LEARNED = (
    "triplets and unlabeled points are independent draws; unlabeled points follow the population whose prior is wanted",
    "the answers are right; wrong ones make the classes look more mixed and move the prior",
    "the points tell something about the class; the less they do, the wider the interval",
)
LABELED = (
    "the labeled points were drawn at random from the population whose prior is wanted, and the labels are right",
)

BY_LABELS_ODDS = 20.0  # from known points: how much likelier one naming of the classes must be to be taken
LAW_FLOOR = 0.01  # an empty bin proves nothing

SMALL = 100  # labels


@dataclass(frozen=True)
class _Settings:
    level: float
    side: str | None
    n_bootstrap: int
    rng: np.random.Generator


def estimate_prior(
    supervision: Supervision | None = None,
    X: Any = None,
    *,
    side: str | None = None,
    method: str = "auto",
    labels: ArrayLike | None = None,
    level: float = 0.95,
    near_half: str = "error",
    n_bins: int = 8,
    folds: int = 2,
    networks: int = 1,
    model: Any = "mlp-dropout",
    epochs: int | None = None,
    n_bootstrap: int = 200,
    image_shape: tuple[int, int, int] | None = None,
    device: str = "cpu",
    random_state: RandomState = None,
    progress: Progress | None = None,
) -> PriorEstimate:
    r"""Estimate the prior P(y = +1), with an interval.

    ``acceptance``
        From the share of yes answers, which fits two priors: for triplets :math:`p = (1 \pm \sqrt{4Z - 3})/2`. Needs
        the number of tuples asked about (``n_asked``), or a kind that holds every answer. Nothing is trained. Its
        interval is Wilson's of the share, mapped by the same formula.
    ``likelihood``
        From triplets and unlabeled points alone; needs X. Classifiers are trained without a prior; held-out points are
        sorted into bins by their scores; which bins stand together in triplets tells the prior, up to p <-> 1 - p, by
        the likelihood of a latent-class model (`usimul.class_prior.latent`). How good or how calibrated the classifiers
        are decides the width of the interval, not whether it is right. The interval is that of the bootstrap of
        triplets and points or that of the profile likelihood, on each side whichever reaches further.
    ``labels``
        The share among some labeled points, which must be drawn at random; Wilson's interval.
    ``auto``
        All of these for which there is what they need; their log likelihoods are added. Says in ``method`` what was
        used. The interval of several is that of the bootstrap.

    Without labels nothing tells p from 1 - p. Say which by ``side``, or by points with known labels in the supervision
    (with the likelihood); else both roots are returned and ``value`` is None.

    Parameters
    ----------
    supervision
        What was collected; None if there are only labels.
    X
        The pool of points that its rows point into; for the likelihood.
    side
        ``"minority"`` if the positives are the rarer class, ``"majority"`` if they are the commoner one.
    method
        One of the four above.
    labels
        Labels, +1 and -1, of some points drawn at random; of which points does not matter.
    level
        Confidence of the interval.
    near_half
        Where the intervals of both roots merge at 1/2, ``"error"`` raises `PriorNearHalfError`, which holds the
        estimate, and ``"estimate"`` returns it with a note.
    n_bins, folds, networks
        For the likelihood: bins of the scores, parts of which each is judged by classifiers trained on the others, and
        how many classifiers are averaged for each part.
    model, epochs, image_shape, device
        Network of the likelihood's classifiers and how it is trained, as in `usimul.WeakClassifier`.
    n_bootstrap
        Draws behind the interval.
    random_state
        Seed of folds, classifiers and bootstrap.
    progress
        Called after each epoch of training with name, epoch, number of epochs, and what it showed.

    Returns
    -------
    PriorEstimate
        Prints as a few lines: value, interval, what has to hold for it.

    Examples
    --------
    >>> from usimul.supervision import Triplets
    >>> sup = Triplets([[0, 1, 2]] * 840, n_asked=1000)
    >>> found = estimate_prior(sup, side="minority")
    >>> round(found.value, 3), [round(end, 3) for end in found.interval]
    (0.2, [0.166, 0.243])
    >>> round(estimate_prior(sup, side="majority").value, 3)
    0.8
    >>> estimate_prior(labels=[1, -1, -1, 1, -1, -1, -1, -1, -1, -1]).value
    0.2
    """
    check_choice(method, METHODS, "method")
    check_choice(near_half, NEAR_HALF, "near_half")
    if side is not None:
        check_choice(side, SIDES, "side")
    settings = _Settings(
        check_fraction(level, "level"), side, check_count(n_bootstrap, "n_bootstrap", low=20), check_seed(random_state)
    )
    given = _labels(supervision, labels)
    if supervision is not None and not isinstance(supervision, Supervision):
        raise InputTypeError(
            f"`supervision` must be a supervision object. Got {type(supervision).__name__}. "
            "Wrap row indices in one, such as usimul.Triplets(rows, n_points=len(X), n_asked=...)."
        )
    rate = None if supervision is None else counted_rate(supervision)
    used = _which(method, supervision, X, given, rate)
    if used == ("acceptance",):
        assert rate is not None
        found = from_rate(rate, side, settings.level)
    elif used == ("labels",):
        assert given is not None
        found = _from_labels(*given, side, settings.level)
    else:
        binned = None
        if "likelihood" in used:
            assert isinstance(supervision, Triplets)
            if rate is not None and "acceptance" in used:
                from_rate(rate, side, settings.level)  # refuses impossible counts before anything is trained
            binned = _bins(
                X,
                supervision,
                n_bins=check_count(n_bins, "n_bins", low=2),
                folds=check_count(folds, "folds", low=2),
                networks=check_count(networks, "networks"),
                model=model,
                epochs=None if epochs is None else check_count(epochs, "epochs"),
                image_shape=image_shape,
                device=device,
                rng=settings.rng,
                progress=progress,
            )
        found = _combine(used, supervision, rate, given, binned, settings)
    if near_half == "error":
        refuse_near_half(found)
    elif found.near_half:
        note = "the intervals of both roots merge at 1/2: the prior cannot be told from 1/2, and the side says little"
        found = replace(found, notes=(*found.notes, note))
    return found


def _bins(X: Any, supervision: Triplets, **settings: Any) -> Binned:
    from usimul.class_prior.scores import cross_fitted_bins  # imports torch

    return cross_fitted_bins(X, supervision, **settings)


def _labels(supervision: object, labels: ArrayLike | None) -> tuple[int, int] | None:
    """Return the numbers of positives and of labels; labels of either source, not of both."""
    if isinstance(supervision, Labels):
        if labels is not None:
            raise InputError("labels were given twice, as supervision and as `labels`. Pass them once.")
        labels = supervision.values
    if labels is None:
        return None
    values = np.asarray(labels)
    if values.ndim != 1 or values.size == 0:
        raise InputError(f"`labels` must hold one label for each labeled point, shape (n,). Got shape {values.shape}.")
    positive = int((check_class_labels(values, [-1, 1], "labels") == 1).sum())
    return positive, int(values.size)


def _which(
    method: str, supervision: Supervision | None, X: Any, given: tuple[int, int] | None, rate: Rate | None
) -> tuple[str, ...]:
    """Names of what is used; an error says what is missing for what was asked."""
    lacks: dict[str, str | None] = {
        "acceptance": _no_rate(supervision, rate),
        "likelihood": _no_likelihood(supervision, X),
        "labels": None if given is not None else "no labels were given (labels=..., or --labels FILE)",
    }
    if method != "auto":
        if lacks[method] is not None:
            others = [name for name, why in lacks.items() if why is None]
            hint = f" What was given is enough for method={' or '.join(map(repr, others))}." if others else ""
            raise InputError(f"the prior cannot be estimated by method={method!r}: {lacks[method]}.{hint}")
        return (method,)
    used = tuple(name for name, why in lacks.items() if why is None)
    if not used:
        reasons = "; ".join(f"{name}: {why}" for name, why in lacks.items())
        raise InputError(f"nothing was given that the prior can be estimated from. {reasons}.")
    return used


def _no_rate(supervision: Supervision | None, rate: Rate | None) -> str | None:
    if rate is not None:
        return None
    if supervision is None:
        return "it needs supervision with counted answers, and none was given"
    if supervision.world not in (None, "definition1"):
        return f"in world {supervision.world!r} nobody is asked about the tuples, so there is no share of yes answers"
    if supervision.n_asked == 0 or supervision.n_tuples == 0:
        return "nobody was asked anything yet"
    if isinstance(supervision, Labels):
        return "labels are no answers about tuples"
    kinds = ("triplets", "similar-pairs", "dissimilar-pairs", "compared-pairs", "pair-answers", "triplet-answers")
    if supervision.kind not in kinds:
        return f"no answers can be counted in {supervision.kind}; those kinds have some: {', '.join(kinds)}"
    return "the number of tuples asked about is not known (n_asked=..., or --asked); without the no answers it needs it"


def _no_likelihood(supervision: Supervision | None, X: Any) -> str | None:
    if supervision is None:
        return "it needs triplets, and no supervision was given"
    if not isinstance(supervision, Triplets):
        return f"it is built for triplets, and the supervision holds {supervision.kind}"
    if supervision.world not in WORLD_EVENTS:
        return f"in world {supervision.world!r} no statement about labels is behind the triplets"
    if X is None:
        return "it needs the points themselves (X, or POINTS on the command line)"
    if supervision.world == "pair_plus_unlabeled" and supervision.n_unlabeled == 0:
        return "in world 'pair_plus_unlabeled' it needs unlabeled points, and there are none"
    return None


def _from_labels(positive: int, n: int, side: str | None, level: float) -> PriorEstimate:
    share = positive / n
    wilson = wilson_interval(positive, n, level=level)
    interval = (wilson.low, wilson.high)
    notes = []
    if positive in (0, n):
        notes.append(f"all {n} labels are of one class, so only an end of the interval says something; label more")
    if side is not None and not (interval[0] <= 0.5 if side == "minority" else interval[1] >= 0.5):
        raise InputError(
            f"`side`={side!r} contradicts the labels: {positive} of {n} are positive, and the interval of the prior is "
            f"{interval[0]:.3f} to {interval[1]:.3f}. Leave the side out, or check which label is called +1."
        )
    return PriorEstimate(
        share,
        interval,
        level,
        "labels",
        (share,),
        (interval,),
        side,
        LABELED,
        tuple(notes),
        details=(("labels", float(n)), ("positive", float(positive))),
    )


def _combine(
    used: tuple[str, ...],
    supervision: Supervision | None,
    rate: Rate | None,
    given: tuple[int, int] | None,
    binned: Binned | None,
    settings: _Settings,
) -> PriorEstimate:
    """Add the log likelihoods of all sources in use, and read off peak and interval."""
    sources: list[Source] = []
    details: list[tuple[str, float]] = []
    assumptions: list[str] = []
    notes: list[str] = []
    side, tuples = settings.side, None
    if rate is not None and "acceptance" in used:
        sources.append(RateCurve(rate))
        details += [("answers", float(rate.n)), ("share", rate.hits / rate.n)]
        assumptions += COUNTED
    if binned is not None:
        assert supervision is not None
        tuples = TupleCurve(
            count_bins(binned.tuples, binned.points, binned.n_bins), EVENTS[WORLD_EVENTS[supervision.world]]
        )
        sources.append(tuples)
        details += [
            ("triplets", float(len(binned.tuples))),
            ("unlabeled points", float(supervision.n_unlabeled)),
            ("bins", float(binned.n_bins)),
        ]
        assumptions += [*LEARNED, _folded(binned)]
        if not tuples.informative:
            notes.append(
                "the classifiers found nothing that tells the classes apart, so triplets say nothing about the prior"
            )
    curve = np.sum([source.heights(GRID) for source in sources], axis=0)
    if tuples is not None and binned is not None and binned.known is not None:
        assert supervision is not None
        assert supervision.known_labels is not None
        said = _side_of_known(tuples.laws(peak(GRID, curve)), binned.known, supervision.known_labels)
        side, words = _agree(side, said, len(supervision.known_labels))
        notes += words
    grid = GRID
    if given is not None:
        labels = LabelCurve(*given)
        sources.append(labels)
        details += [("labels", float(given[1])), ("positive", float(given[0]))]
        assumptions += LABELED
        grid = np.concatenate([GRID, 1.0 - GRID[-2::-1]])
        curve = np.concatenate([curve, curve[-2::-1]]) + labels.heights(grid)
    notes += _contradiction(sources, grid)
    found = _read_off(sources, grid, curve, side, settings)
    return replace(
        found, method=" + ".join(used), assumptions=tuple(assumptions), notes=tuple(notes), details=tuple(details)
    )


def _folded(binned: Binned) -> str:
    if binned.by == "points":
        lost = f"; {binned.n_dropped:,} triplets across folds were left out" if binned.n_dropped else ""
        return f"the points were divided into folds: none was sorted by a classifier that had seen it{lost}"
    return (
        "points stand in too many triplets to be divided, so the triplets were: the classifiers had seen some of the "
        "points that they sorted, which is right if triplets and unlabeled points were drawn independently"
    )


def _read_off(
    sources: list[Source], grid: FloatArray, curve: FloatArray, side: str | None, settings: _Settings
) -> PriorEstimate:
    level = settings.level
    tail = 0.5 * (1.0 - level)
    half = len(GRID) - 1

    def ends(priors: FloatArray, heights: FloatArray) -> tuple[float, Interval]:
        top = peak(priors, heights)
        low, high = np.quantile(
            bootstrap_peaks(sources, priors, heights, settings.n_bootstrap, settings.rng), [tail, 1.0 - tail]
        )
        return top, (min(float(low), top), max(float(high), top))

    if len(grid) == len(GRID):  # nothing tells p from 1 - p but the side
        root, interval = ends(grid, curve)
        both = profile_interval(grid, curve, level)
        # Where the classes are hardly told apart the bootstrap is too sure, so the wider end counts on each side.
        interval = (min(interval[0], both[0]), max(interval[1], both[1]))
        roots, intervals = mirrored(root, interval)
        value, found = chosen(roots, intervals, side)
        beside = both if side == "minority" else (1.0 - both[1], 1.0 - both[0])
        return PriorEstimate(
            value, found, level, "", roots, intervals, side, (), profile_interval=beside if side else None
        )
    floor = curve.max() - 0.5 * float(chi2.ppf(level, 1))
    low_top, high_top = curve[: half + 1].max(), curve[half:].max()
    connected = curve[half] >= floor
    if not connected and side is None and min(low_top, high_top) >= floor:  # labels do not tell the side either
        left, left_interval = ends(grid[: half + 1], curve[: half + 1])
        right, right_interval = ends(grid[half:], curve[half:])
        return PriorEstimate(None, None, level, "", (left, right), (left_interval, right_interval), None, ())
    if side is not None or not connected:
        lower = side == "minority" if side is not None else low_top > high_top
        part = slice(0, half + 1) if lower else slice(half, None)
        grid, curve = grid[part], curve[part]
    top, interval = ends(grid, curve)
    return PriorEstimate(
        top,
        interval,
        level,
        "",
        (top,),
        (interval,),
        side,
        (),
        profile_interval=profile_interval(grid, curve, level),
    )


def _side_of_known(laws: FloatArray, bins: NDArray[np.int64], labels: NDArray[np.int64]) -> str | None:
    """Whether known points say that the positives are the rarer class, the first law, or the other; None if neither."""
    ratio = np.log(np.maximum(laws[0], LAW_FLOOR)) - np.log(np.maximum(laws[1], LAW_FLOOR))
    evidence = float((ratio[bins] * labels).sum(axis=1).mean())
    if abs(evidence) < np.log(BY_LABELS_ODDS):
        return None
    return "minority" if evidence > 0 else "majority"


def _agree(side: str | None, said: str | None, n: int) -> tuple[str | None, list[str]]:
    if said is None:
        return side, [] if side else [f"the {n} known labels do not tell which class is the rarer one"]
    words = "rarer" if said == "minority" else "commoner"
    if side is None:
        return said, [f"the {n} known labels say that the positives are the {words} class"]
    if side != said:
        return side, [f"the {n} known labels say that the positives are the {words} class, against side={side!r}"]
    return side, []


def _contradiction(sources: list[Source], grid: FloatArray) -> list[str]:
    """Return a note if no prior fits all sources: the sum of separate maxima is far above the common maximum."""
    if len(sources) < 2:
        return []
    each = [source.heights(grid) for source in sources]
    gap = 2.0 * (sum(float(curve.max()) for curve in each) - float(np.sum(each, axis=0).max()))
    if gap < float(chi2.ppf(0.999, len(sources) - 1)):
        return []
    peaks = ", ".join(f"{peak(grid, curve):.3f}" for curve in each)
    return [
        f"the sources contradict each other: taken alone they have their largest likelihood at {peaks} (or mirrored). "
        "Wrong answers, wrong counts, or labels of points that were not drawn at random would do that; estimate by "
        "each method alone and find out which to trust"
    ]
