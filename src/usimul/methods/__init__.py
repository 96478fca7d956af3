"""The methods, one paper a module. To add one: write its module, and add its name to `MODULES`."""

from __future__ import annotations

import importlib

from usimul.methods.base import _REGISTRY, Method
from usimul.validation import check_choice

__all__ = ["MODULES", "get_method", "list_methods"]

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
