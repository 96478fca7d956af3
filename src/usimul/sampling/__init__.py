r"""From labels to supervision: seeded draws of the answers that an annotator would have given.

Only experiments and tests know labels; whoever collects real answers needs none of this. Notation: p = ``prior``,
q = 1 - p, P+ and P- the laws of the two classes, P = p P+ + q P-. A point "of class +1" is drawn uniformly from the
rows of the pool with that label.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from usimul.sampling.pairs import (
    sample_compared_pairs,
    sample_confidence_difference,
    sample_dissimilar_pairs,
    sample_pair_answers,
    sample_similar_pairs,
    sample_similarity_confidence,
    sample_triplet_answers,
)
from usimul.sampling.points import sample_labels, sample_unlabeled, sample_unlabeled_sets
from usimul.sampling.pool import RandomState
from usimul.sampling.triplets import sample_triplets
from usimul.supervision import Supervision
from usimul.validation import InputError, InputTypeError

__all__ = [
    "draw",
    "needs_posterior",
    "sample_compared_pairs",
    "sample_confidence_difference",
    "sample_dissimilar_pairs",
    "sample_labels",
    "sample_pair_answers",
    "sample_similar_pairs",
    "sample_similarity_confidence",
    "sample_triplet_answers",
    "sample_triplets",
    "sample_unlabeled",
    "sample_unlabeled_sets",
]

_SAMPLERS: dict[str, Callable[..., Supervision]] = {
    sampler.__name__: sampler
    for sampler in (
        sample_triplets,
        sample_labels,
        sample_unlabeled,
        sample_unlabeled_sets,
        sample_similar_pairs,
        sample_dissimilar_pairs,
        sample_pair_answers,
        sample_compared_pairs,
        sample_similarity_confidence,
        sample_confidence_difference,
        sample_triplet_answers,
    )
}


def needs_posterior(kind: type[Supervision]) -> bool:
    """Whether drawing a kind of supervision takes the posterior of every point beside the labels.

    >>> from usimul.supervision import ConfidenceDifference, Triplets
    >>> needs_posterior(ConfidenceDifference), needs_posterior(Triplets)
    (True, False)
    """
    return "posterior" in inspect.signature(_SAMPLERS[kind.sampler]).parameters


def draw(
    kind: type[Supervision],
    y: ArrayLike,
    n: int,
    *,
    n_unlabeled: int = 0,
    posterior: ArrayLike | None = None,
    prior: float | None = None,
    random_state: RandomState = None,
    wrong_yes: float = 0.0,
) -> Supervision:
    """Draw supervision of a given kind from labels, with the defaults of its sampler.

    The sampler is the one that the class names in ``sampler``. Kinds without unlabeled points ignore ``n_unlabeled``;
    kinds without confidences ignore ``posterior``, and kinds without yes answers ``wrong_yes``.

    Examples
    --------
    >>> from usimul.supervision import Triplets
    >>> draw(Triplets, [1, -1, 1, -1, 1, -1], 4, n_unlabeled=2, random_state=0).world
    'definition1'
    """
    given: Any = kind
    if not (isinstance(given, type) and issubclass(given, Supervision)):
        raise InputTypeError(f"`kind` must be a supervision class, such as Triplets. Got {kind!r}.")
    if kind.sampler not in _SAMPLERS:
        known = ", ".join(sorted(cls.__name__ for cls in Supervision.kinds().values() if cls.sampler in _SAMPLERS))
        raise InputError(
            f"{kind.__name__} cannot be drawn from labels; kinds that can: {known}. "
            f"Pass a {kind.__name__} object made from real answers instead of labels."
        )
    sampler = _SAMPLERS[kind.sampler]
    takes = inspect.signature(sampler).parameters
    options: dict[str, Any] = {"prior": prior, "random_state": random_state}
    if "wrong_yes" in takes:
        options["wrong_yes"] = wrong_yes
    if "n_unlabeled" in takes:
        options["n_unlabeled"] = n_unlabeled
    if "posterior" in takes:
        if posterior is None:
            raise InputError(
                f"drawing {kind.__name__} needs `posterior`, P(y = +1 | x) of every point of the pool. Got None. "
                "Compute it with usimul.posterior, or pass the exact one of synthetic data."
            )
        options["posterior"] = posterior
    return sampler(y, n, **options)
