"""A labeled pool that turns label tuples into row tuples: the one place where points are drawn."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from usimul.events import Event, noisy
from usimul.supervision import Supervision
from usimul.validation import InputError, IntArray, check_labels, check_prior, check_seed

__all__ = ["Pool", "RandomState", "sample_event"]

RandomState = int | np.random.Generator | np.random.RandomState | None

Kind = TypeVar("Kind", bound=Supervision)

DRAWN_AT_ONCE = 1 << 22  # label tuples; some 300 MB for triplets
MOST_ASKED = 10**9  # label tuples in all: minutes


class Pool:
    """The rows of each class: turns arrays of labels into arrays of rows."""

    def __init__(self, y: ArrayLike, prior: float | None, *, replace: bool, random_state: RandomState) -> None:
        labels = check_labels(y)
        self.n_points = int(labels.size)
        self.by_label = {label: np.flatnonzero(labels == label) for label in (1, -1)}
        self.prior = float(np.mean(labels == 1)) if prior is None else check_prior(prior)
        self.replace = replace
        self.rng = check_seed(random_state)

    def labels(self, *shape: int) -> IntArray:
        """Independent labels, +1 with probability ``prior``."""
        return np.where(self.rng.random(shape) < self.prior, 1, -1)

    def exact_labels(self, share: float, *shape: int) -> IntArray:
        """Shuffled labels with an exact (rounded) share of positives."""
        labels = np.full(math.prod(shape), -1, dtype=np.int64)
        labels[: round(share * labels.size)] = 1
        return self.rng.permutation(labels).reshape(shape)

    def event_labels(self, event: Event, n: int) -> tuple[IntArray, int]:
        """Independent label tuples, of which those that are observed under the event are kept until there are n.

        Returns the kept tuples and how many were drawn up to the last of them.
        """
        expected = n / event.probability(self.prior)
        if expected > MOST_ASKED:
            raise InputError(
                f"at prior {self.prior:g} a {event.name} is observed once in {expected / n:,.0f} draws, so {n:,} of "
                f"them would take {expected:,.0f} draws; {MOST_ASKED:,} are the limit. Choose a prior nearer to 0.5, "
                "or fewer tuples."
            )
        powers = 1 << np.arange(event.size)
        acceptance = np.zeros(1 << event.size)
        acceptance[event.table @ powers] = event.accepted
        kept: list[IntArray] = []
        n_kept = n_asked = 0
        while n_kept < n:
            wanted = math.ceil(1.05 * (n - n_kept) / event.probability(self.prior)) + 16
            labels = self.labels(min(wanted, DRAWN_AT_ONCE), event.size)
            chance = acceptance[(labels > 0) @ powers]
            hits = np.flatnonzero(chance if event.acceptance is None else self.rng.random(len(labels)) < chance)
            hits = hits[: n - n_kept]
            kept.append(labels[hits])
            n_kept += hits.size
            n_asked += int(hits[-1]) + 1 if n_kept == n else len(labels)
        return np.concatenate(kept), n_asked

    def rows(self, *labels: IntArray) -> list[IntArray]:
        """Rows with the given labels, one array for each array of labels; no row twice within one tuple."""
        flat = np.concatenate([part.ravel() for part in labels])
        if self.replace:
            chosen = self._uniform(flat)
        else:
            chosen = np.empty(flat.size, dtype=np.int64)
            for label, available in self.by_label.items():
                wanted = flat == label
                needed = int(wanted.sum())
                if needed > available.size:
                    raise InputError(
                        f"sampling without replacement needs {needed} points of class {label:+d}, but the pool has "
                        f"{available.size}. Pass replace=True, ask for fewer points, or use a larger pool."
                    )
                chosen[wanted] = self.rng.permutation(available)[:needed]
        ends = np.cumsum([part.size for part in labels])[:-1]
        result = [part.reshape(like.shape) for part, like in zip(np.split(chosen, ends), labels, strict=True)]
        if self.replace:
            for rows, like in zip(result, labels, strict=True):
                if like.ndim == 2:
                    self._separate(rows, like)
        return result

    def _uniform(self, labels: IntArray) -> IntArray:
        chosen = np.empty(labels.shape, dtype=np.int64)
        for label, available in self.by_label.items():
            wanted = labels == label
            chosen[wanted] = available[self.rng.integers(available.size, size=int(wanted.sum()))]
        return chosen

    def _separate(self, rows: IntArray, labels: IntArray) -> None:
        """Redraw, in place, the points of every tuple that holds a row twice; its labels stay, so the law does too."""
        for label, available in self.by_label.items():
            most = int((labels == label).sum(axis=1).max(initial=0))
            if most > available.size:
                raise InputError(
                    f"one tuple needs {most} different points of class {label:+d}, but the pool has {available.size}. "
                    "Use a larger pool."
                )
        bad = np.arange(len(rows))
        while True:
            ordered = np.sort(rows[bad], axis=1)
            bad = bad[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
            if not bad.size:
                return
            rows[bad] = self._uniform(labels[bad])


def sample_event(
    kind: type[Kind],
    event: Event,
    pool: Pool,
    n: int,
    *,
    n_unlabeled: int,
    world: str | None = None,
    wrong_yes: float = 0.0,
) -> Kind:
    """Ask about tuples of independent points and keep those of which the event is observed: any event, any kind.

    A share ``wrong_yes`` of what is kept is expected to be wrong: the annotator never says a wrong no, and wrong yes
    answers as often as that takes.
    """
    labels, n_asked = pool.event_labels(noisy(event, wrong_yes, pool.prior), n)
    rows, unlabeled = pool.rows(labels, pool.labels(n_unlabeled))
    return kind(rows, unlabeled=unlabeled, n_points=pool.n_points, world=world, n_asked=n_asked, n_accepted=n)
