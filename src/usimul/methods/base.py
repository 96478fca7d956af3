"""What a method is: a record that says what it takes and claims, and an objective that training minimises."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from usimul.losses import Loss, get_loss
from usimul.mixture import signal_kept
from usimul.noise import statement_of
from usimul.risk import Risk, Term, evaluate
from usimul.supervision import ConfidenceDifference, SimilarityConfidence, Supervision
from usimul.validation import InputError, InputTypeError, check_choice, check_prior, check_real

__all__ = [
    "Batch",
    "Method",
    "Objective",
    "Orientation",
    "Paper",
    "Recipe",
    "RiskMethod",
    "RiskObjective",
    "Run",
    "register",
    "register_corrected",
]


@dataclass(frozen=True)
class Paper:
    """Where a method comes from."""

    authors: str
    title: str
    venue: str
    year: int
    link: str = ""

    def __str__(self) -> str:
        end = f" {self.link}" if self.link else ""
        return f"{self.authors} ({self.year}). {self.title}. {self.venue}.{end}"


@dataclass(frozen=True)
class Recipe:
    """Training settings that a method asks for; each can be overridden by the user.

    ``min_steps`` lengthens the training of small data sets: the number of epochs grows until there are that many
    optimiser steps in all. It has no effect when the user sets the number of epochs.
    """

    epochs: int = 20
    batch_size: int = 256
    min_steps: int = 800
    optimizer: str = "adam"
    lr: float = 1e-3
    weight_decay: float = 0.0
    schedule: str = "constant"
    loss: str = "logistic"


@dataclass(frozen=True)
class Batch:
    """One step's data: a single forward pass over the points of all sources.

    Parameters
    ----------
    inputs
        All points of the step, ``(n, n_features)``.
    flat
        Their scores, ``(n,)``, with gradient.
    scores
        The same scores by source, ``(n_tuples, width)``.
    index
        Positions of the step's tuples within their source.
    """

    inputs: Tensor
    flat: Tensor
    scores: Mapping[str, Tensor]
    index: Mapping[str, Tensor]


@dataclass(frozen=True)
class Orientation:
    """Which class is called positive, and how that is known.

    Parameters
    ----------
    status
        ``"risk"``: the risk itself fixes it, as far as it is unbiased (`Method.unbiased_for`). ``"evidence"``: decided
        after training from the share of predicted positives and from the anchors' shift. ``"given"``: from points of
        known label. ``"unknown"``: nothing decides; accuracy is meaningful up to a swap of the names.
    flipped
        Whether the trained scores were negated.
    z
        How many standard errors speak for the chosen side; None where that does not apply.
    """

    status: str
    flipped: bool = False
    z: float | None = None

    STATUSES: ClassVar[tuple[str, ...]] = ("risk", "evidence", "given", "unknown")

    def __str__(self) -> str:
        strength = "" if self.z is None else f" ({self.z:.1f} standard errors)"
        flip = ", scores negated" if self.flipped else ""
        return f"{self.status}{strength}{flip}"

    def explain(self, *, unbiased: bool) -> str:
        """Words for tables and cards; ``unbiased`` says whether the risk of the training is."""
        risk = "fixed by the training risk"
        if not unbiased:
            risk = "taken from the training risk, which is biased here: they MAY BE WRONG; one labeled point would tell"
        strength = "" if self.z is None else f" ({self.z:.1f} standard errors)"
        return {
            "risk": risk,
            "evidence": "decided from the share of predicted positives and the anchors' shift",
            "given": "fixed by points of known label",
            "unknown": "UNKNOWN: the two class names may be swapped; one labeled point would tell",
        }[self.status] + strength


@dataclass(frozen=True)
class Run:
    """What an objective may know and do of the training that it is part of.

    Parameters
    ----------
    model
        The module in training, on its device.
    n_steps
        Optimiser steps in all.
    score
        Computes the scores of all sources with ``output()``; as dear as an epoch's forward passes, so call it rarely.
    negate
        Flips the sign of a module's scores.
    """

    model: nn.Module
    n_steps: int
    score: Callable[[], Mapping[str, NDArray[np.float64]]]
    negate: Callable[[nn.Module], None]


class Objective(ABC):
    """What training minimises for one fit. Holds the state of the fit, if any; the method record holds none.

    ``only_ranks`` says that a constant may be added to all scores without changing the risk. Then, and only then, the
    score that separates the classes is asked of ``threshold``.
    """

    run: Run
    only_ranks: bool = False

    @abstractmethod
    def step(self, batch: Batch) -> Risk:
        """Return the risk of one mini-batch."""

    def begin(self, run: Run) -> None:
        """Prepare for a training; called once, before the first step."""
        self.run = run

    def after_step(self) -> None:  # noqa: B027  most objectives have nothing to do here
        """React to an optimiser step."""

    def end_epoch(self) -> None:  # noqa: B027  as above
        """React to the end of an epoch."""

    def output(self) -> nn.Module:
        """Return the module that predicts: the trained one, or an average of it."""
        return self.run.model

    def orient(self, scores: Mapping[str, NDArray[np.float64]]) -> Orientation:
        """Decide from the scores of all sources which class is called positive."""
        return Orientation("risk")

    def threshold(self, scores: Mapping[str, NDArray[np.float64]]) -> float:
        """Return the score that separates the classes, from the scores of all sources; it becomes the new zero."""
        return 0.0

    def is_stuck(self, scores: Mapping[str, NDArray[np.float64]]) -> bool:
        """Whether the trained scores lie on a plateau from which training should be started again."""
        return False


class Method(ABC):
    """A named way to learn from one kind of supervision.

    Parameters
    ----------
    name
        Registry key.
    summary
        One line for tables.
    supervision
        The kind of supervision it takes.
    formula
        The risk in plain text.
    paper
        Its source.
    unbiased
        Worlds in which its uncorrected risk is unbiased; empty if in none. Kinds without worlds use ``("",)``.
    worlds
        Worlds whose tuples it may learn from. None: those in which it is unbiased, or all if there are none.
    defined_at_half
        Whether it works at prior 1/2.
    needs_prior
        Whether it needs the class prior.
    corrects_wrong_yes
        Whether its risk can be corrected for a known share of wrong yes answers. Then ``objective``, and ``terms`` if
        there are some, take that share as the option ``wrong_yes``, which no user sets by hand.
    needs_unlabeled, uses_unlabeled
        Whether it needs unlabeled points, and whether it learns from them where there are some.
    probability
        Whether ``sigmoid(score)`` models P(y = +1 | x).
    recipe
        Training settings it asks for.
    options
        Names and default values of its own options.
    """

    def __init__(
        self,
        name: str,
        *,
        summary: str,
        supervision: type[Supervision],
        formula: str,
        paper: Paper | None = None,
        unbiased: Sequence[str] = (),
        worlds: Sequence[str] | None = None,
        defined_at_half: bool = True,
        needs_prior: bool = True,
        needs_unlabeled: bool = False,
        uses_unlabeled: bool | None = None,
        probability: bool = False,
        corrects_wrong_yes: bool = False,
        recipe: Recipe | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.summary = summary
        self.supervision = supervision
        self.formula = formula
        self.paper = paper
        self.unbiased = tuple(unbiased)
        self.worlds = tuple(worlds or self.unbiased or supervision.worlds)
        self.defined_at_half = defined_at_half
        self.needs_prior = needs_prior
        self.needs_unlabeled = needs_unlabeled
        self.uses_unlabeled = needs_unlabeled if uses_unlabeled is None else uses_unlabeled
        self.probability = probability
        self.corrects_wrong_yes = corrects_wrong_yes
        self.recipe = recipe or Recipe()
        self.options = dict(options or {})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {self.summary}>"

    @property
    def needs_confidences(self) -> bool:
        """Whether its supervision holds a probability for each tuple, which somebody or some model must give."""
        return self.supervision in (SimilarityConfidence, ConfidenceDifference)

    @property
    def doc(self) -> str:
        """Docstring of the module that defines the method."""
        return (importlib.import_module(self.module).__doc__ or "").strip()

    @property
    def module(self) -> str:
        """Module that registered the method."""
        return _MODULE_OF[self.name]

    def check(self, supervision: object, prior: float | None) -> None:
        """Raise unless the method can learn from ``supervision`` at ``prior``."""
        if not isinstance(supervision, self.supervision):
            came = type(supervision).__name__
            how = (
                f" Draw it from labels with usimul.sampling.{self.supervision.sampler}."
                if self.supervision.sampler
                else ""
            )
            raise InputTypeError(f"method {self.name!r} learns from {self.supervision.__name__}. Got {came}.{how}")
        if supervision.n_tuples == 0:
            raise InputError(f"method {self.name!r} needs at least one tuple. Got {supervision!r}.")
        if self.needs_unlabeled and supervision.n_unlabeled == 0:
            others = _others(supervision, lambda m: not m.needs_unlabeled)
            raise InputError(
                f"method {self.name!r} needs unlabeled points beside the tuples. Got none. "
                f"Pass unlabeled=<row indices> to the supervision{', or use ' + others if others else ''}."
            )
        if supervision.world is not None and supervision.worlds and supervision.world not in self.worlds:
            others = _others(supervision, lambda m: supervision.world in m.worlds)
            raise InputError(
                f"method {self.name!r} learns from {supervision.kind} of world {' or '.join(map(repr, self.worlds))}. "
                f"Got world {supervision.world!r}, whose law it does not know. "
                f"Collect or draw them in its world{', or use ' + others if others else ''}."
            )
        if self.needs_prior:
            check_prior(prior, method=self.name, defined_at_half=self.defined_at_half)
        elif prior is not None:  # it is saved with the classifier, and judges it
            check_prior(prior)

    def check_wrong_yes(self, supervision: Supervision, prior: float | None, wrong_yes: float) -> None:
        """Raise unless the method can allow for a share ``wrong_yes`` of wrong yes answers; 0 is always allowed."""
        if check_real(wrong_yes, "wrong_yes", low=0.0, high=1.0) == 0.0:
            return
        statement = statement_of(supervision)
        if not self.corrects_wrong_yes or statement is None:
            others = _others(supervision, lambda m: m.corrects_wrong_yes) if statement is not None else ""
            advice = f"Use {others}, or leave" if others else "Leave"
            raise InputError(
                f"method {self.name!r} has no correction for wrong yes answers in {supervision.kind}. "
                f"Got wrong_yes={wrong_yes:g}. {advice} wrong_yes out."
            )
        signal_kept(wrong_yes, statement.probability(check_prior(prior)))

    def unbiased_for(self, world: str | None) -> bool:
        """Whether its uncorrected risk is unbiased for tuples of ``world``; None is the first world of its kind."""
        known = self.supervision.worlds
        return ((world or known[0]) if known else "") in self.unbiased

    def resolve_options(self, options: object) -> dict[str, Any]:
        """Return the method's options with defaults filled in; an unknown name is an error."""
        if options is not None and not isinstance(options, Mapping):
            names = ", ".join(self.options) or "none"
            raise InputTypeError(
                f"`options` must be a mapping from names to values, such as {{'name': 1.0}}. Got {options!r}. "
                f"Options of method {self.name!r}: {names}."
            )
        given: dict[str, Any] = dict(options or {})
        for name in given:
            if name == "wrong_yes" and self.corrects_wrong_yes:
                continue
            if not self.options:
                raise InputError(f"method {self.name!r} has no options. Got {name!r}. Leave it out.")
            check_choice(name, self.options, f"options of method {self.name!r}")
        return {**self.options, **given}

    @abstractmethod
    def objective(
        self,
        supervision: Supervision,
        prior: float,
        *,
        loss: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Objective:
        """Return what training minimises."""


class RiskObjective(Objective):
    """A fixed list of Terms."""

    def __init__(self, terms: Sequence[Term], loss: Loss, correction: str) -> None:
        self.terms = list(terms)
        self.loss = loss
        self.correction = correction

    def begin(self, run: Run) -> None:
        """Bring weights by tuple to the model's device and precision."""
        super().begin(run)
        like = next(run.model.parameters())
        self.terms = [replace(t, weight=t.weight.to(like)) if isinstance(t.weight, Tensor) else t for t in self.terms]

    def step(self, batch: Batch) -> Risk:
        """Evaluate the terms on the batch."""
        return evaluate(self.terms, batch.scores, self.loss, self.correction, batch.index)


TermBuilder = Callable[..., Sequence[Term]]


class RiskMethod(Method):
    """Final: a linear risk, that is a function ``terms(supervision, prior, **options)`` and a correction."""

    def __init__(self, name: str, terms: TermBuilder, *, correction: str = "none", **record: Any) -> None:
        super().__init__(name, **record)
        self.terms = terms
        self.correction = correction

    def objective(
        self,
        supervision: Supervision,
        prior: float,
        *,
        loss: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Objective:
        """Return the risk's terms, weights computed once."""
        terms = self.terms(supervision, prior, **self.resolve_options(options))
        return RiskObjective(terms, get_loss(loss or self.recipe.loss), self.correction)


@dataclass
class _Registry:
    methods: dict[str, Method] = field(default_factory=dict)


_REGISTRY = _Registry()


def _others(supervision: Supervision, fits: Callable[[Method], bool], shown: int = 3) -> str:
    """Words for the methods of the same supervision that fit, the default of triplets first; empty if there is none."""
    found = [m.name for m in _REGISTRY.methods.values() if isinstance(supervision, m.supervision) and fits(m)]
    found.sort(key=lambda name: name != "joint")
    return " or ".join(f"method={name!r}" for name in found[:shown])


_MODULE_OF: dict[str, str] = {}


def register(method: Method, *, module: str) -> Method:
    """Add a method to the registry; a name can be taken only once."""
    if method.name in _REGISTRY.methods and _MODULE_OF[method.name] != module:
        raise InputError(f"method {method.name!r} is already registered by {_MODULE_OF[method.name]}.")
    _REGISTRY.methods[method.name] = method
    _MODULE_OF[method.name] = module
    return method


CORRECTION_WORDS = {
    "none": "no correction",
    "abs": "absolute value of each part",
    "relu": "positive part of each part",
}


def register_corrected(
    names: Mapping[str, str], terms: TermBuilder, *, module: str, summary: str, **record: Any
) -> None:
    """Register one linear risk under several corrections, given as ``{name: correction}``."""
    for name, correction in names.items():
        words = f"{summary}, {CORRECTION_WORDS[correction]}"
        register(RiskMethod(name, terms, correction=correction, summary=words, **record), module=module)
