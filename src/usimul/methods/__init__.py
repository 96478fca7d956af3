"""The methods, one paper a module. To add one: write its module, and add its name to `MODULES`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from usimul.methods.base import _REGISTRY, Method
from usimul.risk import Term
from usimul.supervision import Supervision
from usimul.validation import InputTypeError, check_choice

__all__ = ["MODULES", "get_method", "list_methods", "risk_terms"]

MODULES = (
    "usimul",
    "usimul_exact",
    "joint",
    "su",
    "sd",
    "uu",
    "sconf",
    "pcomp",
    "pcomp_teacher",
    "pcauc",
    "pcu",
    "confdiff",
    "triplet_comparison",
    "supervised",
)


def list_methods() -> list[Method]:
    """Return every registered method, in the order of `MODULES`.

    >>> [m.name for m in list_methods()][:3]
    ['usimul', 'usimul-abs', 'usimul-relu']
    """
    for module in MODULES:
        importlib.import_module(f"usimul.methods.{module}")
    home = [f"usimul.methods.{module}" for module in MODULES]
    # Python may have imported the modules in another order; methods of other packages come last.
    return sorted(_REGISTRY.methods.values(), key=lambda m: home.index(m.module) if m.module in home else len(home))


def get_method(name: str) -> Method:
    """Return a method by name.

    >>> get_method("usimul-ab")
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `method` must be one of: ... Got 'usimul-ab'. Did you mean 'usimul-abs' or ...?
    """
    methods = {method.name: method for method in list_methods()}
    return methods[check_choice(name, methods, "method")]


def risk_terms(supervision: Supervision, prior: float, wrong_yes: float = 0.0) -> tuple[str, Sequence[Term]]:
    """Return an unbiased linear risk for a kind of supervision, and the name of the method that it belongs to.

    It judges, without labels, a classifier trained by any method. ``wrong_yes`` is the share of wrong yes answers.

    >>> from usimul.supervision import ComparedPairs
    >>> risk_terms(ComparedPairs([[0, 1]]), 0.4)[0]
    'pcomp-unbiased'
    """
    for method in list_methods():
        terms = getattr(method, "terms", None)
        fits = method.supervision is type(supervision) and (supervision.n_unlabeled or not method.needs_unlabeled)
        if fits and method.unbiased and terms is not None:
            method.check(supervision, prior)
            method.check_wrong_yes(supervision, prior, wrong_yes)
            return method.name, terms(supervision, prior, **({"wrong_yes": wrong_yes} if wrong_yes else {}))
    raise InputTypeError(
        f"no unbiased risk is known for this {type(supervision).__name__}, so nothing can judge without labels."
    )
