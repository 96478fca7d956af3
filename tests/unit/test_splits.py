"""Dividing the pool: nothing on both sides, nothing lost that need not be, and no tuple preferred."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score

from usimul import Labels, SimilarPairs, Triplets, WeakClassifier, make_gaussians, sample_triplets
from usimul.mixture import anchor_share
from usimul.splits import PoolKFold, check_leak, inside, pool_split
from usimul.validation import InputError, InputTypeError, LeakWarning


def drawn(n_points, n, prior=0.3, seed=0, n_unlabeled=0):
    """Definition 1 over a pool of independent labels; returns them too."""
    labels = np.where(np.random.default_rng(seed).random(n_points) < prior, 1, -1)
    return sample_triplets(labels, n, n_unlabeled=n_unlabeled, prior=prior, random_state=seed), labels


def apart(n, n_unlabeled=0):
    """Triplets of which each has its own points."""
    unlabeled = range(3 * n, 3 * n + n_unlabeled) if n_unlabeled else None
    return Triplets(np.arange(3 * n).reshape(n, 3), unlabeled=unlabeled, n_points=3 * n + n_unlabeled)


class TestPoolSplit:
    @pytest.mark.parametrize("fraction", [0.2, 0.25, 1 / 3, 0.5, 0.6])
    def test_nothing_is_lost_where_triplets_are_apart(self, fraction):
        split = pool_split(apart(600, 600), fraction, random_state=0)
        assert split.n_dropped == 0
        assert abs(split.n_test - 600 * fraction) <= 1
        assert abs(len(split.test) - 2400 * fraction) <= 4

    @pytest.mark.parametrize(("n", "width"), [(300, 3), (1000, 3), (4000, 3), (900, 2), (500, 1)])
    def test_sides_share_no_row_and_counts_are_right(self, n, width):
        rows = np.argsort(np.random.default_rng(0).random((n, 1000)), axis=1)[:, :width]
        kind, values = {3: (Triplets, None), 2: (SimilarPairs, None), 1: (Labels, np.ones(n))}[width]
        sup = kind(rows, values=values, unlabeled=np.arange(0, 1000, 2), n_points=1000)
        split = pool_split(sup, 0.2, random_state=0)
        np.testing.assert_array_equal(np.sort(np.concatenate([split.train, split.test])), np.arange(1000))
        train, test = inside(sup, split.train), inside(sup, split.test)
        assert check_leak(train, test) == 0
        assert (train.n_tuples, test.n_tuples) == (split.n_train, split.n_test)
        assert split.n_train + split.n_test + split.n_dropped == n
        assert train.n_unlabeled + test.n_unlabeled == 500
        assert sup[split.test].n_tuples == split.n_test
        assert abs(len(split.test) - 200) <= 40

    def test_a_giant_component_is_cut_where_it_is_thin(self):
        sup, _ = drawn(3000, 1000)  # one point is in one triplet on average; a component of most points arises
        split = pool_split(sup, 0.2, random_state=0)
        assert abs(len(split.test) - 600) <= 30
        # Points dealt one by one would keep 0.2^3 + 0.8^3 = 0.52 of the triplets, and 0.008 on the test side.
        assert split.dropped_share < 0.1
        assert split.n_test > 0.15 * 1000

    def test_the_same_seed_gives_the_same_split(self):
        sup, _ = drawn(600, 200)
        first, again, other = (pool_split(sup, 0.2, random_state=seed).test for seed in (3, 3, 4))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_known_labels_stay_for_the_names(self):
        sup = apart(10).with_known_labels({0: 1})
        assert inside(sup, np.arange(15, 30)).known_rows.tolist() == [0]


class TestNoTupleIsPreferred:
    def test_every_component_has_the_same_chance_whatever_its_size(self):
        """Stars of 1 to 4 triplets around a shared point, single points, unlabeled ones: all with probability 1/5."""
        rows = []
        for centre, size in enumerate([1, 2, 3, 4] * 12):
            for _ in range(size):
                rows.append((centre, 48 + 2 * len(rows), 49 + 2 * len(rows)))
        rows = np.array(rows)
        sup = Triplets(rows, unlabeled=range(0, 48, 2), n_points=int(rows.max()) + 11)
        n, counts = 600, 0
        for seed in range(n):
            member = np.zeros(sup.n_points, dtype=bool)
            member[pool_split(sup, 0.2, random_state=seed).test] = True
            counts = counts + member
        deviation = np.sqrt(n * 0.2 * 0.8)
        assert np.abs(counts - 0.2 * n).max() < 5 * deviation  # some 400 points: by chance once in 4,000

    def test_shares_of_anchors_and_companions_are_kept(self):
        """One fixed set of small components; the mean over splits of each side's shares is that of the whole."""
        sup, labels = drawn(4000, 400, n_unlabeled=500)
        positive = labels[sup.rows] > 0
        found = []
        for seed in range(200):
            split = pool_split(sup, 0.2, random_state=seed)
            assert split.dropped_share < 0.01
            test = inside(sup, split.test)
            part = labels[test.rows] > 0
            same = part[:, 0] == part[:, 1]
            found.append([part[:, 0].mean(), part[:, 1:].mean(), same.mean(), (labels[test.unlabeled] > 0).mean()])
        whole = [positive[:, 0].mean(), positive[:, 1:].mean(), (positive[:, 0] == positive[:, 1]).mean()]
        whole.append((labels[sup.unlabeled] > 0).mean())
        found = np.array(found)
        z = (found.mean(axis=0) - whole) / (found.std(axis=0) / np.sqrt(len(found)))
        assert np.abs(z).max() < 4

    def test_a_cut_component_still_holds_triplets_of_the_definition(self):
        """New pools, new answers each time: the shares that Definition 1 states, on the side that judges."""
        prior, anchors, companions, dropped = 0.3, [], [], []
        for seed in range(40):
            sup, labels = drawn(3000, 800, prior, seed, n_unlabeled=300)
            split = pool_split(sup, 0.2, random_state=seed)
            part = labels[inside(sup, split.test).rows] > 0
            anchors.append(part[:, 0].mean())
            companions.append(part[:, 1:].mean())
            dropped.append(split.dropped_share)
        assert 0.01 < np.mean(dropped) < 0.1  # there was something to cut
        for found, share in ((anchors, anchor_share(prior)), (companions, prior)):
            error = np.std(found) / np.sqrt(len(found))
            assert abs(np.mean(found) - share) < 4 * error

    def test_blocks_of_dense_tuples_do_not_follow_the_classes(self):
        """Points of one class share more triplets; a cut that looked for communities would find the classes."""
        sup, labels = drawn(600, 9000, prior=0.5)
        shares = [np.mean(labels[test] > 0) for _, test in PoolKFold(5, random_state=0).split(None, sup)]
        deviation = np.sqrt(0.25 / 120 * (1 - 120 / 600))  # of 120 points drawn without looking
        assert np.abs(np.array(shares) - np.mean(labels > 0)).max() < 4 * deviation


class TestPoolKFold:
    @pytest.mark.parametrize("n", [100, 900])
    def test_folds_part_the_pool(self, n):
        sup, _ = drawn(2000, n, n_unlabeled=100)
        folds = PoolKFold(5, random_state=0)
        parts = list(folds.split(None, sup))
        np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in parts])), np.arange(2000))
        for (train, test), split in zip(parts, folds.splits_, strict=True):
            assert np.intersect1d(train, test).size == 0
            assert sup[test].n_tuples == split.n_test
            assert sup[train].n_tuples == split.n_train
        assert folds.get_n_splits() == len(parts) == 5

    def test_folds_keep_what_folds_of_rows_lose(self):
        sup, _ = drawn(6000, 600)
        kept = sum(sup[test].n_tuples for _, test in PoolKFold(5, random_state=0).split(None, sup))
        assert kept > 0.98 * 600  # folds of single rows: 5 / 5^3 = 0.04 of them

    def test_scikit_learn_takes_it(self):
        data = make_gaussians(4000, 500, prior=0.3, random_state=0)
        sup = sample_triplets(data.y_train, 500, n_unlabeled=500, prior=0.3, random_state=0)
        clf = WeakClassifier("joint-likelihood", prior=0.3, model="linear", epochs=15, lr=0.05, random_state=0)
        cv = PoolKFold(3, random_state=0)
        scores = cross_val_score(clf, data.X_train, sup, cv=cv)  # fewer than 30 tuples would be a warning
        by_hand = []
        for train, test in cv.split(data.X_train, sup):
            judged = WeakClassifier(**clf.get_params()).fit(data.X_train[train], sup[train])
            by_hand.append(judged.score(data.X_train[test], sup[test]))
        np.testing.assert_array_equal(scores, by_hand)
        grid = GridSearchCV(clf, {"lr": [1e-6, 0.05]}, cv=cv).fit(data.X_train, sup)
        assert grid.best_params_ == {"lr": 0.05}
        drawn_at_random = RandomizedSearchCV(clf, {"lr": [1e-6, 0.05]}, n_iter=2, cv=cv, random_state=0)
        assert drawn_at_random.fit(data.X_train, sup).best_params_ == {"lr": 0.05}
        assert grid.best_estimator_.score(data.X_test, data.y_test) > 0.8


class TestCheckLeak:
    def test_shared_rows_are_counted_and_told(self):
        train = Triplets([[0, 1, 2], [2, 3, 4]], unlabeled=[9], n_points=12)
        test = Triplets([[4, 5, 6]], unlabeled=[9, 10, 10], n_points=12)
        with pytest.warns(LeakWarning, match=r"2 of the 5 points that judge were trained on.*pool_split"):
            assert check_leak(train, test) == 2

    def test_different_pools_cannot_be_compared(self):
        with pytest.raises(InputError, match=r"rows of one pool. Got pools of 9 and 6 points"):
            check_leak(Triplets([[0, 1, 2]], n_points=9), Triplets([[3, 4, 5]], n_points=6))
        with pytest.raises(InputTypeError, match=r"takes two supervision objects\. Got list"):
            check_leak([0], Triplets([[3, 4, 5]]))


class TestBadInput:
    def test_what_cannot_be_divided(self):
        with pytest.raises(InputError, match="does not know the size of its pool"):
            pool_split(Triplets([[0, 1, 2]]))
        with pytest.raises(InputError, match="a pool of 3 points cannot be divided into 5 blocks"):
            pool_split(apart(1), 0.2)
        with pytest.raises(InputTypeError, match=r"takes a supervision object.*Got ndarray"):
            list(PoolKFold(2).split(None, np.ones(5)))
        with pytest.raises(InputError, match="`n_splits`"):
            PoolKFold(1)
        with pytest.raises(InputError, match="`fraction`"):
            pool_split(apart(9), 1.5)

    def test_labels_have_scikit_learn_s_own_splitters(self):
        with pytest.raises(InputTypeError, match="Pass it as y"):
            cross_val_score(LogisticRegression(), np.ones((6, 1)), [0, 1] * 3, cv=PoolKFold(2))
