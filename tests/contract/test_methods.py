r"""Every registered method against the public contract checks, and the checks against methods that break the contract.

The methods of this module play the third party. Their documentation, which the checks read, is this:

.. math:: R = c\,E_S[\ell_+ - \ell_-] + E_U[(-q \ell_+ + p \ell_-)/D], \qquad c = (p^2 + q^2)/D, \quad D = p - q.

>>> from usimul.supervision import SimilarPairs
>>> [round(term.weight, 3) for term in toy_terms(SimilarPairs([[0, 1]], unlabeled=[2]), 0.7)]
[1.45, -0.75, -1.45, 1.75]

Differs from the paper: the parts are corrected.
"""

from dataclasses import replace
from itertools import product

import pytest
import torch

import usimul as us
from usimul.methods import base
from usimul.methods.base import Paper, RiskMethod, RiskObjective
from usimul.risk import Risk, Term
from usimul.supervision import SimilarPairs, Triplets
from usimul.testing import (
    CHECKS,
    LAWS,
    PRIORS,
    DiscreteWorld,
    bias,
    check_gradients,
    check_mass,
    check_method,
    check_unbiased,
    enumerate_world,
    worlds_of,
)
from usimul.validation import InputError

METHODS = us.list_methods()
CLAIMS = [(method, world) for method in METHODS for world in method.unbiased]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- the registry -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_contract(method, check):
    check(method)


@pytest.mark.parametrize(("method", "world"), CLAIMS, ids=lambda v: getattr(v, "name", v or "-"))
def test_unbiased_on_many_urns(method, world):
    for seed, prior in product((1, 2), PRIORS):
        if prior != 0.5 or method.defined_at_half:
            assert bias(method, DiscreteWorld.random(prior, random_state=seed), world, random_state=seed) < 1e-10


def test_names_are_told_apart_and_summaries_too():
    assert len({m.name for m in METHODS}) == len({m.summary for m in METHODS}) == len(METHODS)


# --- the worlds, against shares that need no enumeration ------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
def test_urn_is_what_it_says(prior):
    urn = DiscreteWorld.random(prior, random_state=3)
    positive, negative = urn.class_laws
    assert urn.prior == pytest.approx(prior, abs=1e-15)
    assert positive.sum() == pytest.approx(1)
    assert urn.law == pytest.approx(prior * positive + (1 - prior) * negative, abs=1e-15)
    assert urn.eta * urn.law == pytest.approx(prior * positive, abs=1e-15)


def test_every_law_gives_tuples_of_distinct_rows_and_the_labels_behind_them():
    urn = DiscreteWorld.random(0.4)
    for (kind, world), law in LAWS.items():
        found = law(urn)
        assert type(found.supervision) is kind
        assert found.labels.shape == found.supervision.rows.shape == found.points.shape
        assert worlds_of_kind(kind) >= {world}


def worlds_of_kind(kind):
    return {world for other, world in LAWS if other is kind}


def test_unknown_law_is_a_clear_error():
    with pytest.raises(InputError, match="no law for Triplets in world 'release'"):
        enumerate_world(DiscreteWorld.random(0.4), Triplets, "release")
    stranger = RiskMethod("stranger", toy_terms, summary="s", supervision=us.Unlabeled, formula="f")
    with pytest.raises(InputError, match="no law for Unlabeled"):
        worlds_of(stranger)
    with pytest.raises(InputError, match="multiple of 1/20"):
        DiscreteWorld.random(0.33)


# --- a method of somebody else's ------------------------------------------------------------------------------------


def toy_terms(supervision, prior, scale=1.0):
    p, q = prior, 1 - prior
    c = scale * (p * p + q * q) / (p - q) if p != 0.5 else 1.0
    d = p - q if p != 0.5 else 1.0
    return [
        Term("similar", (0, 1), +1, c, "positive"),
        Term("unlabeled", (0,), +1, -q / d, "positive"),
        Term("similar", (0, 1), -1, -c, "negative"),
        Term("unlabeled", (0,), -1, p / d, "negative"),
    ]


@pytest.fixture
def register_toy(monkeypatch):
    """Register through the public function; afterwards the registry is as it was."""
    monkeypatch.setattr(base._REGISTRY, "methods", dict(base._REGISTRY.methods))
    monkeypatch.setattr(base, "_MODULE_OF", dict(base._MODULE_OF))

    def make(terms=toy_terms, *, kind=RiskMethod, **changes):
        record = {
            "summary": "toy",
            "supervision": SimilarPairs,
            "formula": "c E_S[l+ - l-] + E_U[(-q l+ + p l-)/D]",
            "unbiased": ("",),
            "defined_at_half": False,
            "needs_unlabeled": True,
            "paper": Paper("A. Nother", "Toys", "Nowhere", 2026),
            "correction": "abs",
        }
        return base.register(kind("toy", terms, **{**record, **changes}), module=__name__)

    return make


def test_third_party_method_passes(register_toy):
    method = register_toy()
    assert us.get_method("toy") is method
    check_method(method)


def test_registry_is_clean_again():
    assert "toy" not in {m.name for m in us.list_methods()}


def shifted(supervision, prior):
    """Right in total, wrong in its parts: a bit of the loss has been moved over."""
    terms = toy_terms(supervision, prior)
    return [replace(t, part="negative" if t.source == "unlabeled" else "positive") for t in terms]


def forgets_a_point(supervision, prior):
    return [
        replace(t, columns=(0,)) if t.source == "similar" and t.label > 0 else t for t in toy_terms(supervision, prior)
    ]


def prefers_positives(supervision, prior):
    return [replace(t, weight=t.weight * (1.1 if t.label > 0 else 1.0)) for t in toy_terms(supervision, prior)]


class Changed(RiskMethod):
    """Its objectives pass every risk through ``change``."""

    change = staticmethod(lambda risk: risk)

    def objective(self, supervision, prior, *, loss=None, options=None):
        change = self.change

        class Objective(RiskObjective):
            def step(self, batch):
                return change(super().step(batch))

        inner = super().objective(supervision, prior, loss=loss, options=options)
        return Objective(inner.terms, inner.loss, inner.correction)


class Detached(Changed):
    change = staticmethod(lambda risk: Risk(risk.total + 0.5 * (risk.total.detach() - risk.total), risk.parts))


class Lowered(Changed):
    change = staticmethod(lambda risk: Risk(-risk.total, risk.parts))


class Widened(Changed):
    change = staticmethod(lambda risk: Risk(risk.total.double(), risk.parts))


class Stateful(Changed):
    def objective(self, supervision, prior, *, loss=None, options=None):
        self.calls = getattr(self, "calls", 0) + 1
        return super().objective(supervision, prior, loss=loss, options=options)


class Forgetful(Changed):
    """Trains another risk than it shows."""

    def objective(self, supervision, prior, *, loss=None, options=None):
        inner = super().objective(supervision, prior, loss=loss, options=options)
        inner.terms = [replace(t, weight=0.9 * t.weight) for t in inner.terms]
        return inner


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"terms": lambda s, p: toy_terms(s, p, scale=2.0)}, "off by"),
        ({"terms": shifted}, "off by"),
        ({"terms": prefers_positives}, "off by"),
        ({"terms": forgets_a_point}, "another order inside the tuples"),
        ({"kind": Widened}, "float32"),
        ({"unbiased": ()}, "its record does not say so"),
        ({"unbiased": ("definition1",)}, "worlds that its kind does not have"),
        ({"defined_at_half": True}, "prior 0.5"),
        ({"needs_unlabeled": False}, "does not say that it needs them"),
        ({"summary": "x" * 81}, "80 characters"),
        ({"formula": " "}, "formula is empty"),
        ({"recipe": base.Recipe(loss="huber")}, "unknown loss"),
        ({"kind": Detached}, "finite differences"),
        ({"kind": Lowered}, "lowers the risk"),
        ({"kind": Stateful}, "changed its record"),
        ({"kind": Forgetful}, "another risk than its terms"),
    ],
    ids=lambda v: "".join(v) if isinstance(v, dict) else str(v).replace(" ", "-"),
)
def test_a_broken_method_is_caught(register_toy, change, match):
    method = register_toy(**change)
    with pytest.raises(AssertionError, match=match):
        check_method(method)


def test_a_wrong_weight_fails_the_mass_test_when_masses_do_not_cancel(register_toy):
    method = register_toy(prefers_positives)
    with pytest.raises(AssertionError, match="constant losses"):
        check_mass(method)


def test_a_claim_without_terms_is_refused(register_toy):
    class Opaque(RiskMethod):
        def __init__(self, name, terms, **record):
            super().__init__(name, terms, **record)
            self._terms = self.__dict__.pop("terms")

    with pytest.raises(AssertionError, match="so it must show it"):
        check_unbiased(register_toy(kind=Opaque))


def test_gradients_of_one_loss_only(register_toy):
    check_gradients(register_toy(), "square", {})
