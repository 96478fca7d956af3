"""Events against enumeration over every tuple of points, in plain loops."""

from itertools import product

import numpy as np
import pytest

from usimul.events import EVENTS, Event, companions, event_from_rule, noisy
from usimul.validation import InputError, InputTypeError

# The rules, worded here a second time and independently of the library: probability of being observed.
RULES = {
    "triplet": lambda y: y[0] == y[1] or y[0] == y[2],
    "shuffled-pair": lambda y: 1.0 if y[0] == y[1] == y[2] else 0.0 if y[1] == y[2] else 0.5,
    "similar-pair": lambda y: y[0] == y[1],
    "dissimilar-pair": lambda y: y[0] != y[1],
    "compared-pair": lambda y: not (y[0] == 0 and y[1] == 1),
    **{f"one-of-{k}-companions": lambda y: any(y[0] == other for other in y[1:]) for k in (1, 2, 3, 4)},
}
CASES = [*EVENTS.values(), *(companions(k) for k in (1, 2, 3, 4))]
PRIORS = (0.1, 0.4, 0.5, 0.85)
H = np.array([0.05, 0.3, 0.55, 0.9])
TOLERANCE = 1e-12

by_name = pytest.mark.parametrize("event", CASES, ids=lambda e: e.name)


def joint(event, positive):
    """Probability of every label tuple, admissible or not, for members that are positive with ``positive[i]``."""
    found = {}
    for labels in product((0, 1), repeat=event.size):
        weight = 1.0
        for label, p in zip(labels, positive, strict=True):
            weight *= p if label else 1 - p
        found[labels] = weight * RULES[event.name](labels)
    return found


def test_every_event_has_a_rule_here():
    assert set(EVENTS) <= set(RULES)


@by_name
@pytest.mark.parametrize("prior", PRIORS)
def test_probability_posterior_and_marginals(event, prior):
    law = joint(event, [prior] * event.size)
    total = sum(law.values())
    assert abs(event.probability(prior) - total) < TOLERANCE
    assert {labels for labels, weight in law.items() if weight > 0} == set(event.admissible)
    for labels, share in zip(event.admissible, event.posterior(prior), strict=True):
        assert abs(share - law[labels] / total) < TOLERANCE
    for i, share in enumerate(event.marginals(prior)):
        assert abs(share - sum(w for labels, w in law.items() if labels[i]) / total) < TOLERANCE


@by_name
def test_given_and_member_posterior(event):
    rng = np.random.default_rng(0)
    positive = rng.uniform(0.02, 0.98, size=(5, event.size))
    given, posterior = event.given(positive), event.member_posterior(positive)
    assert given.shape == (5,)
    assert posterior.shape == (5, event.size)
    for n in range(5):
        law = joint(event, positive[n])
        total = sum(law.values())
        assert abs(given[n] - total) < TOLERANCE
        for i in range(event.size):
            assert abs(posterior[n, i] - sum(w for y, w in law.items() if y[i]) / total) < TOLERANCE


@by_name
def test_moments_over_all_tuples_of_points(event):
    values = [sum(joint(event, chosen).values()) for chosen in product(H, repeat=event.size)]
    mean, second = event.moments(H)
    assert abs(mean - sum(values) / len(values)) < TOLERANCE
    assert abs(second - sum(v * v for v in values) / len(values)) < TOLERANCE


@by_name
def test_pair_counts(event):
    found = {}
    for first, second in product(product((0, 1), repeat=event.size), repeat=2):
        weight = RULES[event.name](first) * RULES[event.name](second)
        if weight:
            key = (
                sum(a == b == 1 for a, b in zip(first, second, strict=True)),
                sum(a == b == 0 for a, b in zip(first, second, strict=True)),
                sum(a != b for a, b in zip(first, second, strict=True)),
            )
            found[key] = found.get(key, 0) + weight
    assert event.pair_counts() == found


class TestTripletClosedForms:
    """Section 2 of the specification of the joint estimators: b = 1 - g."""

    def test_moments(self):
        m, m2, n2, c = H.mean(), (H**2).mean(), ((1 - H) ** 2).mean(), (H * (1 - H)).mean()
        b = m * (1 - m) ** 2 + (1 - m) * m**2
        b2 = m2 * n2**2 + n2 * m2**2 + 2 * c**3
        mean, second = EVENTS["triplet"].moments(H)
        assert abs(mean - (1 - b)) < TOLERANCE
        assert abs(second - (1 - 2 * b + b2)) < TOLERANCE

    def test_moments_in_v(self):
        v = 2 * H - 1
        vb, s = v.mean(), (v**2).mean()
        _, second = EVENTS["triplet"].moments(H)
        assert abs(second - (9 + 6 * vb**2 + 3 * s**2 - 2 * s * vb**2) / 16) < TOLERANCE

    def test_density(self):
        h = np.random.default_rng(1).random((20, 3))
        u, u1, u2 = (2 * h - 1).T
        np.testing.assert_allclose(
            EVENTS["triplet"].given(h), (3 + u * u1 + u * u2 - u1 * u2) / 4, rtol=0, atol=TOLERANCE
        )

    @pytest.mark.parametrize("p", PRIORS)
    def test_shares(self, p):
        q = 1 - p
        z = 1 - p * q
        triplet = EVENTS["triplet"]
        assert abs(triplet.probability(p) - z) < TOLERANCE
        np.testing.assert_allclose(triplet.marginals(p), [p**2 * (1 + q) / z, p, p], rtol=0, atol=TOLERANCE)
        weights = dict(zip(triplet.admissible, triplet.posterior(p) * z, strict=True))
        expected = {
            (1, 1, 1): p**3,
            (1, 1, 0): p**2 * q,
            (1, 0, 1): p**2 * q,
            (0, 0, 0): q**3,
            (0, 0, 1): p * q**2,
            (0, 1, 0): p * q**2,
        }
        assert weights == pytest.approx(expected, abs=TOLERANCE)

    def test_swapping_all_labels_changes_nothing(self):
        h = np.random.default_rng(2).random((10, 3))
        np.testing.assert_allclose(EVENTS["triplet"].given(h), EVENTS["triplet"].given(1 - h), atol=TOLERANCE)


def test_shuffled_pair():
    """Audit, section 3: density (2 + u u' + u u'')/(4 pS) and shares of the pair-plus-unlabeled process."""
    p = 0.3
    ps, event = p**2 + (1 - p) ** 2, EVENTS["shuffled-pair"]
    assert abs(event.probability(p) - ps) < TOLERANCE
    companion = (p**2 / ps + p) / 2
    np.testing.assert_allclose(event.marginals(p), [p**2 / ps, companion, companion], rtol=0, atol=TOLERANCE)
    h = np.random.default_rng(3).random((20, 3))
    u, u1, u2 = (2 * h - 1).T
    np.testing.assert_allclose(event.given(h), (2 + u * u1 + u * u2) / 4, rtol=0, atol=TOLERANCE)


def test_noisy_event():
    noisy = Event("noisy", ((1, 1), (0, 0), (1, 0)), (0.9, 0.9, 0.1))
    assert abs(noisy.probability(0.4) - (0.9 * 0.16 + 0.9 * 0.36 + 0.1 * 0.24)) < TOLERANCE
    np.testing.assert_allclose(noisy.given([0.2, 0.7]), 0.9 * 0.14 + 0.9 * 0.24 + 0.1 * 0.06, rtol=0, atol=TOLERANCE)


@by_name
@pytest.mark.parametrize("prior", PRIORS)
def test_noisy_answers_are_a_mixture_of_right_and_wrong_ones(event, prior):
    """(1 - r) P(y | Y) + r P(y | not Y), label tuple by label tuple, and all that follows from it."""
    right = joint(event, [prior] * event.size)
    holds = sum(right.values())
    r = 0.3 * (1 - holds)
    law = {}
    for labels, weight in right.items():
        everything = prior ** sum(labels) * (1 - prior) ** (event.size - sum(labels))
        law[labels] = (1 - r) * weight / holds + r * (everything - weight) / (1 - holds)
    heard = noisy(event, r, prior)
    assert sum(law.values()) == pytest.approx(1.0, abs=TOLERANCE)
    for labels, share in zip(heard.admissible, heard.posterior(prior), strict=True):
        assert abs(share - law[labels]) < TOLERANCE
    for i, share in enumerate(heard.marginals(prior)):
        assert abs(share - sum(w for labels, w in law.items() if labels[i])) < TOLERANCE
    # Where the statement surely holds the answer is yes; so all tuples give Z/(1 - r).
    assert heard.accepted.max() == pytest.approx(1.0, abs=TOLERANCE)
    assert abs(heard.probability(prior) - holds / (1 - r)) < TOLERANCE
    # Given outputs, a yes has the probability rho + (1 - rho) g, so its moments follow from those of g.
    rho = r * holds / ((1 - r) * (1 - holds))
    h = np.random.default_rng(4).uniform(0.02, 0.98, size=(6, event.size))
    np.testing.assert_allclose(heard.given(h), rho + (1 - rho) * event.given(h), rtol=0, atol=TOLERANCE)
    (mean, second), (first, square) = event.moments(H), heard.moments(H)
    assert abs(first - (rho + (1 - rho) * mean)) < TOLERANCE
    assert abs(square - (rho**2 + 2 * rho * (1 - rho) * mean + (1 - rho) ** 2 * second)) < TOLERANCE
    assert noisy(event, 0.0, prior) is event


def test_compared_pair_shares():
    p, q = 0.3, 0.7
    z = 1 - p * q
    np.testing.assert_allclose(EVENTS["compared-pair"].marginals(p), [p / z, p**2 / z], rtol=0, atol=TOLERANCE)


def test_names_of_companions():
    assert companions(2).admissible == EVENTS["triplet"].admissible
    assert companions(1).admissible == EVENTS["similar-pair"].admissible
    assert companions(4).size == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Event("none", ()), "event 'none' admits no label tuple"),
        (lambda: event_from_rule("never", 2, lambda y: False), "event 'never' admits no label tuple"),
        (lambda: Event("ragged", ((0, 1), (1,))), "must list tuples of 0 and 1 of one length"),
        (lambda: Event("signs", ((-1, 1),)), "must list tuples of 0 and 1 of one length"),
        (lambda: Event("twice", ((0, 1), (0, 1))), "lists a label tuple twice"),
        (lambda: Event("odds", ((0, 1), (1, 0)), (0.5,)), r"must hold 2 probabilities in \(0, 1\]. Got \(0.5,\)"),
        (lambda: Event("odds", ((0, 1),), (0.0,)), r"must hold 1 probabilities in \(0, 1\]"),
        (lambda: companions(0), "`k` must be at least 1"),
        (lambda: companions(2.0), "`k` must be an integer"),
        (lambda: EVENTS["triplet"].given([0.1, 0.2]), r"needs 3 probabilities a tuple. Got shape \(2,\)"),
        (lambda: EVENTS["similar-pair"].member_posterior([[1.0, 0.0]]), "is impossible under the given probabilities"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        call()
