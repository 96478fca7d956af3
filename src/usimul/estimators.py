"""scikit-learn estimators: argument checks, fitted attributes, and nothing that training does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import wraps
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor, nn

from usimul.batching import Pool, as_pool, check_device, n_steps_per_epoch
from usimul.calibration import Calibration, probabilities
from usimul.class_prior import prior_conflict
from usimul.degenerate import degenerate
from usimul.mapped import is_mapped
from usimul.methods import get_method, risk_terms
from usimul.methods.base import Method, Orientation, Recipe
from usimul.models import ModelSpec, build_model
from usimul.noise import disagreement
from usimul.posterior import fit_posterior
from usimul.risk import estimate_error
from usimul.sampling import draw, needs_posterior
from usimul.splits import hold_out
from usimul.supervision import Labels, Supervision, Triplets
from usimul.training import Epoch, Fitted, check_recipe, score_sources, scores, train
from usimul.validation import (
    DegenerateTrainingWarning,
    FewTuplesWarning,
    InputError,
    InputTypeError,
    NoisyAnswersWarning,
    PriorMismatchWarning,
    check_choice,
    check_class_labels,
    check_count,
    check_fraction,
    check_prior,
    check_real,
    check_seed,
)
from usimul.weak_risk import WeakRisk, labeled_risk, triplet_risk

__all__ = ["AUTO_CANDIDATES", "USimULClassifier", "WeakClassifier", "judging_prior"]

SELECTIONS = ("last", "label-free")
PRIOR_CHECKS = ("error", "warn", "ignore")

LINEAR_RATE, LINEAR_DECAY = 1e-2, 1e-3

AUTO_METHODS = ("joint", "joint-plain", "joint-likelihood")
AUTO_MODELS = ("mlp", "mlp-dropout")

AUTO_CANDIDATES = tuple((method, model) for method in AUTO_METHODS for model in AUTO_MODELS)

FEW_TUPLES = 30  # fewer leave a standard error of a tenth or more

FloatArray = NDArray[np.float64]
Progress = Callable[[str, int, int, Epoch], None]
Fit = TypeVar("Fit", bound=Callable[..., Any])


def _all_or_nothing(fit: Fit) -> Fit:
    """Begin a fit without the former one; one that fails brings the former back, as if it had not been called."""

    def forget(estimator: WeakClassifier) -> dict[str, Any]:
        fitted = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
        return {name: estimator.__dict__.pop(name) for name in fitted}

    @wraps(fit)
    def anew(self: WeakClassifier, *args: Any, **kwargs: Any) -> Any:
        former = forget(self)
        try:
            return fit(self, *args, **kwargs)
        except KeyboardInterrupt:
            if not hasattr(self, "module_"):  # the user ended the former fit as well
                forget(self)
            raise
        except BaseException:
            forget(self)
            self.__dict__.update(former)
            raise

    return cast(Fit, anew)


class WeakClassifier(ClassifierMixin, BaseEstimator):
    """Binary classifier trained by any registered method.

    Parameters
    ----------
    method
        Registry key, see `usimul.list_methods`, or ``"auto"``: the joint kinds are tried, and the label-free risk on
        held-out triplets decides.
    prior
        Share of positives P(y = +1). Required, except when ``fit`` gets plain labels or the method needs none.
    model
        ``"mlp"``, ``"mlp-dropout"``, ``"mlp-bn"``, ``"mlp-shared"`` (that of the paper's released code), ``"linear"``,
        ``"cnn"``, ``"resnet34"``, a torch module (copied), or a function that makes one. ``"auto"`` lets the label-free
        risk choose between the plain and the dropout MLP.
    loss
        ``"square"``, ``"logistic"``, ``"sigmoid"``, ``"hinge"``; None takes the method's own. The joint kinds have
        their loss built in.
    epochs, batch_size, lr, weight_decay, optimizer, schedule
        Training settings; None takes the method's recipe, which lengthens training on small data.
    selection
        ``"last"`` epoch, or the epoch with the least ``"label-free"`` risk on held-out points, see ``held_out_``. The
        least of many estimates is a little too low; to judge, take tuples over new points.
    patience
        With ``selection="label-free"``: stop when the held-out risk has not improved for so many epochs. The schedule
        of the rate is that of all epochs, so leave it room: the joint kinds learn most in their second half.
    validation_fraction
        Share of the points, and so of the tuples, held out when something is chosen without labels.
    n_tuples, n_unlabeled
        Sizes drawn when ``fit`` gets plain labels (a simulation); None: one tuple for each point, as many unlabeled.
        The draw has the share of positives ``prior``, or that of the labels if ``prior`` is None.
    prior_check
        What to do when ``prior`` contradicts the supervision, such as the acceptance rate of triplets: ``"error"``,
        ``"warn"``, or ``"ignore"``. Confidences that contradict it, and supervision to judge by, give a warning, never
        an error.
    wrong_yes
        Share of the tuples that were kept after a yes although the statement does not hold for them. The risk of the
        training and the label-free risks are corrected for it, by the methods that can (`usimul methods NAME`).
        Estimate it from repeated questions: `usimul.noise.estimate_wrong_yes`.
    scaling
        ``"feature"`` standardises each feature, ``"global"`` all by one mean and deviation (usual for images),
        ``"none"``; ``"auto"`` takes ``"global"`` where ``image_shape`` is given, else ``"feature"``.
    image_shape
        ``(channels, height, width)`` of the rows of X, for image models.
    options
        Options of the method.
    device
        torch device.
    random_state
        Seed of initial weights, batches, and draws. Same seed, same machine: same bits.
    verbose
        1 prints a line for each epoch.

    Attributes
    ----------
    classes_
        The two labels; the second is the positive one. ``[-1, 1]`` unless ``fit`` got plain labels.
    prior_
        The prior of the training; None if it was not stated and the method needs none.
    wrong_yes_
        The share of wrong yes answers that the training allowed for.
    history_
        Lists by epoch: risk, raw_risk, parts (uncorrected partial risks), corrected_share (of batches in which a
        correction acted), rate, seconds, weak_risk (on held-out tuples, see ``selection``), watched.
    orientation_
        How it is known which class is called positive; see `usimul.methods.base.Orientation`.
    n_epochs_, n_restarts_, interrupted_
        Epoch that was kept, restarts from a plateau, whether training was interrupted.
    n_tuples_, n_unlabeled_, n_points_, n_asked_, world_
        What it was trained on: ``n_points_`` is the length of the pool, ``n_asked_`` counts the questions behind the
        tuples, None if nobody said.
    from_labels_
        Whether labels took part: the supervision was labels, or ``fit`` drew it from plain labels.
    calibration_
        How ``predict_proba`` makes probabilities of scores: `usimul.calibration.Calibration`, with its ``kind`` "none",
        "label-free" or "labels", and the temperature. A fit has "none"; `usimul.assess.calibrate` finds one.
    auto_
        For ``"auto"``: one row for each candidate, with its risk on what was held out, see ``held_out_``. Candidates
        that are degenerate (`usimul.degenerate`) are taken only if all are.
    held_out_
        What was held out to choose without labels; None if nothing was. ``"points"``: the pool was divided, and no
        point that judged was trained on (`usimul.splits`). ``"tuples"``: where that would cost more than a tenth of
        the tuples, because points occur in many, the tuples were divided. Then most points that judged were trained
        on: the risk ranks, and is far too low as an estimate where the network memorises points.
    stopped_
        Whether ``patience`` ended the training before its last epoch.

    Examples
    --------
    >>> from usimul.datasets import make_gaussians
    >>> from usimul.sampling import sample_triplets
    >>> data = make_gaussians(2000, 2000, prior=0.3, random_state=0)
    >>> sup = sample_triplets(data.y_train, 2000, n_unlabeled=1000, prior=0.3, random_state=0)
    >>> clf = WeakClassifier("joint-likelihood", prior=0.3, model="linear", epochs=20, random_state=0)
    >>> clf = clf.fit(data.X_train, sup)
    >>> clf.score(data.X_test, data.y_test) > 0.8
    True
    """

    def __init__(
        self,
        method: str = "joint",
        *,
        prior: float | None = None,
        model: ModelSpec = "mlp",
        loss: str | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        optimizer: str | None = None,
        schedule: str | None = None,
        selection: str = "last",
        patience: int | None = None,
        validation_fraction: float = 0.2,
        n_tuples: int | None = None,
        n_unlabeled: int | None = None,
        prior_check: str = "error",
        wrong_yes: float = 0.0,
        scaling: str = "auto",
        image_shape: tuple[int, int, int] | None = None,
        options: Mapping[str, Any] | None = None,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.prior = prior
        self.model = model
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.schedule = schedule
        self.selection = selection
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_tuples = n_tuples
        self.n_unlabeled = n_unlabeled
        self.prior_check = prior_check
        self.wrong_yes = wrong_yes
        self.scaling = scaling
        self.image_shape = image_shape
        self.options = options
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that two classes are what this takes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @_all_or_nothing
    def fit(
        self,
        X: Any,
        y: Supervision | ArrayLike,
        *,
        progress: Progress | None = None,
        watch: Callable[[nn.Module], float] | None = None,
    ) -> Self:
        """Train. A fit that fails leaves the estimator as it was; one that is interrupted keeps what it has.

        Parameters
        ----------
        X
            The pool of points, ``(n_points, n_features)``. A file that was mapped by ``np.load(path, mmap_mode="r")``
            may be larger than memory: it is read in pieces and never copied whole, and images in it may keep their
            shape, channels first.
        y
            A supervision object over the rows of X. Or plain labels of two classes: then supervision of the method's
            kind is drawn from them, which simulates a collection; beyond the draw, labels only name the two classes.
            Kinds with confidences get them from an auxiliary classifier trained on the labels (`usimul.posterior`).
        progress
            Called after each epoch with the candidate's name, the epoch, the number of epochs, and what it showed.
        watch
            Any figure of the module in training, recorded after each epoch in ``history_["watched"]``. It chooses
            nothing: a curve of test accuracy is for looking at.
        """
        self._check_settings()
        names = AUTO_METHODS if self.method == "auto" else (self.method,)
        methods = [get_method(name) for name in names]
        if isinstance(y, Supervision):
            pool = self._points(X, reset=True)
            self.classes_ = np.array([-1, 1])
            prior, sup = self.prior, y
        else:
            pool, prior, sup = self._draw(X, y, methods[0])
        generator = check_seed(self.random_state)
        seed = int(generator.integers(2**31 - 100))
        sup.check_pool(len(pool))
        sup = replace(sup, n_points=len(pool))
        for method in methods:
            method.check(sup, prior)
            method.check_wrong_yes(sup, prior, self.wrong_yes)
        if prior is not None:
            _check_prior_against(sup, prior, self.prior_check, self.wrong_yes)
        _warn_of_disagreement(sup, prior, self.wrong_yes)
        models = AUTO_MODELS if isinstance(self.model, str) and self.model == "auto" else (self.model,)
        candidates = [(method, model) for method in methods for model in models]
        pool.check()  # after what is quick to check, because it reads a file from end to end
        method, model = candidates[0]
        self.held_out_: str | None = None
        fitted: Fitted | None = None
        if len(candidates) > 1:
            method, model, fitted = self._choose(candidates, pool, sup, prior, seed, progress)
        if fitted is None:
            fitted = self._train(method, model, pool, sup, prior, seed, self.selection, progress, watch)
        self.n_tuples_, self.n_unlabeled_, self.world_ = sup.n_tuples, sup.n_unlabeled, sup.world
        self.n_points_: int | None = len(pool)
        self.n_asked_ = sup.n_asked
        self.from_labels_ = isinstance(sup, Labels) or not isinstance(y, Supervision)
        self._keep(method, model, fitted, sup, prior)
        if fitted.interrupted:
            raise KeyboardInterrupt
        return self

    def _check_settings(self) -> None:
        """Raise for settings that are wrong whatever the data are."""
        check_choice(self.selection, SELECTIONS, "selection")
        check_choice(self.prior_check, PRIOR_CHECKS, "prior_check")
        check_fraction(self.validation_fraction, "validation_fraction")
        if self.patience is not None and self.selection != "label-free":
            raise InputError(
                f"`patience` waits for the held-out risk to improve, which selection='label-free' measures. Got "
                f"patience={self.patience!r} with selection={self.selection!r}. Set the selection, or leave it out."
            )
        check_device(self.device)
        check_real(self.wrong_yes, "wrong_yes", low=0.0, high=1.0)
        if isinstance(self.options, Mapping) and "wrong_yes" in self.options:
            raise InputError("`wrong_yes` is no option of a method. Pass it to the classifier: wrong_yes=...")

    def _points(self, X: Any, *, reset: bool) -> Pool:
        if not is_mapped(X):
            return as_pool(validate_data(self, X, dtype=np.float32, order="C", reset=reset), self.device)
        pool = as_pool(X, self.device)
        # scikit-learn would copy a file whole to look at it; of its shape it may judge, without a number behind it.
        validate_data(self, np.broadcast_to(np.float32(0), pool.shape), skip_check_array=True, reset=reset)
        return pool

    def _points_and_labels(self, X: Any, y: ArrayLike) -> tuple[Pool, NDArray[Any]]:
        if not is_mapped(X):
            X, labels = validate_data(self, X, y, dtype=np.float32, order="C")
            return as_pool(X, self.device), labels
        pool, labels = self._points(X, reset=True), validate_data(self, y=y)
        check_consistent_length(X, labels)
        return pool, labels

    def _draw(self, X: Any, y: ArrayLike, method: Method) -> tuple[Pool, float, Supervision]:
        _refuse_tuples(y)
        pool, y = self._points_and_labels(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            found = "one class" if len(self.classes_) == 1 else f"{len(self.classes_)} classes"
            raise InputError(
                f"Only binary classification is supported. `y` must hold exactly two classes. Got {found}: "
                f"{np.array2string(self.classes_, threshold=6)}."
            )
        labels = np.where(codes == 1, 1, -1)
        prior = float(np.mean(labels > 0)) if self.prior is None else check_prior(self.prior)
        n = len(labels) if self.n_tuples is None else check_count(self.n_tuples, "n_tuples")
        m = len(labels) if self.n_unlabeled is None else check_count(self.n_unlabeled, "n_unlabeled", low=0)
        if issubclass(method.supervision, Labels) and self.prior is None and self.n_tuples is None:
            sup: Supervision = Labels(np.arange(len(labels))[:, None], values=labels, n_points=len(labels))
        else:
            generator = check_seed(self.random_state)
            eta = None
            if needs_posterior(method.supervision):
                eta = fit_posterior(
                    pool,
                    labels,
                    prior=prior,
                    model=AUTO_MODELS[0] if isinstance(self.model, str) and self.model == "auto" else self.model,
                    image_shape=self.image_shape,
                    random_state=generator,
                    device=self.device,
                )
            sup = draw(
                method.supervision,
                labels,
                n,
                n_unlabeled=m if method.uses_unlabeled else 0,
                posterior=eta,
                prior=prior,
                random_state=generator,
                wrong_yes=self.wrong_yes,
            )
        return pool, prior, sup.with_known_labels(dict(enumerate(labels.tolist())))

    def _recipe(self, method: Method, model: ModelSpec, sources: Mapping[str, NDArray[np.int64]]) -> Recipe:
        own = ("epochs", "batch_size", "lr", "weight_decay", "optimizer", "schedule")
        recipe = check_recipe(
            replace(method.recipe, **{n: getattr(self, n) for n in own if getattr(self, n) is not None})
        )
        if isinstance(model, str) and model == "linear":
            # One layer has nothing that amplifies a step: its weights must travel further, undisturbed by decay.
            recipe = replace(
                recipe,
                lr=recipe.lr if self.lr is not None else max(recipe.lr, LINEAR_RATE),
                weight_decay=recipe.weight_decay
                if self.weight_decay is not None
                else min(recipe.weight_decay, LINEAR_DECAY),
            )
        if self.epochs is None:
            wanted = math.ceil(recipe.min_steps / n_steps_per_epoch(sources, recipe.batch_size))
            recipe = replace(recipe, epochs=max(recipe.epochs, wanted))
        return recipe

    def _train(
        self,
        method: Method,
        model: ModelSpec,
        pool: Pool,
        sup: Supervision,
        prior: float | None,
        seed: int,
        selection: str,
        progress: Progress | None,
        watch: Callable[[nn.Module], float] | None = None,
    ) -> Fitted:
        held_out = None
        if selection == "label-free":
            sup, held_out = self._hold_out(sup, prior, seed)
        sources = sup.sources()
        weighing = 0.5 if prior is None else prior  # methods that get here without a prior do not look at it
        recipe = self._recipe(method, model, sources)
        options = _with_wrong_yes(self.options, self.wrong_yes)
        name = f"{method.name}, {model}" if isinstance(model, str) else method.name

        def build(attempt: int) -> nn.Module:
            net = build_model(model, pool.shape[1], self.image_shape)
            net.set_scaling(*self._scaling(pool))
            return net

        def validate(net: nn.Module) -> float:
            assert held_out is not None
            found = score_sources(net, pool, held_out.sources())
            return _weak_risk(found, held_out, prior, "second-moment", self.wrong_yes).value

        def report(number: int, epoch: Epoch) -> None:
            if self.verbose:
                risk = "" if epoch.weak_risk is None else f"  label-free risk {epoch.weak_risk:.4f}"
                print(f"{name}: epoch {number}/{recipe.epochs}  risk {epoch.risk:.4f}{risk}  {epoch.seconds:.1f} s")
            if progress is not None:
                progress(name, number, recipe.epochs, epoch)

        return train(
            build,
            pool,
            sources,
            lambda: method.objective(sup, weighing, loss=self.loss, options=options),
            recipe,
            seed=seed,
            known=sup.known_rows,
            validate=None if held_out is None else validate,
            watch=watch,
            report=report,
            patience=self.patience if selection == "label-free" else None,
        )

    def _scaling(self, pool: Pool) -> tuple[Tensor | float, Tensor | float]:
        kind = check_choice(self.scaling, ("auto", "feature", "global", "none"), "scaling")
        if kind == "auto":
            kind = "feature" if self.image_shape is None else "global"
        if kind == "none":
            return 0.0, 1.0
        return pool.moments(by_feature=kind == "feature")

    def _hold_out(self, sup: Supervision, prior: float | None, seed: int) -> tuple[Supervision, Supervision]:
        """Split off the tuples that judge, and make sure, before any training, that they can.

        Points are divided where few tuples are lost by it, so that no point that judges is trained on; else tuples are.
        """
        part, held_out, self.held_out_ = hold_out(sup, self.validation_fraction, seed)
        if held_out.n_tuples < 2:
            raise InputError(
                f"too few held-out tuples to choose without labels: a share of {self.validation_fraction:g} of "
                f"{sup.n_tuples} tuples is {held_out.n_tuples}, and at least 2 are needed, hundreds to choose well. "
                "Collect more tuples, raise validation_fraction, or name one method and selection='last'."
            )
        scores_of_zero = {name: np.zeros(rows.shape) for name, rows in held_out.sources().items()}
        _weak_risk(scores_of_zero, held_out, prior, "second-moment", self.wrong_yes)
        return part, held_out

    def _choose(
        self,
        candidates: list[tuple[Method, ModelSpec]],
        pool: Pool,
        sup: Supervision,
        prior: float | None,
        seed: int,
        progress: Progress | None,
    ) -> tuple[Method, ModelSpec, Fitted | None]:
        """Return the candidate of least held-out risk; after an interruption the best of those tried, as it is."""
        part, held_out = self._hold_out(sup, prior, seed)
        rows: list[dict[str, Any]] = []
        best: tuple[Method, ModelSpec, Fitted] | None = None
        least = (True, math.inf)
        interrupted = False
        for method, model in candidates:
            try:
                fitted = self._train(method, model, pool, part, prior, seed, "last", progress)
                found = score_sources(fitted.model, pool, held_out.sources())
            except KeyboardInterrupt:  # not while training, which hands over what it has
                if best is None:
                    raise
                interrupted = True
                break
            risk = _weak_risk(found, held_out, prior, "second-moment", self.wrong_yes)
            words = _says_nothing(found, held_out, prior)
            row = {
                "method": method.name,
                "model": str(model),
                "weak_risk": risk.value,
                "standard_error": risk.standard_error,
                "degenerate": words,
            }
            rows.append(row)
            rank = (words is not None, risk.value)
            if best is None or (fitted.epochs and rank < least):
                best, least = (method, model, fitted), rank
            interrupted = fitted.interrupted
            if interrupted:
                break
        assert best is not None
        self.auto_ = rows
        if not interrupted:
            return best[0], best[1], None
        best[2].interrupted = True
        return best

    def _keep(self, method: Method, model: ModelSpec, fitted: Fitted, sup: Supervision, prior: float | None) -> None:
        self.module_ = fitted.model
        self.calibration_ = Calibration()
        self.method_ = method.name
        self.model_ = model
        self.prior_ = None if prior is None else float(prior)
        self.wrong_yes_ = float(self.wrong_yes)
        self.orientation_: Orientation = fitted.orientation
        self.history_ = {key: [asdict(e)[key] for e in fitted.epochs] for key in Epoch.__dataclass_fields__}
        self.n_epochs_ = fitted.chosen_epoch
        self.n_restarts_ = fitted.restarts
        self.interrupted_ = fitted.interrupted
        self.stopped_ = fitted.stopped
        if fitted.stuck and not fitted.interrupted:
            warnings.warn(
                f"method {method.name!r} is still on its plateau after {fitted.restarts} restarts: all scores are "
                "nearly equal, and predictions carry no information. Collect more tuples, train longer (epochs=...), "
                "or raise lr.",
                DegenerateTrainingWarning,
                stacklevel=4,
            )
        elif not fitted.interrupted and (words := _says_nothing(fitted.scores, sup, prior)):
            warnings.warn(f"method {method.name!r}: {words}", DegenerateTrainingWarning, stacklevel=4)

    def decision_function(self, X: Any) -> FloatArray:
        """Scores, ``(n,)``; a score of at least 0 predicts the second class."""
        check_is_fitted(self, "module_")
        return scores(self.module_, self._points(X, reset=False))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted classes; a score of exactly 0 counts as positive."""
        found = self.decision_function(X)  # first: it says so when not fitted
        predicted: NDArray[Any] = self.classes_[(found >= 0).astype(int)]
        return predicted

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of both classes, ``(n, 2)``: ``sigmoid(score / temperature)``; ``calibration_`` says which.

        Without calibration (temperature 1) a probability model for methods whose record says ``probability`` (the joint
        kinds, supervised), often too sure of itself; for the others a monotone map of the score.
        """
        positive = self.probability_of(self.decision_function(X))
        return np.stack([1.0 - positive, positive], axis=1)

    def probability_of(self, scores: FloatArray) -> FloatArray:
        """Probability of the positive class for scores: the one place that says how they belong together.

        >>> clf = WeakClassifier()
        >>> clf.calibration_ = Calibration("labels", temperature=2.0, n=100)
        >>> clf.probability_of(np.array([0.0, 2.0])).round(3)
        array([0.5  , 0.731])
        """
        return probabilities(scores, self.calibration_.temperature)

    def weak_risk(
        self,
        X: Any,
        supervision: Supervision,
        *,
        kind: str = "second-moment",
        prior: float | None = None,
        wrong_yes: float | None = None,
    ) -> WeakRisk:
        """Estimate the error rate without labels, with a standard error.

        Use tuples over points that were not trained on: new tuples of trained points give too low an estimate where the
        network memorised the points. For triplets ``kind`` is ``"second-moment"`` or ``"position-aware"`` (unbiased,
        noisier, undefined at prior 1/2); other kinds of supervision are judged by their unbiased risk. The
        second-moment estimate cannot see swapped class names: read ``orientation_`` too.

        ``prior`` is that of the points of X; None takes the one of the training. A prior that the supervision
        contradicts gives a warning, because the estimate is off then. ``wrong_yes`` is the share of wrong yes answers
        in ``supervision``; None takes the one of the training.
        """
        check_is_fitted(self, "module_")
        prior = judging_prior(self, supervision, prior)
        wrong = self.wrong_yes_ if wrong_yes is None else check_real(wrong_yes, "wrong_yes", low=0.0, high=1.0)
        if prior is not None and self.prior_check != "ignore":
            _check_prior_against(supervision, prior, "judge", wrong, stacklevel=3)
        pool = self._points(X, reset=False)
        supervision.check_pool(len(pool))
        found = score_sources(self.module_, pool, supervision.sources())
        return _weak_risk(found, supervision, prior, kind, wrong)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on plain labels, named as in ``classes_``; on a supervision object, one minus the label-free risk.

        A fold of scikit-learn's cross-validation holds the tuples that lie wholly inside it: with
        ``cv=usimul.splits.PoolKFold(k)`` nearly 1/k of them, with folds of single rows 1/k^3 of the triplets, of which
        the score says little, and a warning says so.
        """
        if isinstance(y, Supervision):
            if sample_weight is not None:
                raise InputError("`sample_weight` does not apply to the label-free score. Leave it out.")
            if y.n_tuples < FEW_TUPLES and not isinstance(y, Labels):
                warnings.warn(
                    f"the label-free score rests on {y.n_tuples} tuples, which say little; {FEW_TUPLES} are the least "
                    "that it should have. A fold of rows keeps only tuples that lie wholly inside it: divide the pool "
                    "by cv=usimul.splits.PoolKFold(k), or judge by fresh tuples.",
                    FewTuplesWarning,
                    stacklevel=2,
                )
            return 1.0 - self.weak_risk(X, y).value
        check_is_fitted(self, "module_")
        return float(super().score(X, check_class_labels(y, self.classes_.tolist()), sample_weight))


class USimULClassifier(WeakClassifier):
    """Binary classifier from uncertain-similarity triplets and unlabeled points.

    The same estimator as `WeakClassifier`, for the methods that learn from triplets: ``"joint"`` (default),
    ``"joint-plain"``, ``"joint-likelihood"``, ``"usimul-exact"``, the printed ``"usimul"``, and ``"auto"``.

    What ``selection="label-free"`` and ``"auto"`` report is measured on what they held out, see ``held_out_``; to
    judge, pass triplets over new points to `weak_risk`.

    Examples
    --------
    >>> USimULClassifier(prior=0.4).method
    'joint'
    """

    def fit(
        self,
        X: Any,
        y: Supervision | ArrayLike,
        *,
        progress: Progress | None = None,
        watch: Callable[[nn.Module], float] | None = None,
    ) -> Self:
        """Train on triplets over the rows of X, or on triplets drawn from plain labels."""
        if self.method != "auto" and not issubclass(get_method(self.method).supervision, Triplets):
            raise InputTypeError(
                f"USimULClassifier takes methods that learn from triplets. Got method {self.method!r}. "
                "Use WeakClassifier for the others."
            )
        return super().fit(X, y, progress=progress, watch=watch)


def judging_prior(estimator: WeakClassifier, supervision: object, prior: float | None = None) -> float | None:
    """Return the prior to judge by: the one given, else the one of the training; only labels can do without."""
    if not isinstance(supervision, Supervision):
        raise InputTypeError(
            f"`supervision` must be a supervision object. Got {type(supervision).__name__}. "
            "Wrap row indices in one, such as usimul.Triplets(rows, n_points=len(X))."
        )
    if prior is not None:
        return check_prior(prior)
    if estimator.prior_ is None and not isinstance(supervision, Labels):
        raise InputError(
            f"this classifier was trained without a prior, and judging it by {type(supervision).__name__} needs one. "
            "Pass prior=... (--prior on the command line), the share of positives among the points that judge it."
        )
    return estimator.prior_


def _refuse_tuples(y: Any) -> None:
    """Say what to do with row indices; scikit-learn would say that labels have one dimension."""
    try:
        shape = np.asarray(y).shape
    except ValueError:  # ragged
        return
    if len(shape) == 2 and shape[1] > 1:
        raise InputError(
            f"`y` must be a supervision object, or one label for each point. Got an array of shape {shape}. "
            "If it holds row indices of tuples, wrap it: usimul.Triplets(rows, unlabeled=..., n_points=len(X)) for "
            "triplets, SimilarPairs and others for pairs."
        )


def _says_nothing(found: Mapping[str, FloatArray], sup: Supervision, prior: float | None) -> str | None:
    """Words if the scores carry no information; only unlabeled points that follow the prior are compared with it."""
    follow = "unlabeled" in found and sup.world != "release"
    scores = found["unlabeled"].ravel() if follow else np.concatenate([v.ravel() for v in found.values()])
    return degenerate(scores, prior if follow else None) if scores.size >= FEW_TUPLES else None


def _weak_risk(
    found: Mapping[str, FloatArray], sup: Supervision, prior: float | None, kind: str, wrong_yes: float
) -> WeakRisk:
    if isinstance(sup, Labels) and sup.values is not None:
        return labeled_risk(found["labeled"], sup.values)
    prior = check_prior(prior)
    if isinstance(sup, Triplets):
        world = sup.world or "definition1"
        return triplet_risk(
            found["triplets"], found.get("unlabeled"), prior, world=world, kind=kind, wrong_yes=wrong_yes
        )
    name, terms = risk_terms(sup, prior, wrong_yes)
    return WeakRisk(*estimate_error(terms, found), f"unbiased, {name}")


def _with_wrong_yes(options: Mapping[str, Any] | None, wrong_yes: float) -> Mapping[str, Any] | None:
    """Return what the objective of a method takes: its options, and the share of wrong answers if there are some."""
    return {**(options or {}), "wrong_yes": wrong_yes} if wrong_yes else options


def _check_prior_against(
    sup: Supervision, prior: float, action: str, wrong_yes: float = 0.0, stacklevel: int = 5
) -> None:
    """Raise or warn when the supervision contradicts the stated prior; confidences can only warn."""
    conflict = None if action == "ignore" else prior_conflict(sup, prior, wrong_yes)
    if conflict is None:
        return
    message = f"`prior`={prior:g} contradicts the supervision: {conflict}"
    if action == "error" and conflict.counted:
        raise InputError(f"{message} Correct the prior, or pass prior_check='warn' if it is known from elsewhere.")
    if action == "judge":
        message += " The estimate of the error is off at a wrong prior; pass the right one (prior=..., or --prior)."
    warnings.warn(message, PriorMismatchWarning, stacklevel=stacklevel)


def _warn_of_disagreement(sup: Supervision, prior: float | None, wrong_yes: float) -> None:
    words = disagreement(sup, prior, wrong_yes)
    if words is not None:
        warnings.warn(words[0].upper() + words[1:], NoisyAnswersWarning, stacklevel=4)
