"""The demo: triplets from embedded digits, four methods on one budget, judged with and without labels.

Nothing is chosen on labels: the last epoch is reported. Both judgements are made on the same test points; their labels
play the annotator of the triplets that judge, and measure the accuracy after training.
"""

from __future__ import annotations

import contextlib
import math
import platform
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from usimul import __version__
from usimul.batching import n_steps_per_epoch, pool_tensor
from usimul.datasets import load_dataset, resample_to_prior
from usimul.estimators import WeakClassifier
from usimul.methods import get_method
from usimul.metrics import accuracy
from usimul.mixture import printed_triplet_row
from usimul.sampling import sample_labels, sample_triplets
from usimul.supervision import Supervision, Triplets
from usimul.training import Epoch, score_sources
from usimul.validation import DegenerateTrainingWarning, check_count, check_prior
from usimul.weak_risk import WeakRisk, triplet_risk

__all__ = ["FULL", "METHODS", "QUICK", "DemoResult", "Row", "Sizes", "run_demo"]

METHODS = ("usimul-abs", "usimul-exact-abs", "joint", "supervised")
NAMES = {
    "usimul-abs": "as printed in the paper",
    "usimul-exact-abs": "corrected weights (ours)",
    "joint": "whole triplet (ours)",
    "supervised": "sees the labels: the ceiling",
}
SOURCES = 3 + 1  # three independent draws beside the seed of training

Progress = Callable[[str, int, int, Epoch], None]


@dataclass(frozen=True)
class Sizes:
    """How much is drawn and how long is trained."""

    n_triplets: int = 2000
    n_unlabeled: int = 1000
    n_judging: int = 1000
    n_steps: int = 1000
    batch_size: int = 256

    @property
    def n_points(self) -> int:
        """Points that each method sees, repeats counted."""
        return 3 * self.n_triplets + self.n_unlabeled


FULL = Sizes()
QUICK = Sizes(n_triplets=300, n_unlabeled=150, n_judging=300, n_steps=100)


@dataclass(frozen=True)
class Row:
    """One trained method: its line of the table, and its curves."""

    method: str
    explained: str
    accuracy: float
    label_free: WeakRisk
    share_positive: float
    seconds: float
    orientation: str
    restarts: int
    risk: list[float] = field(repr=False)
    label_free_risk: list[float] = field(repr=False)
    settings: str = ""
    notes: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether every test point gets the same class."""
        return self.share_positive in (0.0, 1.0)


@dataclass(frozen=True)
class DemoResult:
    """Everything that the table and the report say."""

    rows: list[Row]
    prior: float
    seed: int
    sizes: Sizes
    epochs: int
    n_test: int
    why: tuple[str, str]
    settings: dict[str, str]

    def row(self, method: str) -> Row:
        """Return the line of a method."""
        return next(row for row in self.rows if row.method == method)


def run_demo(*, prior: float = 0.4, seed: int = 0, sizes: Sizes = FULL, progress: Progress | None = None) -> DemoResult:
    """Draw, train and judge; see the module's docstring.

    Parameters
    ----------
    prior
        Share of positives of all draws and of the test set; not 1/2, where the printed estimator is undefined.
    seed
        Seed of all draws and trainings.
    sizes
        How much is drawn and trained.
    progress
        Called after each epoch of each method.
    """
    for method in METHODS:
        check_prior(prior, method=method, defined_at_half=get_method(method).defined_at_half)
    check_count(seed, "seed", low=0)
    draws = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(SOURCES)]
    data = load_dataset("digits", random_state=0)
    triplets = sample_triplets(
        data.y_train, sizes.n_triplets, n_unlabeled=sizes.n_unlabeled, prior=prior, random_state=draws[0]
    )
    labels = sample_labels(data.y_train, sizes.n_points, prior=prior, random_state=draws[2])
    test = resample_to_prior(data.y_test, prior, random_state=draws[3])
    X_test, y_test = data.X_test[test], data.y_test[test]
    # Over test points: the network may know those of the training by heart, also in triplets that it has not seen.
    judging = sample_triplets(y_test, sizes.n_judging, n_unlabeled=sizes.n_judging, prior=prior, random_state=draws[1])
    # One epoch has the same number of steps for all methods, so steps, epochs and points seen are the same.
    per_epoch = n_steps_per_epoch(triplets.sources(), sizes.batch_size)
    epochs = math.ceil(sizes.n_steps / per_epoch)
    rows = []
    with _one_thread():
        for method in METHODS:
            sup: Supervision = labels if get_method(method).supervision is type(labels) else triplets
            clf = WeakClassifier(
                method,
                prior=prior,
                model="mlp",
                epochs=epochs,
                batch_size=math.ceil(sum(len(rows) for rows in sup.sources().values()) / per_epoch),
                image_shape=data.image_shape,  # type: ignore[arg-type]  # three sides for images
                random_state=seed,
            )
            rows.append(_train(clf, data.X_train, sup, judging, X_test, y_test, prior, progress))
    return DemoResult(
        rows=rows,
        prior=prior,
        seed=seed,
        sizes=sizes,
        epochs=epochs,
        n_test=len(test),
        why=_why(prior, rows[0]),
        settings=_settings(prior, seed, sizes, epochs, per_epoch, len(test), triplets),
    )


def _train(
    clf: WeakClassifier,
    X: Any,
    sup: Supervision,
    judging: Triplets,
    X_test: Any,
    y_test: Any,
    prior: float,
    progress: Progress | None,
) -> Row:
    pool, sources = pool_tensor(X_test, "cpu"), judging.sources()

    def watch(module: torch.nn.Module) -> float:
        found = score_sources(module, pool, sources)
        return triplet_risk(found["triplets"], found["unlabeled"], prior, kind="second-moment").value

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DegenerateTrainingWarning)
        clf.fit(X, sup, progress=progress, watch=watch)
    scores = clf.decision_function(X_test)
    own = get_method(clf.method_).recipe
    return Row(
        method=clf.method_,
        explained=NAMES[clf.method_],
        accuracy=accuracy(y_test, scores),
        label_free=clf.weak_risk(X_test, judging),
        share_positive=float(np.mean(scores >= 0)),
        seconds=float(sum(clf.history_["seconds"])),
        orientation=clf.orientation_.explain(unbiased=get_method(clf.method_).unbiased_for(clf.world_)),
        restarts=clf.n_restarts_,
        risk=clf.history_["risk"],
        label_free_risk=clf.history_["watched"],
        settings=f"loss {own.loss}, {own.optimizer}, rate {own.lr:g}, {own.schedule}",
        notes=tuple(str(w.message) for w in caught if issubclass(w.category, DegenerateTrainingWarning)),
    )


def _why(prior: float, printed: Row) -> tuple[str, str]:
    """Two sentences on the printed estimator."""
    total = sum(printed_triplet_row(prior))
    minority, share = ("+1", prior) if prior < 0.5 else ("-1", 1.0 - prior)
    observed = printed.share_positive if minority == "+1" else 1.0 - printed.share_positive
    return (
        f"The printed weights are derived from a 'density' of triplet points that sums to {total:.2f} at prior "
        f"{prior:g}, not to 1, so the risk they give is not the classification risk of such triplets.",
        f"The minimiser of that risk predicts the minority class, here {minority}, everywhere, which is right for "
        f"{share:.0%} of the points; in this run it was predicted for {observed:.0%} of the test points.",
    )


def _settings(
    prior: float, seed: int, sizes: Sizes, epochs: int, per_epoch: int, n_test: int, triplets: Triplets
) -> dict[str, str]:
    quick = "" if sizes == FULL else " --quick" if sizes == QUICK else " (sizes changed)"
    return {
        "command": f"usimul demo --seed {seed} --prior {prior:g}{quick}",
        "data": "digits of scikit-learn, even (+1) against odd (-1)",
        "world": f"definition1: three independent points, kept if the answer is yes "
        f"({triplets.n_accepted:,} of {triplets.n_asked:,} asked)",
        "training supervision": f"{sizes.n_triplets:,} triplets and {sizes.n_unlabeled:,} unlabeled points; "
        f"supervised: {sizes.n_points:,} labeled points",
        "points seen by each method": f"{sizes.n_points:,}, repeats counted",
        "budget of each method": f"{epochs} epochs of {per_epoch} steps, last epoch reported",
        "label-free estimate": f"second moments of {sizes.n_judging:,} triplets and as many unlabeled points, all "
        "of the test set, of which no point was trained on",
        "test set": f"{n_test} points, resampled to the prior",
        "prior": f"{prior:g}, told to all methods",
        "model": "MLP with three hidden layers of 300",
        "seed": str(seed),
        "versions": f"usimul {__version__}, torch {torch.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}",
        "threads": "1",
    }


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Train with one thread: as fast for a small net, much faster on a busy machine, and the same bits everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
