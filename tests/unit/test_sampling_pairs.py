"""The laws of the samplers for pairs, answers, sets and confidences, against label tables written out here."""

from itertools import product

import numpy as np
import pytest

from usimul.sampling import (
    draw,
    needs_posterior,
    sample_compared_pairs,
    sample_confidence_difference,
    sample_dissimilar_pairs,
    sample_pair_answers,
    sample_similar_pairs,
    sample_similarity_confidence,
    sample_triplet_answers,
    sample_unlabeled_sets,
)
from usimul.supervision import (
    ComparedPairs,
    ConfidenceDifference,
    DissimilarPairs,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    TripletAnswers,
    Triplets,
    UnlabeledSets,
)
from usimul.validation import InputError, InputTypeError

PRIORS = (0.2, 0.4, 0.5, 0.6, 0.85)
# The pool's own share of positives (0.3) is none of the priors, so a sampler that ignores `prior` is caught.
Y = np.repeat([1, -1], [300, 700])
# Three kinds of points, in other proportions within each class.
PLACE = np.concatenate([np.repeat([0, 1, 2], [180, 90, 30]), np.repeat([0, 1, 2], [70, 210, 420])])
N = 20_000

at_priors = pytest.mark.parametrize("prior", PRIORS)


def posterior(prior):
    """P(y = +1 | x) of every point of the pool when labels are drawn with ``prior``."""
    plus, minus = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6])
    return (prior * plus / (prior * plus + (1 - prior) * minus))[PLACE]


def share_within(share, expected, n, deviations=4.0):
    return abs(share - expected) <= deviations * np.sqrt(expected * (1 - expected) / n) + 1e-12


def mean_within(values, expected, deviations=4.0):
    return abs(np.mean(values) - expected) <= deviations * np.std(values) / np.sqrt(np.size(values)) + 1e-12


def independent(p, width):
    return {t: float(np.prod([p if y > 0 else 1 - p for y in t])) for t in product((1, -1), repeat=width)}


def kept(p, rule, width=2):
    law = {t: w if rule(t) else 0.0 for t, w in independent(p, width).items()}
    return {t: w / sum(law.values()) for t, w in law.items()}


EVENT_SAMPLERS = {
    "similar": (sample_similar_pairs, SimilarPairs, lambda y: y[0] == y[1]),
    "dissimilar": (sample_dissimilar_pairs, DissimilarPairs, lambda y: y[0] != y[1]),
    "compared": (sample_compared_pairs, ComparedPairs, lambda y: y != (-1, 1)),
}
ASKING_SAMPLERS = {
    "pair": (sample_pair_answers, PairAnswers, lambda y: y[0] == y[1]),
    "triplet": (sample_triplet_answers, TripletAnswers, lambda y: y not in ((1, -1, 1), (-1, 1, -1))),
}
CONFIDENCE_SAMPLERS = {
    "similarity": (sample_similarity_confidence, SimilarityConfidence),
    "difference": (sample_confidence_difference, ConfidenceDifference),
}


def assert_law(labels, law):
    drawn = [tuple(t) for t in labels.tolist()]
    for t, expected in law.items():
        assert share_within(drawn.count(t) / len(drawn), expected, len(drawn)), (t, expected)


@at_priors
@pytest.mark.parametrize("name", EVENT_SAMPLERS)
def test_pairs_kept_under_an_event(name, prior):
    sampler, kind, rule = EVENT_SAMPLERS[name]
    sup = sampler(Y, N, n_unlabeled=N, prior=prior, random_state=7)
    assert type(sup) is kind
    assert (sup.n_tuples, sup.n_points, sup.n_unlabeled, sup.values) == (N, Y.size, N, None)
    law = kept(prior, rule)
    assert_law(Y[sup.rows], law)
    assert share_within(np.mean(Y[sup.unlabeled] > 0), prior, N)
    accepted = sum(w for t, w in independent(prior, 2).items() if rule(t))
    assert sup.n_accepted == N
    assert share_within(N / sup.n_asked, accepted, sup.n_asked)


@at_priors
def test_closed_forms_of_the_pair_laws(prior):
    """The tables above and the shares in the papers are the same thing."""
    p, q = prior, 1 - prior
    similar = kept(p, EVENT_SAMPLERS["similar"][2])
    assert similar[1, 1] == pytest.approx(p**2 / (p**2 + q**2))
    dissimilar = kept(p, EVENT_SAMPLERS["dissimilar"][2])
    assert dissimilar[1, -1] == dissimilar[-1, 1] == pytest.approx(0.5)
    compared = kept(p, EVENT_SAMPLERS["compared"][2])
    z = 1 - p * q
    assert [compared[t] for t in ((1, 1), (1, -1), (-1, -1))] == pytest.approx([p**2 / z, p * q / z, q**2 / z])


@at_priors
@pytest.mark.parametrize("name", ASKING_SAMPLERS)
def test_answered_tuples(name, prior):
    sampler, kind, rule = ASKING_SAMPLERS[name]
    sup = sampler(Y, N, prior=prior, random_state=7)
    assert type(sup) is kind
    assert (sup.n_tuples, sup.n_points, sup.n_asked) == (N, Y.size, None)
    labels = Y[sup.rows]
    assert_law(labels, independent(prior, kind.width))
    assert sup.values.tolist() == [1.0 if rule(tuple(t)) else -1.0 for t in labels.tolist()]
    p, q = prior, 1 - prior
    yes = p**2 + q**2 if name == "pair" else 1 - p * q
    assert share_within(np.mean(sup.values > 0), yes, N)
    first, second = sup.sources().values()
    if name == "pair":
        assert share_within(np.mean(Y[first] > 0), p**2 / (p**2 + q**2), first.shape[0])  # a pair counts once
        assert np.mean(Y[second] > 0) == 0.5
    else:
        for rows, middle in ((first, p**2 * (1 + q) / (1 - p * q)), (second, q)):
            shares = (Y[rows] > 0).mean(axis=0)
            for share, expected in zip(shares, (p, middle, p), strict=True):
                assert share_within(share, expected, len(rows))


@at_priors
@pytest.mark.parametrize("name", CONFIDENCE_SAMPLERS)
def test_confidences(name, prior):
    sampler, kind = CONFIDENCE_SAMPLERS[name]
    eta = posterior(prior)
    sup = sampler(Y, N, posterior=eta, prior=prior, random_state=7)
    assert type(sup) is kind
    assert (sup.n_tuples, sup.n_points) == (N, Y.size)
    assert_law(Y[sup.rows], independent(prior, 2))
    p, q = prior, 1 - prior
    for (a, b), value in zip(sup.rows[:50].tolist(), sup.values[:50].tolist(), strict=True):
        expected = eta[a] * eta[b] + (1 - eta[a]) * (1 - eta[b]) if name == "similarity" else eta[b] - eta[a]
        assert value == pytest.approx(expected, abs=1e-12)
    # What the risks rest on: E[s | x] = q + D eta(x), and E[c | x] = p - eta(x), E[c | x'] = eta(x') - p.
    for place in range(3):
        at = eta[place == PLACE][0]
        for position, sign in ((0, -1.0), (1, 1.0)):
            here = sup.values[PLACE[sup.rows[:, position]] == place]
            assert mean_within(here, q + (p - q) * at if name == "similarity" else sign * (at - p))


def test_difference_is_second_minus_first():
    sup = sample_confidence_difference([1, 1, -1, -1], 50, posterior=[0.9, 0.9, 0.2, 0.2], random_state=0)
    up = sup.rows[:, 1] < 2
    down = sup.rows[:, 0] < 2
    assert sup.values[up & ~down] == pytest.approx(0.7)
    assert sup.values[down & ~up] == pytest.approx(-0.7)
    assert sup.values[up == down] == pytest.approx(0.0)


class TestUnlabeledSets:
    @pytest.mark.parametrize("shares", [(0.9, 0.1), (0.8, 0.6), (0.1, 0.9), (1.0, 0.0), (1.0, 0.3)])
    def test_law(self, shares):
        sup = sample_unlabeled_sets(Y, N, shares=shares, prior=0.4, random_state=7)
        assert type(sup) is UnlabeledSets
        assert sup.shares == (max(shares), min(shares))
        first, second = sup.sources()["first"], sup.sources()["second"]
        assert len(first) == len(second) == N // 2
        for rows, share in ((first, max(shares)), (second, min(shares))):
            assert share_within(np.mean(Y[rows] > 0), share, len(rows))

    def test_prior_plays_no_part(self):
        first, other = (sample_unlabeled_sets(Y, 100, prior=p, random_state=1) for p in (0.2, 0.8))
        assert first == other

    def test_the_odd_point_goes_somewhere(self):
        sup = sample_unlabeled_sets(Y, 7, random_state=0)
        assert sorted(len(rows) for rows in sup.sources().values()) == [3, 4]

    def test_equal_shares(self):
        with pytest.raises(InputError, match=r"`shares` of the two sets must differ.* Got \(0.4, 0.4\)"):
            sample_unlabeled_sets(Y, 10, shares=(0.4, 0.4))

    @pytest.mark.parametrize(
        ("shares", "message"),
        [
            ((1.2, 0.1), r"`shares` must lie in \[0, 1\]. Got 1.2"),
            ((0.9, float("nan")), "`shares` must"),
            ((0.9, "0.1"), "`shares` must be a number"),
            ((0.9,), r"`shares` must be two numbers.* Got \(0.9,\)"),
            ((0.9, 0.5, 0.1), "`shares` must be two numbers"),
            (0.9, r"`shares` must be two numbers.* Got 0.9"),
        ],
    )
    def test_bad_shares(self, shares, message):
        with pytest.raises((InputError, InputTypeError), match=message):
            sample_unlabeled_sets(Y, 10, shares=shares)

    def test_one_point_cannot_be_two_sets(self):
        with pytest.raises(InputError, match=r"`n` must be at least 2\. Got 1"):
            sample_unlabeled_sets(Y, 1)


KINDS = (
    SimilarPairs,
    DissimilarPairs,
    ComparedPairs,
    PairAnswers,
    TripletAnswers,
    SimilarityConfidence,
    ConfidenceDifference,
    UnlabeledSets,
)
SAMPLERS = {
    kind: globals()[kind.sampler]  # by the name that error messages advise
    for kind in KINDS
}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)


def sample(kind, y, n, **options):
    extra = {"posterior": np.linspace(0.05, 0.95, len(y))} if needs_posterior(kind) else {}
    return SAMPLERS[kind](y, n, **extra, **options)


@each_kind
class TestEverySampler:
    def test_same_seed_same_draw(self, kind):
        first, again, other = (sample(kind, Y, 60, prior=0.4, random_state=seed) for seed in (3, 3, 4))
        assert first == again
        assert first != other

    def test_generator_moves_on(self, kind):
        rng = np.random.default_rng(0)
        first, second = (sample(kind, Y, 60, prior=0.4, random_state=rng) for _ in range(2))
        assert first != second

    def test_legacy_generator(self, kind):
        first, again = (sample(kind, Y, 60, prior=0.4, random_state=np.random.RandomState(5)) for _ in range(2))
        assert first == again

    def test_rows_of_a_tuple_differ_in_a_tiny_pool(self, kind):
        sup = sample(kind, np.repeat([1, -1], [3, 3]), 2000, prior=0.4, random_state=0)
        assert all(len(set(t)) == kind.width for t in sup.rows.tolist())

    def test_points_are_uniform_within_their_class(self, kind):
        y = np.repeat([1, -1], [5, 8])
        sup = sample(kind, y, N, prior=0.4, random_state=3)
        for position, label in product(range(kind.width), (1, -1)):
            rows = sup.rows[:, position]
            rows = rows[y[rows] == label]
            members = np.flatnonzero(y == label)
            assert all(share_within(np.mean(rows == m), 1 / members.size, rows.size) for m in members)

    def test_without_replacement_each_point_once(self, kind):
        options = {"n_unlabeled": 100} if kind in (SimilarPairs, DissimilarPairs, ComparedPairs) else {}
        sup = sample(kind, Y, 120, prior=0.4, replace=False, random_state=5, **options)
        used = np.concatenate([rows.ravel() for rows in sup.sources().values()])
        assert used.size == 120 * kind.width + options.get("n_unlabeled", 0)
        assert np.unique(used).size == used.size

    def test_without_replacement_keeps_the_values_with_their_rows(self, kind):
        plain = sample(kind, Y, 120, prior=0.4, replace=False, random_state=5)
        if needs_posterior(kind):
            eta = np.linspace(0.05, 0.95, len(Y))
            a, b = eta[plain.rows].T
            expected = a * b + (1 - a) * (1 - b) if kind is SimilarityConfidence else b - a
            assert plain.values == pytest.approx(expected, abs=1e-12)
        elif kind is PairAnswers:
            a, b = Y[plain.rows].T
            assert plain.values.tolist() == np.where(a == b, 1.0, -1.0).tolist()

    def test_exhausted_class(self, kind):
        with pytest.raises(InputError, match=r"points of class \+1, but the pool has 5. Pass replace=True"):
            sample(kind, np.repeat([1, -1], [5, 500]), 60, prior=0.5, replace=False, random_state=0)

    def test_draw_is_the_sampler(self, kind):
        eta = np.linspace(0.05, 0.95, len(Y)) if needs_posterior(kind) else None
        options = {"n_unlabeled": 20} if kind in (SimilarPairs, DissimilarPairs, ComparedPairs) else {}
        drawn = draw(kind, Y, 40, n_unlabeled=20, posterior=eta, prior=0.4, random_state=2)
        assert drawn == sample(kind, Y, 40, prior=0.4, random_state=2, **options)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"n": 0}, "`n` must be at least [12]. Got 0"),
            ({"n": 10.5}, "`n` must be an integer. Got 10.5"),
            ({"prior": 0.0}, r"`prior` must lie in \(0, 1\). Got 0.0"),
            ({"prior": float("nan")}, "`prior`"),
            ({"y": np.array([0, 1, 1, 0])}, r"`y` must hold both labels \+1 and -1"),
            ({"y": np.ones(4)}, r"`y` must hold both labels"),
            ({"random_state": "x"}, "`random_state` must be an integer"),
        ],
    )
    def test_bad_arguments(self, kind, change, message):
        options = {"y": Y, "n": 10, "random_state": 0, **change}
        with pytest.raises((InputError, InputTypeError), match=message):
            sample(kind, options.pop("y"), options.pop("n"), **options)


def test_all_drawable_kinds_are_tested():
    others = {"Triplets", "Labels", "Unlabeled"}  # in test_sampling
    drawable = {kind.__name__ for kind in Triplets.kinds().values() if kind.sampler}
    assert drawable == {kind.__name__ for kind in KINDS} | others


@pytest.mark.parametrize("sampler", [sample_similarity_confidence, sample_confidence_difference])
@pytest.mark.parametrize(
    ("eta", "message"),
    [
        (np.full(999, 0.3), r"hold one probability for each of 1000 points. Got shape \(999,\)"),
        (np.full((1000, 2), 0.5), r"Got shape \(1000, 2\)"),
        (0.3, r"Got shape \(\)"),
        (np.where(np.arange(1000) == 17, np.nan, 0.3), r"lie in \[0, 1\] and be finite. Got nan at position 17"),
        (np.where(np.arange(1000) == 4, 1.01, 0.3), r"Got 1.01 at position 4 \(1 such\)"),
        (np.where(np.arange(1000) < 3, -0.1, 0.3), r"Got -0.1 at position 0 \(3 such\)"),
        (np.where(np.arange(1000) == 9, np.inf, 0.3), "Got inf at position 9"),
    ],
)
def test_bad_posteriors(sampler, eta, message):
    with pytest.raises(InputError, match=f"`posterior` must .*{message}"):
        sampler(Y, 10, posterior=eta, random_state=0)


@pytest.mark.parametrize("kind", [SimilarityConfidence, ConfidenceDifference])
def test_posteriors_of_zero_and_one_are_allowed(kind):
    sup = draw(kind, Y, 500, posterior=(Y > 0).astype(float), random_state=0)
    assert set(sup.values.tolist()) == ({0.0, 1.0} if kind is SimilarityConfidence else {-1.0, 0.0, 1.0})


# --- events that hardly ever happen ---------------------------------------------------------------------------------


def test_events_too_rare_to_draw_are_refused_at_once():
    with pytest.raises(InputError, match=r"at prior 1e-09 a dissimilar-pair is observed once in 500,000,000 draws"):
        sample_dissimilar_pairs(Y, 20, prior=1e-9, random_state=0)


def test_rare_events_are_drawn_in_pieces(monkeypatch):
    """The pieces change nothing but the memory: one generator's numbers come in one order."""
    whole = sample_dissimilar_pairs(Y, 300, prior=0.01, random_state=0)
    monkeypatch.setattr("usimul.sampling.pool.DRAWN_AT_ONCE", 1000)
    drawn = sample_dissimilar_pairs(Y, 300, prior=0.01, random_state=0)
    assert (drawn.n_tuples, drawn.n_asked) == (300, whole.n_asked)
    assert share_within(300 / drawn.n_asked, 2 * 0.01 * 0.99, drawn.n_asked)
    first, second = Y[drawn.rows].T
    assert np.all(first != second)
