"""The laws of the samplers, against formulas written out here (theory-audit, sections 1, 3, 4)."""

import json
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from usimul.events import EVENTS
from usimul.sampling import draw, sample_labels, sample_triplets, sample_unlabeled
from usimul.sampling.pool import Pool
from usimul.supervision import ConfidenceDifference, Labels, SimilarityConfidence, Triplets, Unlabeled
from usimul.validation import InputError, InputTypeError

PRIORS = (0.2, 0.4, 0.5, 0.6, 0.85)
# The pool's own share of positives (0.3) is none of the priors, so a sampler that ignores `prior` is caught.
Y = np.repeat([1, -1], [300, 700])
N = 20_000


def share_within(share, expected, n, deviations=4.0):
    return abs(share - expected) <= deviations * np.sqrt(expected * (1 - expected) / n) + 1e-12


def law_definition1(p):
    """Probabilities of (y, y', y''), by listing all eight label triples."""
    law = {t: np.prod([p if label > 0 else 1 - p for label in t]) for t in product((1, -1), repeat=3)}
    law = {t: w if t[0] in t[1:] else 0.0 for t, w in law.items()}
    return {t: w / sum(law.values()) for t, w in law.items()}


def law_pair_plus_unlabeled(p):
    single = {1: p, -1: 1 - p}
    similar = p**2 + (1 - p) ** 2

    def pair(a, b):
        return single[a] ** 2 / similar if a == b else 0.0

    return {
        (a, b, c): 0.5 * pair(a, b) * single[c] + 0.5 * pair(a, c) * single[b] for a, b, c in product((1, -1), repeat=3)
    }


LAWS = {"definition1": law_definition1, "pair_plus_unlabeled": law_pair_plus_unlabeled}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("world", LAWS)
class TestLawOfTriplets:
    @pytest.fixture
    def sup(self, world, prior):
        return sample_triplets(Y, N, n_unlabeled=N, prior=prior, world=world, random_state=7)

    def test_label_triples(self, sup, world, prior):
        labels = [tuple(t) for t in Y[sup.rows].tolist()]
        for triple, expected in LAWS[world](prior).items():
            share = labels.count(triple) / N
            assert share_within(share, expected, N), (triple, share, expected)

    def test_anchor_and_companions(self, sup, world, prior):
        p, q = prior, 1 - prior
        anchor, first, second = (Y[sup.rows] > 0).mean(axis=0)
        if world == "definition1":
            expected_anchor, expected_companion = p * (1 - q**2) / (1 - p * q), p
        else:
            expected_anchor = p**2 / (p**2 + q**2)
            expected_companion = (expected_anchor + p) / 2
        assert share_within(anchor, expected_anchor, N)
        assert share_within(first, expected_companion, N)
        assert share_within(second, expected_companion, N)

    def test_unlabeled_follow_the_prior(self, sup, world, prior):
        assert sup.n_unlabeled == N
        assert share_within(np.mean(Y[sup.unlabeled] > 0), prior, N)

    def test_book_keeping(self, sup, world, prior):
        assert (sup.n_tuples, sup.n_points, sup.world) == (N, Y.size, world)
        if world == "definition1":
            assert sup.n_accepted == N
            assert share_within(sup.n_accepted / sup.n_asked, 1 - prior * (1 - prior), sup.n_asked)
        else:
            assert sup.n_asked is None
            assert sup.n_accepted is None


def test_companion_slots_of_pair_plus_unlabeled_are_shuffled():
    # Without the shuffle the first companion would always share the anchor's class.
    labels = Y[sample_triplets(Y, N, prior=0.4, world="pair_plus_unlabeled", random_state=1).rows]
    agree_first = np.mean(labels[:, 0] == labels[:, 1])
    expected = 0.5 + 0.5 * (0.4 * 0.4**2 + 0.6 * 0.6**2) / (0.4**2 + 0.6**2)
    assert share_within(agree_first, expected, N)


def test_points_are_uniform_within_their_class():
    y = np.repeat([1, -1], [5, 8])
    sup = sample_triplets(y, N, prior=0.4, random_state=3)
    for position, label in product(range(3), (1, -1)):
        rows = sup.rows[:, position]
        rows = rows[y[rows] == label]
        members = np.flatnonzero(y == label)
        for member in members:
            assert share_within(np.mean(rows == member), 1 / members.size, rows.size)


def test_acceptance_count_is_the_number_of_draws_up_to_the_last_kept_one():
    # With n = 1, `n_asked` is geometric with mean 1/Z; counting whole batches would give at least 16.
    asked = np.array([sample_triplets(Y, 1, prior=0.4, random_state=seed).n_asked for seed in range(2000)])
    z = 1 - 0.4 * 0.6
    assert asked.min() == 1
    assert abs(asked.mean() - 1 / z) <= 4 * np.sqrt((1 - z) / z**2 / asked.size)


class TestRelease:
    @pytest.mark.parametrize(
        ("prior", "shares", "expected"), [(0.4, None, (0.341, 0.834)), (0.2, (0.15, 0.6), (0.15, 0.6))]
    )
    def test_exact_counts(self, prior, shares, expected):
        sup = sample_triplets(
            Y, 1111, n_unlabeled=777, prior=prior, world="release", release_shares=shares, random_state=0
        )
        assert int((Y[sup.rows] > 0).sum()) == round(expected[0] * 3333)
        assert int((Y[sup.unlabeled] > 0).sum()) == round(expected[1] * 777)
        assert sup.world == "release"
        assert sup.n_asked is None

    def test_no_triplet_is_formed(self):
        # Independent slots: every one of the eight label triples occurs with the product of the shares.
        sup = sample_triplets(Y, N, n_unlabeled=1000, prior=0.4, world="release", random_state=0)
        labels = [tuple(t) for t in Y[sup.rows].tolist()]
        for triple in product((1, -1), repeat=3):
            expected = np.prod([0.341 if label > 0 else 0.659 for label in triple])
            assert share_within(labels.count(triple) / N, expected, N)

    def test_both_sets_are_shuffled(self):
        sup = sample_triplets(Y, N, n_unlabeled=N, prior=0.4, world="release", random_state=0)
        for positive, share in ((Y[sup.rows].ravel() > 0, 0.341), (Y[sup.unlabeled] > 0, 0.834)):
            half = positive[: positive.size // 2]
            assert share_within(half.mean(), share, half.size)

    def test_other_priors_need_shares(self):
        with pytest.raises(InputError, match=r"known at prior 0.4 only, because .* Got prior 0.3"):
            sample_triplets(Y, 10, world="release")

    def test_default_applies_when_the_pool_itself_has_prior_04(self):
        sup = sample_triplets(np.repeat([1, -1], [40, 60]), 100, world="release", random_state=0)
        assert sup.n_tuples == 100

    @pytest.mark.parametrize("shares", [(0.3,), 0.3, "ab"])
    def test_shape_of_shares(self, shares):
        with pytest.raises((InputError, InputTypeError), match="`release_shares` must be"):
            sample_triplets(Y, 10, prior=0.2, world="release", release_shares=shares)

    def test_range_of_shares(self):
        with pytest.raises(InputError, match=r"`release_shares` must lie in \[0, 1\]. Got 1.2"):
            sample_triplets(Y, 10, prior=0.2, world="release", release_shares=(0.3, 1.2))


ALL_WORLDS = ("definition1", "pair_plus_unlabeled", "release")


@pytest.mark.parametrize("world", ALL_WORLDS)
class TestEveryWorld:
    def test_rows_of_a_tuple_differ_in_a_tiny_pool(self, world):
        y = np.repeat([1, -1], [3, 3])
        sup = sample_triplets(y, 3000, prior=0.4, world=world, random_state=0)
        assert all(len(set(t)) == 3 for t in sup.rows.tolist())

    def test_class_too_small_for_a_tuple(self, world):
        y = np.repeat([1, -1], [2, 50])
        with pytest.raises(InputError, match=r"one tuple needs 3 different points of class \+1, but the pool has 2"):
            sample_triplets(y, 500, prior=0.4, world=world, random_state=0)

    def test_without_replacement_each_point_once(self, world):
        sup = sample_triplets(Y, 150, n_unlabeled=100, prior=0.4, world=world, replace=False, random_state=5)
        used = np.concatenate([sup.rows.ravel(), sup.unlabeled])
        assert used.size == 550
        assert np.unique(used).size == 550

    def test_same_seed_same_draw(self, world):
        options = {"n_unlabeled": 30, "prior": 0.4, "world": world}
        first, again, other = (sample_triplets(Y, 50, random_state=seed, **options) for seed in (3, 3, 4))
        assert first == again
        assert first != other

    def test_generator_moves_on(self, world):
        rng = np.random.default_rng(0)
        first, second = (sample_triplets(Y, 50, prior=0.4, world=world, random_state=rng) for _ in range(2))
        assert first != second

    def test_no_unlabeled_by_default(self, world):
        assert sample_triplets(Y, 5, prior=0.4, world=world, random_state=0).unlabeled is None


def test_without_replacement_keeps_the_law():
    y = np.repeat([1, -1], [30_000, 40_000])
    sup = sample_triplets(y, 10_000, prior=0.4, replace=False, random_state=2)
    labels = [tuple(t) for t in y[sup.rows].tolist()]
    for triple, expected in law_definition1(0.4).items():
        assert share_within(labels.count(triple) / 10_000, expected, 10_000)


def test_exhausted_class_is_named_with_counts():
    y = np.repeat([1, -1], [10, 1000])
    with pytest.raises(
        InputError, match=r"needs (\d+) points of class \+1, but the pool has 10. Pass replace=True"
    ) as e:
        sample_triplets(y, 60, n_unlabeled=20, prior=0.5, replace=False, random_state=0)
    needed = int(str(e.value).split("needs ")[1].split()[0])
    assert 60 < needed < 140  # half of 180 + 20 points, and not only those of the triplets
    with pytest.raises(InputError, match="class -1"):
        sample_triplets(-y, 60, prior=0.5, replace=False, random_state=0)


def test_a_second_process_draws_the_same():
    code = (
        "import json, numpy as np\n"
        "from usimul.sampling import sample_triplets\n"
        "y = np.repeat([1, -1], [300, 700])\n"
        "s = sample_triplets(y, 40, n_unlabeled=20, prior=0.4, random_state=11)\n"
        "print(json.dumps([s.rows.tolist(), s.unlabeled.tolist(), s.n_asked]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = sample_triplets(Y, 40, n_unlabeled=20, prior=0.4, random_state=11)
    assert json.loads(done.stdout) == [here.rows.tolist(), here.unlabeled.tolist(), here.n_asked]


def test_sampling_does_not_import_torch():
    code = "import sys, usimul.sampling; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_prior_defaults_to_the_share_in_y():
    sup = sample_triplets(Y, N, n_unlabeled=N, random_state=0)
    assert share_within(np.mean(Y[sup.rows[:, 1]] > 0), 0.3, N)
    assert share_within(np.mean(Y[sup.unlabeled] > 0), 0.3, N)


@pytest.mark.parametrize("name", EVENTS)
def test_rejection_works_for_every_event(name):
    event, p = EVENTS[name], 0.35
    labels, n_asked = Pool(Y, p, replace=True, random_state=0).event_labels(event, N)
    chances = [1.0] * len(event.admissible) if event.acceptance is None else event.acceptance
    weights = {
        t: chance * np.prod([p if bit else 1 - p for bit in t])
        for t, chance in zip(event.admissible, chances, strict=True)
    }
    drawn = [tuple(t) for t in (labels > 0).astype(int).tolist()]
    assert set(drawn) == set(event.admissible)
    for t, weight in weights.items():
        assert share_within(drawn.count(t) / N, weight / sum(weights.values()), N)
    assert share_within(N / n_asked, sum(weights.values()), n_asked)


BAD = [
    ({"y": np.array([0, 1, 1])}, r"`y` must hold both labels \+1 and -1 and nothing else. Got values: 0, 1 "),
    ({"y": np.array(["cat", "dog"])}, "Got values: cat, dog .* Translate them first"),
    ({"y": np.array([True, False])}, "Got values: False, True "),
    ({"y": np.ones(5)}, "Got values: 1.0 "),
    ({"y": [[1, -1]]}, r"must be one-dimensional. Got shape \(1, 2\)"),
    ({"n": 0}, "`n` must be at least 1. Got 0"),
    ({"n": 2.5}, "`n` must be an integer. Got 2.5"),
    ({"n_unlabeled": -1}, "`n_unlabeled` must be at least 0. Got -1"),
    ({"prior": 1.0}, r"`prior` must lie in \(0, 1\). Got 1.0"),
    ({"prior": "0.4"}, "`prior` must be a number"),
    ({"world": "definition"}, "`world` must be one of: .* Did you mean 'definition1'"),
    ({"random_state": "x"}, "`random_state` must be an integer"),
    ({"release_shares": (0.3, 0.8)}, "`release_shares` belongs to world='release' only"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_arguments(change, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        sample_triplets(**{"y": Y, "n": 10, "random_state": 0, **change})


class TestLabels:
    def test_whole_pool_in_order(self):
        sup = sample_labels(Y)
        assert sup.rows[:, 0].tolist() == list(range(1000))
        assert sup.values.tolist() == Y.tolist()
        assert sup.n_points == 1000

    @pytest.mark.parametrize(("prior", "expected"), [(None, 0.3), (0.7, 0.7)])
    def test_values_are_the_labels_and_follow_the_prior(self, prior, expected):
        sup = sample_labels(Y, N, prior=prior, random_state=0)
        assert sup.values.tolist() == Y[sup.rows[:, 0]].tolist()
        assert share_within(np.mean(sup.values > 0), expected, N)

    def test_prior_without_n_gives_as_many_as_the_pool(self):
        assert sample_labels(Y, prior=0.5, random_state=0).n_tuples == 1000

    def test_without_replacement(self):
        rows = sample_labels(Y, 400, prior=0.4, replace=False, random_state=0).rows
        assert np.unique(rows).size == 400
        with pytest.raises(InputError, match=r"points of class \+1, but the pool has 300"):
            sample_labels(Y, 900, prior=0.5, replace=False, random_state=0)

    def test_bad_n(self):
        with pytest.raises(InputError, match="`n` must be at least 1"):
            sample_labels(Y, 0)


class TestUnlabeled:
    @pytest.mark.parametrize(("prior", "expected"), [(None, 0.3), (0.7, 0.7)])
    def test_prior(self, prior, expected):
        sup = sample_unlabeled(Y, N, prior=prior, random_state=0)
        assert type(sup) is Unlabeled
        assert share_within(np.mean(Y[sup.rows[:, 0]] > 0), expected, N)

    def test_carries_no_label(self):
        sup = sample_unlabeled(Y, 10, random_state=0)
        assert sup.values is None
        assert sup.known_labels is None

    def test_without_replacement(self):
        assert np.unique(sample_unlabeled(Y, 400, prior=0.4, replace=False, random_state=0).rows).size == 400


class TestDraw:
    def test_triplets(self):
        sup = draw(Triplets, Y, 20, n_unlabeled=5, prior=0.4, random_state=0)
        assert sup == sample_triplets(Y, 20, n_unlabeled=5, prior=0.4, random_state=0)
        assert sup.world == "definition1"

    def test_labels_and_unlabeled_ignore_n_unlabeled(self):
        sup = draw(Labels, Y, 20, n_unlabeled=5, prior=0.4, random_state=0)
        assert sup == sample_labels(Y, 20, prior=0.4, random_state=0)
        sup = draw(Unlabeled, Y, 20, n_unlabeled=5, prior=0.4, random_state=0)
        assert sup == sample_unlabeled(Y, 20, prior=0.4, random_state=0)

    @pytest.mark.parametrize("kind", [SimilarityConfidence, ConfidenceDifference])
    def test_confidences_need_the_posterior(self, kind):
        with pytest.raises(InputError, match=f"drawing {kind.__name__} needs `posterior`"):
            draw(kind, Y, 20)
        assert draw(kind, Y, 20, posterior=np.full(len(Y), 0.3), random_state=0).n_tuples == 20

    @pytest.mark.parametrize("kind", ["triplets", int, None])
    def test_not_a_kind(self, kind):
        with pytest.raises(InputTypeError, match="`kind` must be a supervision class, such as Triplets"):
            draw(kind, Y, 20)
