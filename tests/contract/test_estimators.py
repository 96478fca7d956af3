"""The estimators behave as scikit-learn estimators do, and as their docstrings say."""

import copy
import hashlib
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import textwrap
from dataclasses import replace

import joblib
import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator, parametrize_with_checks
from torch import nn

from usimul import estimators
from usimul.datasets import make_gaussians
from usimul.estimators import AUTO_CANDIDATES, USimULClassifier, WeakClassifier
from usimul.methods import get_method, list_methods
from usimul.mixture import acceptance_probability
from usimul.models import ScoreNet
from usimul.sampling import draw, sample_labels, sample_triplets
from usimul.supervision import Labels, SimilarPairs, Triplets
from usimul.training import TrainingDivergedError
from usimul.validation import (
    DegenerateTrainingWarning,
    FewTuplesWarning,
    InputError,
    InputTypeError,
    PriorMismatchWarning,
)

PRIOR = 0.3
QUICK = {"model": "linear", "epochs": 8, "batch_size": 64, "lr": 0.05, "random_state": 0}
MLP = {"model": "mlp", "epochs": 12, "batch_size": 64, "random_state": 0}

# --- scikit-learn's own checks --------------------------------------------------------------------------------------

CHECKED = [
    WeakClassifier("joint", **QUICK),
    WeakClassifier("joint", **MLP),
    USimULClassifier(**QUICK),
    WeakClassifier("supervised", **QUICK),
]

N_CHECKS = {"1.9": 56}
"""Checks that scikit-learn has for such an estimator, by version: what `estimator_checks_generator` yields."""


def not_applicable():
    """Checks that skip themselves on this machine, with the reason."""
    skipped = {}
    if not os.environ.get("SCIPY_ARRAY_API"):
        skipped["check_array_api_input"] = "needs SCIPY_ARRAY_API set before SciPy is imported; X is a NumPy array here"
    if importlib.util.find_spec("pandas") is None:
        skipped["check_classifier_data_not_an_array"] = "needs pandas, which is no dependency"
    return skipped


@parametrize_with_checks(CHECKED)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_all_checks_run():
    """54 of 56 with scikit-learn 1.9, without pandas and SCIPY_ARRAY_API: counted, not trusted."""
    estimator = CHECKED[0]
    results = check_estimator(estimator, on_skip=None, on_fail="raise")
    ran = [r["check_name"] for r in results if r["status"] == "passed"]
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped == set(not_applicable())
    assert len(ran) + len(skipped) == len(results) == len(list(estimator_checks_generator(estimator)))
    version = ".".join(sklearn.__version__.split(".")[:2])
    if version not in N_CHECKS:
        pytest.skip(f"the number of checks of scikit-learn {version} is not written down here; {len(ran)} ran")
    assert len(results) == N_CHECKS[version]
    assert len(ran) == N_CHECKS[version] - len(skipped)


# --- data -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return make_gaussians(400, 300, prior=PRIOR, distance=4.0, random_state=0)


@pytest.fixture(scope="module")
def sup(data):
    return sample_triplets(data.y_train, 1500, n_unlabeled=600, prior=PRIOR, random_state=0)


@pytest.fixture(scope="module")
def fitted(data, sup):
    return WeakClassifier("joint", prior=PRIOR, **QUICK).fit(data.X_train, sup)


def quick(method="joint", **changes):
    return WeakClassifier(method, **{"prior": PRIOR, **QUICK, **changes})


class Blind(nn.Linear):
    """Gives every point the same score."""

    def forward(self, X):
        return super().forward(0.0 * X)


def zero_linear():
    module = nn.Linear(2, 1)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    return module


# --- composition ----------------------------------------------------------------------------------------------------


class TestComposition:
    def test_pipeline(self, data, sup):
        pipe = make_pipeline(StandardScaler(), quick()).fit(data.X_train, sup)
        assert pipe.score(data.X_test, data.y_test) > 0.9

    def test_clone_has_parameters_and_no_fit(self, fitted):
        twin = clone(fitted)
        assert twin.get_params() == fitted.get_params()
        with pytest.raises(NotFittedError):
            twin.predict(np.zeros((1, 2)))

    @pytest.mark.parametrize("cv", [KFold(3), 3], ids=str)
    def test_label_free_cross_validation(self, data, sup, cv):
        scores = cross_val_score(quick(), data.X_train, sup, cv=cv)
        assert scores.shape == (3,)
        assert np.all((scores >= 0.5) & (scores <= 1.0))

    def test_folds_that_hold_few_tuples_are_told(self, data, sup):
        with pytest.warns(FewTuplesWarning, match=r"rests on \d+ tuples.*PoolKFold") as caught:
            scores = cross_val_score(quick(), data.X_train, sup, cv=5)
        assert len(caught) == 5  # about 1500 / 5^3 = 12 tuples in each
        assert np.all((scores >= 0.5) & (scores <= 1.0))

    def test_a_number_means_unstratified_folds(self, data, sup):
        by_number = cross_val_score(quick(), data.X_train, sup, cv=3)
        by_splitter = cross_val_score(quick(), data.X_train, sup, cv=KFold(3))
        np.testing.assert_array_equal(by_number, by_splitter)

    @pytest.mark.parametrize("cv", [KFold(3), 3], ids=str)
    def test_grid_search_refuses_the_setting_that_learns_nothing(self, data, sup, cv):
        clf = quick("usimul-exact-abs", lr=0.01, epochs=20, weight_decay=0.0)
        search = GridSearchCV(clf, {"model": [Blind(2, 1), "linear"]}, cv=cv).fit(data.X_train, sup)
        assert search.best_params_ == {"model": "linear"}
        assert search.best_estimator_.score(data.X_test, data.y_test) > 0.9

    def test_cross_val_predict_covers_the_pool(self, data, sup):
        predicted = cross_val_predict(quick(), data.X_train, sup, cv=3)
        assert np.mean(predicted == data.y_train) > 0.9

    def test_train_test_split(self, data, sup):
        X_a, X_b, sup_a, sup_b = train_test_split(data.X_train, sup, random_state=0)
        sup_a.check_pool(len(X_a))
        sup_b.check_pool(len(X_b))
        assert sup_a.n_tuples > 0

    def test_supervision_without_pool_size_cannot_be_split(self, data, sup):
        unknown = Triplets(sup.rows, unlabeled=sup.unlabeled)
        with pytest.raises(InputError, match=r"Build it with n_points=len\(X\)"):
            cross_val_score(quick(), data.X_train, unknown, cv=3)

    def test_other_classifiers_refuse_supervision_as_labels(self, data, sup):
        with pytest.raises(ValueError, match="Unknown label type"):
            LogisticRegression().fit(data.X_train, sup)

    def test_label_free_score_is_one_minus_weak_risk(self, data, sup, fitted):
        assert fitted.score(data.X_train, sup) == 1.0 - fitted.weak_risk(data.X_train, sup).value

    def test_label_free_score_takes_no_weights(self, data, sup, fitted):
        with pytest.raises(InputError, match="`sample_weight` does not apply"):
            fitted.score(data.X_train, sup, sample_weight=np.ones(400))

    def test_labels_of_other_names_are_no_score(self, data, fitted):
        for y in (data.y_test > 0, (data.y_test > 0).astype(int), np.where(data.y_test > 0, "1", "-1")):
            with pytest.raises(InputError, match=r"`y` must hold the two classes of the classifier, -1 and 1 .*np|num"):
                fitted.score(data.X_test, y)
        assert fitted.score(data.X_test, data.y_test.astype(float)) == fitted.score(data.X_test, data.y_test)
        assert fitted.score(data.X_test[:1], data.y_test[:1]) in (0.0, 1.0)

    def test_label_free_score_agrees_with_the_labels(self, data, sup, fitted):
        risk = fitted.weak_risk(data.X_train, sup)
        error = 1.0 - fitted.score(data.X_train, data.y_train)
        assert abs(risk.value - error) < 4 * risk.standard_error + 0.01


# --- reproducibility ------------------------------------------------------------------------------------------------

FINGERPRINT = """
import hashlib
from usimul.datasets import make_gaussians
from usimul.estimators import WeakClassifier
from usimul.sampling import sample_triplets
import torch

torch.set_num_threads({threads})
data = make_gaussians(400, 300, prior=0.3, distance=4.0, random_state=0)
sup = sample_triplets(data.y_train, 1500, n_unlabeled=600, prior=0.3, random_state=0)
clf = WeakClassifier("joint", prior=0.3, model="mlp-dropout", epochs=3, batch_size=64, random_state=0)
print(hashlib.sha256(clf.fit(data.X_train, sup).decision_function(data.X_test).tobytes()).hexdigest())
"""


DROPOUT = {"prior": PRIOR, "model": "mlp-dropout", "epochs": 3, "batch_size": 64}


class TestReproducibility:
    def scores(self, data, sup, seed):
        clf = WeakClassifier("joint", random_state=seed, **DROPOUT).fit(data.X_train, sup)
        return clf.decision_function(data.X_test)

    def test_same_seed_same_bits(self, data, sup):
        first = self.scores(data, sup, 0)
        torch.rand(3)  # neither generator's state may matter
        np.random.rand(3)  # noqa: NPY002
        assert first.tobytes() == self.scores(data, sup, 0).tobytes()

    def test_same_bits_in_another_process(self, data, sup):
        code = textwrap.dedent(FINGERPRINT.format(threads=torch.get_num_threads()))
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        assert found.stdout.strip() == hashlib.sha256(self.scores(data, sup, 0).tobytes()).hexdigest()

    def test_different_seeds_differ(self, data, sup):
        assert not np.array_equal(self.scores(data, sup, 0), self.scores(data, sup, 1))

    def test_random_state_object_advances(self, data, sup):
        state = np.random.RandomState(0)
        assert not np.array_equal(self.scores(data, sup, state), self.scores(data, sup, state))

    def test_global_generators_are_left_alone(self, data, sup):
        torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
        clf = WeakClassifier("joint", random_state=0, **DROPOUT).fit(data.X_train, sup)
        clf.predict(data.X_test)
        WeakClassifier("joint", random_state=0, **DROPOUT).fit(data.X_train, data.y_train)
        assert torch.equal(torch_before, torch.get_rng_state())
        for before, after in zip(numpy_before, np.random.get_state(), strict=True):  # noqa: NPY002
            np.testing.assert_array_equal(before, after)

    def test_fit_twice_starts_anew(self, data, sup):
        clf = quick().fit(data.X_train, sup)
        first = clf.decision_function(data.X_test)
        other = np.hstack([data.X_train, data.X_train])
        clf.fit(other, sup)
        assert clf.n_features_in_ == 2 * data.X_train.shape[1]
        np.testing.assert_array_equal(clf.fit(data.X_train, sup).decision_function(data.X_test), first)

    def test_fit_changes_no_argument(self, data, sup):
        X, before, options = data.X_train.copy(), copy.deepcopy(sup), {"prior_weight": 2.0}
        clf = quick(options=options)
        parameters = clf.get_params()
        clf.fit(X, sup)
        np.testing.assert_array_equal(X, data.X_train)
        assert sup == before
        assert clf.get_params() == parameters
        assert options == {"prior_weight": 2.0}

    @pytest.mark.parametrize("how", ["pickle", "joblib", "deepcopy"])
    def test_copies_of_a_fitted_estimator_predict_the_same(self, data, fitted, how, tmp_path):
        if how == "joblib":
            joblib.dump(fitted, tmp_path / "clf.joblib")
            twin = joblib.load(tmp_path / "clf.joblib")
        else:
            twin = pickle.loads(pickle.dumps(fitted)) if how == "pickle" else copy.deepcopy(fitted)
        np.testing.assert_array_equal(twin.decision_function(data.X_test), fitted.decision_function(data.X_test))
        assert twin.history_ == fitted.history_
        assert twin.orientation_ == fitted.orientation_


# --- what fit leaves behind -----------------------------------------------------------------------------------------


class TestFittedAttributes:
    def test_without_labels_classes_are_minus_and_plus_one(self, fitted):
        np.testing.assert_array_equal(fitted.classes_, [-1, 1])

    def test_history_has_one_entry_an_epoch(self, fitted):
        names = {"risk", "raw_risk", "corrected_share", "rate", "seconds", "weak_risk", "watched"}
        assert names <= set(fitted.history_)
        assert {len(values) for values in fitted.history_.values()} == {QUICK["epochs"]}
        assert np.isfinite(fitted.history_["risk"]).all()
        assert fitted.history_["weak_risk"] == [None] * QUICK["epochs"]
        assert fitted.n_epochs_ == QUICK["epochs"]
        assert not fitted.interrupted_

    def test_probabilities(self, data, fitted):
        probability = fitted.predict_proba(data.X_test)
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)
        np.testing.assert_allclose(probability[:, 1], 1 / (1 + np.exp(-fitted.decision_function(data.X_test))))
        predicted = fitted.predict(data.X_test)
        np.testing.assert_array_equal(predicted, np.where(fitted.decision_function(data.X_test) >= 0, 1, -1))

    def test_string_classes_keep_their_names(self, data):
        names = np.where(data.y_train > 0, "yes", "no")
        clf = quick(prior=None).fit(data.X_train, names)
        np.testing.assert_array_equal(clf.classes_, ["no", "yes"])
        assert clf.prior_ == np.mean(data.y_train > 0)
        assert clf.orientation_.status == "given"
        assert np.mean(clf.predict(data.X_test) == np.where(data.y_test > 0, "yes", "no")) > 0.9

    def test_no_unlabeled_points_are_drawn_when_none_are_asked_for(self, data):
        clf = quick(n_tuples=40, n_unlabeled=0, epochs=1).fit(data.X_train, data.y_train)
        assert (clf.n_tuples_, clf.n_unlabeled_) == (40, 0)
        with pytest.raises(InputError, match="needs unlabeled points beside the tuples"):
            quick("usimul", n_unlabeled=0).fit(data.X_train, data.y_train)
        for changes, message in (
            ({"n_tuples": 0}, "`n_tuples` must be at least 1. Got 0"),
            ({"n_tuples": -5}, "`n_tuples` must be at least 1. Got -5"),
            ({"n_unlabeled": -1}, "`n_unlabeled` must be at least 0. Got -1"),
        ):
            with pytest.raises(InputError, match=message):
                quick(**changes).fit(data.X_train, data.y_train)

    def test_supervised_draws_at_the_prior_too(self, data):
        whole = quick("supervised", prior=None, epochs=1).fit(data.X_train, data.y_train)
        assert (whole.n_tuples_, whole.prior_) == (400, np.mean(data.y_train > 0))
        drawn = quick("supervised", prior=0.9, n_tuples=1000, epochs=1).fit(data.X_train, data.y_train)
        assert (drawn.n_tuples_, drawn.prior_) == (1000, 0.9)
        sup = sample_labels(data.y_train, 1000, prior=0.9, random_state=0)
        assert np.mean(sup.values > 0) > 0.85
        same = quick("supervised", prior=0.9, epochs=1).fit(data.X_train, sup)
        assert np.array_equal(drawn.decision_function(data.X_test), same.decision_function(data.X_test))

    def test_a_prior_that_nobody_stated_is_not_made_up(self, data, sup):
        labels = sample_labels(data.y_train)
        clf = quick("supervised", prior=None).fit(data.X_train, labels)
        assert clf.prior_ is None
        for judge in (clf.weak_risk, clf.score):
            with pytest.raises(InputError, match=r"trained without a prior, and judging it by Triplets.*--prior"):
                judge(data.X_train, sup)
        stated = quick("supervised").fit(data.X_train, labels)
        assert clf.weak_risk(data.X_train, sup, prior=PRIOR) == stated.weak_risk(data.X_train, sup)
        assert clf.weak_risk(data.X_train, labels).kind == "labels"
        with pytest.raises(InputError, match="`prior` must lie in"):
            clf.weak_risk(data.X_train, sup, prior=1.5)

    def test_whether_labels_took_part(self, data, sup):
        assert not quick(epochs=1).fit(data.X_train, sup).from_labels_
        assert quick(epochs=1).fit(data.X_train, data.y_train).from_labels_
        assert quick("supervised", epochs=1).fit(data.X_train, sample_labels(data.y_train)).from_labels_

    def test_the_corrected_share_is_of_batches_that_were_corrected(self, data, sup):
        """The likelihood's first part is negative at the end, and nothing corrects it."""
        plain = quick("joint-likelihood", epochs=20).fit(data.X_train, sup).history_
        assert plain["parts"][-1]["likelihood"] < 0
        assert plain["corrected_share"] == [0.0] * 20
        noisy = {"batch_size": 4, "epochs": 3, "lr": 1e-2}
        none, corrected = (quick(m, **noisy).fit(data.X_train, sup).history_ for m in ("usimul", "usimul-abs"))
        assert none["corrected_share"] == [0.0] * 3
        assert min(corrected["corrected_share"]) > 0
        assert max(quick("joint-plain", **noisy).fit(data.X_train, sup).history_["corrected_share"]) > 0
        off = quick("joint-plain", options={"correction": "none"}, **noisy).fit(data.X_train, sup)
        assert off.history_["corrected_share"] == [0.0] * 3

    def test_sizes_drawn_from_labels(self, data):
        few = quick(n_tuples=40, n_unlabeled=24, epochs=1).fit(data.X_train, data.y_train)
        more = quick(n_tuples=80, n_unlabeled=24, epochs=1).fit(data.X_train, data.y_train)
        assert not np.array_equal(few.decision_function(data.X_test), more.decision_function(data.X_test))

    @pytest.mark.parametrize("method", [m.name for m in list_methods()])
    def test_every_method_that_claims_to_be_unbiased_learns(self, data, method):
        record = get_method(method)
        sizes = {"n_unlabeled": 600, "prior": PRIOR, "random_state": 0}
        drawn = draw(record.supervision, data.y_train, 1500, posterior=data.posterior_train, **sizes)
        clf = quick(method, epochs=20, weight_decay=0.0).fit(data.X_train, drawn)
        assert np.isfinite(clf.decision_function(data.X_test)).all()
        if record.unbiased and clf.orientation_.status != "unknown":
            assert clf.score(data.X_test, data.y_test) > 0.8

    def test_auto_keeps_the_least_label_free_risk(self, data, sup):
        clf = quick("auto", model="auto", epochs=2, lr=1e-3).fit(data.X_train, sup)
        assert [(row["method"], row["model"]) for row in clf.auto_] == list(AUTO_CANDIDATES)
        best = min(clf.auto_, key=lambda row: row["weak_risk"])
        assert (clf.method_, clf.model_) == (best["method"], best["model"])
        assert clf.method == "auto"

    def test_label_free_selection_keeps_the_epoch_of_least_risk(self, data, sup):
        clf = quick(selection="label-free", epochs=12, lr=0.2).fit(data.X_train, sup)
        risks = np.array(clf.history_["weak_risk"])
        assert len(risks) == 12
        least = np.flatnonzero(risks == risks.min())
        assert clf.n_epochs_ == least[-1] + 1  # of equal ones the last, which has seen most

    def test_points_are_held_out_where_few_tuples_are_lost(self, sup):
        data = make_gaussians(6000, 10, prior=PRIOR, random_state=0)
        apart = sample_triplets(data.y_train, 600, n_unlabeled=600, prior=PRIOR, random_state=0)
        clf = quick(selection="label-free", epochs=2).fit(data.X_train, replace(apart, n_points=None))
        assert clf.held_out_ == "points"
        assert quick(epochs=1).fit(data.X_train, apart).held_out_ is None
        dense = sample_triplets(data.y_train[:400], 1500, n_unlabeled=600, prior=PRIOR, random_state=0)
        assert quick(selection="label-free", epochs=2).fit(data.X_train[:400], dense).held_out_ == "tuples"

    def test_patience_ends_training_after_epochs_without_improvement(self, data, sup):
        given = {"method": "usimul-exact-abs", "selection": "label-free", "epochs": 30, "lr": 0.3}
        long = quick(**given).fit(data.X_train, sup)
        short = quick(**given, patience=3).fit(data.X_train, sup)
        risks = np.array(long.history_["weak_risk"])
        improved = np.array([i for i in range(30) if i == 0 or risks[i] < risks[:i].min()])
        ends = next(i for i in range(30) if i - improved[improved <= i].max() >= 3)  # by hand, from the long one
        assert (short.stopped_, long.stopped_) == (True, False)
        assert short.history_["weak_risk"] == list(risks[: ends + 1])
        least = np.flatnonzero(risks[: ends + 1] == risks[: ends + 1].min())
        assert short.n_epochs_ == least[-1] + 1

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"patience": 3}, "`patience` waits for the held-out risk.*Got patience=3 with selection='last'"),
            ({"patience": 0, "selection": "label-free"}, "`patience` must"),
        ],
    )
    def test_patience_needs_something_to_wait_for(self, data, sup, given, words):
        with pytest.raises(InputError, match=words):
            quick(**given).fit(data.X_train, sup)

    @pytest.mark.slow
    def test_held_out_risk_is_no_estimate_where_points_are_memorised(self):
        """What the pages say: labels that nothing predicts, learned by heart from triplets of few points."""
        rng = np.random.default_rng(0)
        X, X_new = rng.normal(size=(100, 60)), rng.normal(size=(1000, 60))
        y, y_new = (np.where(rng.random(n) < PRIOR, 1, -1) for n in (100, 1000))
        drawn = sample_triplets(y, 2000, n_unlabeled=200, prior=PRIOR, random_state=0)
        clf = WeakClassifier(
            "joint-plain", prior=PRIOR, epochs=15, batch_size=64, selection="label-free", random_state=0
        ).fit(X, drawn)
        assert clf.held_out_ == "tuples"
        error = 1.0 - clf.score(X_new, y_new)
        assert min(clf.history_["weak_risk"]) < 0.1 < 0.3 < error
        fresh = sample_triplets(y_new, 2000, n_unlabeled=500, prior=PRIOR, random_state=1)
        risk = clf.weak_risk(X_new, fresh)
        assert abs(risk.value - error) < 4 * risk.standard_error

    def test_watched_figure_is_recorded_and_chooses_nothing(self, data, sup):
        figures = iter([0.1, 0.9, 0.5, 0.2])
        clf = quick(epochs=4).fit(data.X_train, sup, watch=lambda module: next(figures))
        assert clf.history_["watched"] == [0.1, 0.9, 0.5, 0.2]
        same = quick(epochs=4).fit(data.X_train, sup)
        np.testing.assert_array_equal(clf.decision_function(data.X_test), same.decision_function(data.X_test))

    def test_progress_is_told_of_every_epoch(self, data, sup):
        seen = []
        quick(epochs=3).fit(data.X_train, sup, progress=lambda *told: seen.append(told))
        assert [(name, number, of) for name, number, of, _ in seen] == [("joint, linear", i, 3) for i in (1, 2, 3)]

    def test_verbose_prints_a_line_an_epoch(self, data, sup, capsys):
        quick(epochs=2, verbose=1, selection="label-free").fit(data.X_train, sup)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2
        assert re.match(r"joint, linear: epoch 1/2  risk [\d.]+  label-free risk [\d.]+  [\d.]+ s", lines[0])

    def test_training_grows_longer_on_small_data(self, data, sup):
        clf = WeakClassifier("joint", prior=PRIOR, model="linear", random_state=0).fit(data.X_train, sup)
        steps = int(np.ceil((1500 + 600) / 256))
        assert clf.n_epochs_ == int(np.ceil(1500 / steps))


class TestInterruption:
    def test_ctrl_c_leaves_a_usable_classifier(self, data, sup):
        def progress(name, number, of, epoch):
            if number == 2:
                raise KeyboardInterrupt

        clf = quick()
        with pytest.raises(KeyboardInterrupt):
            clf.fit(data.X_train, sup, progress=progress)
        assert clf.interrupted_
        assert clf.n_epochs_ == len(clf.history_["risk"]) == 2
        assert set(clf.predict(data.X_test)) <= {-1, 1}

    def test_ctrl_c_keeps_the_best_epoch_so_far(self, data, sup):
        def progress(name, number, of, epoch):
            if number == 3:
                raise KeyboardInterrupt

        clf = quick(selection="label-free")
        with pytest.raises(KeyboardInterrupt):
            clf.fit(data.X_train, sup, progress=progress)
        assert clf.n_epochs_ == 3 - int(np.argmin(clf.history_["weak_risk"][::-1]))

    def test_ctrl_c_while_choosing_keeps_the_best_so_far(self, data, sup):
        def progress(name, number, of, epoch):
            if name.startswith("joint-likelihood"):
                raise KeyboardInterrupt

        clf = quick("auto", epochs=4).fit(data.X_train, sup)
        whole = clf.auto_
        with pytest.raises(KeyboardInterrupt):
            clf.fit(data.X_train, sup, progress=progress)
        assert clf.interrupted_
        assert clf.auto_[:2] == whole[:2]
        assert [row["method"] for row in clf.auto_] == ["joint", "joint-plain", "joint-likelihood"]
        assert clf.method_ == min(clf.auto_, key=lambda row: row["weak_risk"])["method"]
        part, _ = sup.split(0.2, np.random.default_rng(int(np.random.default_rng(0).integers(2**31 - 100))))
        if clf.method_ != "joint-likelihood":
            same = quick(clf.method_, epochs=4)._train(
                get_method(clf.method_), "linear", estimators.as_pool(data.X_train.astype(np.float32)),
                part, PRIOR, int(np.random.default_rng(0).integers(2**31 - 100)), "last", None,
            )  # fmt: skip
            assert same.model.state_dict().keys() == clf.module_.state_dict().keys()
            for name, value in same.model.state_dict().items():
                assert torch.equal(value, clf.module_.state_dict()[name])

    def test_ctrl_c_within_the_first_candidate_keeps_it(self, data, sup):
        def progress(*told):
            raise KeyboardInterrupt

        clf = quick("auto")
        with pytest.raises(KeyboardInterrupt):
            clf.fit(data.X_train, sup, progress=progress)
        assert (clf.method_, clf.n_epochs_, clf.interrupted_) == ("joint", 1, True)
        assert set(clf.predict(data.X_test)) <= {-1, 1}

    def test_ctrl_c_while_judging_candidates(self, data, sup, monkeypatch):
        calls = []

        def scoring(*given):
            calls.append(given)
            if len(calls) == stop:
                raise KeyboardInterrupt
            return real(*given)

        real = estimators.score_sources
        monkeypatch.setattr(estimators, "score_sources", scoring)
        clf, stop = quick("auto", epochs=1), 2
        with pytest.raises(KeyboardInterrupt):
            clf.fit(data.X_train, sup)
        assert (clf.method_, clf.interrupted_, len(clf.auto_)) == ("joint", True, 1)
        calls.clear()
        stop = 1
        with pytest.raises(KeyboardInterrupt):  # nothing new, and the former fit is not taken for the new one
            clf.fit(data.X_train, sup)
        assert not hasattr(clf, "interrupted_")
        with pytest.raises(NotFittedError):
            clf.predict(data.X_test)

    @pytest.mark.parametrize("method", ["joint", "usimul-exact-abs"])
    def test_untrained_weights_decide_no_names(self, data, sup, method, monkeypatch):
        def stop(*given):
            raise KeyboardInterrupt

        monkeypatch.setattr("usimul.training._run_epoch", stop)
        clf = WeakClassifier(method, prior=PRIOR, random_state=0)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(data.X_train, sup)
        assert (clf.orientation_.status, clf.orientation_.z, clf.n_epochs_) == ("unknown", None, 0)

    def test_a_plateau_decides_no_names(self, data, sup):
        with pytest.warns(DegenerateTrainingWarning):
            clf = quick(model=lambda: nn.Linear(2, 1), lr=1e-12, epochs=1, scaling="none").fit(1e-3 * data.X_train, sup)
        assert clf.orientation_.status == "unknown"


class TestAFitThatFails:
    def test_leaves_the_estimator_as_it_was(self, data, sup):
        clf = quick(epochs=1).fit(data.X_train, sup)
        before, state = clf.decision_function(data.X_test), dict(vars(clf))
        wide = np.hstack([data.X_train, data.X_train])
        for changes, X, y in (
            ({"lr": -1.0}, wide, sup),
            ({"method": "usimul", "loss": "square", "optimizer": "sgd", "lr": 1e30}, wide, sup),
            ({}, wide, np.arange(400) % 3),
        ):
            with pytest.raises((InputError, TrainingDivergedError)):
                clf.set_params(**changes).fit(X, y)
            clf.set_params(**{name: state[name] for name in changes})
            assert vars(clf) == state
        np.testing.assert_array_equal(clf.decision_function(data.X_test), before)

    def test_the_first_one_leaves_nothing(self, data, sup):
        clf = quick(lr=-1.0)
        with pytest.raises(InputError):
            clf.fit(data.X_train, sup)
        assert not [name for name in vars(clf) if name.endswith("_")]

    def test_nothing_of_a_former_fit_stays(self, data, sup):
        clf = quick("auto", epochs=1).fit(data.X_train, sup)
        assert clf.auto_
        assert not hasattr(clf.set_params(method="joint").fit(data.X_train, sup), "auto_")


class TestPlateau:
    def test_plateau_is_reported_after_restarts(self, data, sup):
        with pytest.warns(DegenerateTrainingWarning, match="still on its plateau after 2 restarts"):
            clf = quick(model=zero_linear, lr=1e-9, epochs=2).fit(data.X_train, sup)
        assert clf.n_restarts_ == 2
        assert len(clf.history_["risk"]) == 6  # two epochs, then four, then six


# --- which class is positive ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def even():
    return make_gaussians(400, 300, prior=0.5, distance=4.0, random_state=1)


@pytest.fixture(scope="module")
def even_sup(even):
    return sample_triplets(even.y_train, 1500, n_unlabeled=600, prior=0.5, random_state=1)


class TestOrientation:
    @pytest.mark.parametrize("method", [m.name for m in list_methods() if not m.defined_at_half])
    def test_methods_undefined_at_one_half_say_so(self, even, even_sup, method):
        record = get_method(method)
        sup = even_sup
        if record.supervision is not Triplets:
            ends = record.supervision.value_range
            answers = None if ends is None else np.resize(ends, even_sup.n_tuples)
            sup = record.supervision(
                even_sup.rows[:, : record.supervision.width],
                unlabeled=even_sup.unlabeled,
                values=answers,
                n_points=400,
            )
        with pytest.raises(InputError, match=r"`prior` must differ from 0.5.*Use method='joint'"):
            quick(method, prior=0.5).fit(even.X_train, sup)

    def test_unknown_at_one_half(self, even, even_sup):
        clf = quick(prior=0.5).fit(even.X_train, even_sup)
        assert clf.orientation_.status == "unknown"
        accuracy = clf.score(even.X_test, even.y_test)
        assert max(accuracy, 1 - accuracy) > 0.9

    @pytest.mark.parametrize("seed", range(4))
    def test_one_known_label_decides_at_one_half(self, even, even_sup, seed):
        # A point far from the boundary: one that is on the wrong side of it would decide wrongly.
        row = int(np.argmax(even.y_train * (even.X_train @ np.sign(even.X_train.T @ even.y_train))))
        known = even_sup.with_known_labels({row: int(even.y_train[row])})
        clf = quick(prior=0.5, random_state=seed).fit(even.X_train, known)
        assert clf.orientation_.status == "given"
        assert clf.score(even.X_test, even.y_test) > 0.9

    @pytest.mark.parametrize("method", ["joint", "joint-plain", "joint-likelihood"])
    def test_swapped_initial_weights_end_the_right_way_round(self, data, sup, method):
        """A module that begins as the swapped solution is turned: by `joint` when it begins to refine, else last."""
        module = nn.Linear(2, 1)
        with torch.no_grad():
            module.weight.fill_(-2.0)  # the positive class lies at larger values of both features
            module.bias.zero_()
        before = copy.deepcopy(module.state_dict())
        # No prior term and a tiny rate: nothing but the evidence can leave the swapped side.
        clf = quick(method, model=module, scaling="none", lr=1e-5, epochs=2, options={"prior_weight": 0.0})
        clf.fit(data.X_train, sup)
        assert clf.orientation_.flipped == (method != "joint")
        assert clf.orientation_.status == "evidence"
        assert clf.orientation_.z > 3
        assert clf.score(data.X_test, data.y_test) > 0.9
        assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())

    def test_orientation_holds_plain_numbers(self, fitted):
        """It is printed and written to JSON."""
        assert type(fitted.orientation_.flipped) is bool
        assert type(fitted.orientation_.z) is float

    @staticmethod
    def objective(prior, **changes):
        sup = Triplets([[0, 1, 2]], unlabeled=[3], n_points=4, **changes)
        return get_method("joint").objective(sup, prior)

    @staticmethod
    def scores(rng, prior, n=4000, swap=1.0, share=None):
        """Perfect scores, so the signs are labels drawn from the law that the issue defines."""
        labels = np.where(rng.random((3 * n, 3)) < prior, 1.0, -1.0)
        kept = labels[(labels[:, 0] == labels[:, 1]) | (labels[:, 0] == labels[:, 2])][:n]
        plain = np.where(rng.random((n, 1)) < (prior if share is None else share), 1.0, -1.0)
        return {"triplets": swap * 3 * kept, "unlabeled": swap * 3 * plain}

    @pytest.mark.parametrize("prior", [0.2, 0.4, 0.6, 0.8])
    @pytest.mark.parametrize("swap", [1.0, -1.0])
    def test_evidence(self, prior, swap):
        found = self.objective(prior).orient(self.scores(np.random.default_rng(0), prior, swap=swap))
        assert found.flipped == (swap < 0)
        assert found.status == "evidence" or abs(prior - 0.5) <= 0.1

    def test_contradicting_evidence_decides_nothing(self):
        """Few predicted positives, as the prior says, but anchors shifted towards them: something is wrong."""
        rng = np.random.default_rng(0)
        scores = self.scores(rng, 0.3)
        scores["triplets"][:, 1:] = np.where(rng.random((len(scores["triplets"]), 2)) < 0.2, 3.0, -3.0)
        scores["triplets"][:, 0] = np.where(rng.random(len(scores["triplets"])) < 0.4, 3.0, -3.0)
        scores["unlabeled"][:] = np.where(rng.random(scores["unlabeled"].shape) < 0.2, 3.0, -3.0)
        assert self.objective(0.3).orient(scores).status == "unknown"

    def test_constant_scores_decide_nothing_certain(self):
        scores = {"triplets": np.zeros((50, 3)), "unlabeled": np.zeros((50, 1))}
        found = self.objective(0.5).orient(scores)
        assert found.status == "unknown"
        assert self.objective(0.3).orient(scores).z is not None

    def test_known_points_outvote_the_evidence(self):
        known = {"known_rows": [0, 1], "known_labels": [1, -1]}
        scores = self.scores(np.random.default_rng(0), 0.3)
        agreeing = self.objective(0.3, **known).orient({**scores, "known": np.array([[2.0], [-2.0]])})
        assert (agreeing.status, agreeing.flipped) == ("given", False)
        against = self.objective(0.3, **known).orient({**scores, "known": np.array([[-2.0], [2.0]])})
        assert (against.status, against.flipped) == ("given", True)


# --- prior against acceptance rate ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def contradicted(sup):
    return replace(sup, n_asked=round(sup.n_tuples / acceptance_probability(0.05)))


class TestPriorCheck:
    def test_error(self, data, contradicted):
        with pytest.raises(InputError, match=r"`prior`=0.3 contradicts .*fits a prior of 0.05"):
            quick().fit(data.X_train, contradicted)

    def test_warn(self, data, contradicted):
        with pytest.warns(PriorMismatchWarning, match="`prior`=0.3 contradicts"):
            clf = quick(prior_check="warn", epochs=1).fit(data.X_train, contradicted)
        assert clf.prior_ == PRIOR

    def test_judging_warns(self, data, fitted, contradicted, monkeypatch):
        with pytest.warns(
            PriorMismatchWarning, match=r"`prior`=0.3 contradicts .* fits a prior of 0.05.*--prior"
        ) as caught:
            fitted.weak_risk(data.X_train, contradicted)
        assert caught[0].filename == __file__
        with pytest.warns(PriorMismatchWarning, match="`prior`=0.4 contradicts"):
            fitted.weak_risk(data.X_train, contradicted, prior=0.4)
        monkeypatch.setattr(fitted, "prior_check", "ignore")
        fitted.weak_risk(data.X_train, contradicted)

    def test_ignore(self, data, contradicted):
        quick(prior_check="ignore", epochs=1).fit(data.X_train, contradicted)

    def test_the_true_prior_passes(self, data, sup):
        assert sup.n_asked > sup.n_accepted
        quick(epochs=1).fit(data.X_train, sup)


# --- kinds of input -------------------------------------------------------------------------------------------------


class TestInputs:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
    def test_dtypes_that_hold_the_same_numbers_give_the_same_bits(self, data, sup, dtype):
        X, X_new = np.round(4 * data.X_train), np.round(4 * data.X_test)
        reference = quick(epochs=2).fit(X, sup).decision_function(X_new)
        clf = quick(epochs=2).fit(X.astype(dtype), sup)
        np.testing.assert_array_equal(clf.decision_function(X_new.astype(dtype)), reference)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_memory_mapped_points(self, data, sup, tmp_path, dtype):
        np.save(tmp_path / "X.npy", data.X_train.astype(dtype))
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        for how, rtol in ({"scaling": "none"}, 0.0), ({}, 1e-4):  # the scaling of a file is found in double precision
            clf = quick(epochs=2, **how).fit(mapped, sup)
            same = quick(epochs=2, **how).fit(data.X_train.astype(dtype), sup)
            found, expected = clf.decision_function(mapped), same.decision_function(data.X_train)
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)

    def test_fortran_order_and_strides(self, data, sup):
        reference = quick(epochs=2).fit(data.X_train, sup).decision_function(data.X_test)
        strided = np.repeat(data.X_train, 2, axis=1)[:, ::2]
        for X in (np.asfortranarray(data.X_train), strided):
            np.testing.assert_array_equal(quick(epochs=2).fit(X, sup).decision_function(data.X_test), reference)

    @pytest.mark.filterwarnings("ignore::usimul.validation.DegenerateTrainingWarning")
    @pytest.mark.parametrize("batch_size", [1, 2, 100_000])
    @pytest.mark.parametrize("world", ["definition1", "pair_plus_unlabeled"])
    def test_batches_of_one_tuple_and_of_everything(self, data, batch_size, world):
        drawn = sample_triplets(data.y_train, 60, n_unlabeled=60, prior=PRIOR, world=world, random_state=0)
        clf = quick(batch_size=batch_size, epochs=2, lr=0.02).fit(data.X_train, drawn)
        assert np.isfinite(clf.history_["risk"]).all()

    def test_own_module_is_copied(self, data, sup):
        module = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        before = copy.deepcopy(module.state_dict())
        clf = quick(model=module).fit(data.X_train, sup)
        assert clf.score(data.X_test, data.y_test) > 0.85
        for name, value in module.state_dict().items():
            assert torch.equal(value, before[name])

    def test_function_that_makes_a_module(self, data, sup):
        clf = quick(model=lambda: nn.Linear(2, 1)).fit(data.X_train, sup)
        assert clf.score(data.X_test, data.y_test) > 0.9
        first = clf.decision_function(data.X_test)
        again = quick(model=lambda: nn.Linear(2, 1)).fit(data.X_train, sup)
        np.testing.assert_array_equal(again.decision_function(data.X_test), first)  # made under our seed

    def test_convolutions_on_digits(self):
        digits = load_digits()
        X, y = digits.data[:600], np.where(digits.target[:600] % 2 == 0, 1, -1)
        sup = sample_triplets(y, 600, n_unlabeled=300, prior=0.4, random_state=0)
        clf = WeakClassifier(
            "joint", prior=0.4, model="cnn", image_shape=(1, 8, 8), epochs=10, batch_size=64, random_state=0
        )
        assert clf.fit(X, sup).score(X, y) > 0.85

    @pytest.mark.parametrize("scaling", ["feature", "global", "none", "auto"])
    def test_scaling(self, data, sup, scaling):
        clf = quick(scaling=scaling, epochs=1).fit(data.X_train, sup)
        n = data.X_train.shape[1]
        shift, deviation = {
            "feature": (data.X_train.mean(axis=0), data.X_train.std(axis=0, ddof=1)),
            "global": (np.full(n, data.X_train.mean()), np.full(n, data.X_train.std(ddof=1))),
            "none": (np.zeros(n), np.ones(n)),
        }["feature" if scaling == "auto" else scaling]
        np.testing.assert_allclose(clf.module_.shift.numpy(), shift, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(clf.module_.scale.numpy(), 1 / deviation, rtol=1e-4)

    def test_a_constant_feature_does_no_harm(self, data, sup):
        X = np.hstack([data.X_train, np.full((len(data.X_train), 1), 7.0)])
        X_new = np.hstack([data.X_test, np.full((len(data.X_test), 1), 7.5)])
        assert quick().fit(X, sup).score(X_new, data.y_test) > 0.9


# --- bad input: the argument, the value, the way out ---------------------------------------------------------------


class TestBadInput:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_features_that_are_no_numbers(self, data, sup, fitted, value):
        X = data.X_train.copy()
        X[7, 1] = value
        with pytest.raises(ValueError, match=r"contains NaN|contains infinity"):
            quick().fit(X, sup)
        with pytest.raises(ValueError, match=r"contains NaN|contains infinity"):
            fitted.predict(X)

    def test_a_pool_of_another_size(self, data, sup):
        with pytest.raises(InputError, match="made for a pool of 400 points, but X has 300 rows"):
            quick().fit(data.X_test, sup)

    def test_rows_outside_the_pool(self, data):
        with pytest.raises(InputError, match="points outside the pool of 400 rows"):
            quick().fit(data.X_train, Triplets([[0, 1, 400]]))

    def test_other_features_at_prediction(self, data, sup, fitted):
        with pytest.raises(ValueError, match="X has 3 features, but WeakClassifier is expecting 2 features"):
            fitted.predict(np.zeros((5, 3)))
        with pytest.raises(ValueError, match="X has 3 features"):
            fitted.weak_risk(np.zeros((400, 3)), sup)

    def test_one_row_as_a_vector(self, fitted):
        with pytest.raises(ValueError, match="Expected 2D array"):
            fitted.predict(np.zeros(2))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"method": "jiont"}, r"`method` must be one of: .*Got 'jiont'. Did you mean 'joint'"),
            ({"model": "mpl"}, r"`model` must be one of: .*Got 'mpl'. Did you mean 'mlp'"),
            ({"method": "usimul", "loss": "squared"}, r"`loss` must be one of: .*Did you mean 'square'\?"),
            ({"loss": "square"}, r"`loss` cannot be chosen for method 'joint'"),
            ({"options": {"prior_weigth": 1.0}}, r"`options of method 'joint'` must .*Did you mean 'prior_weight'"),
            ({"options": {"correction": "ab"}}, r"`correction` must be one of: .*Did you mean 'abs'"),
            ({"selection": "labelfree"}, r"`selection` must be one of: .*Did you mean 'label-free'"),
            ({"selection": "oracle"}, r"`selection` must be one of: last, label-free. Got 'oracle'"),
            ({"scaling": "globl"}, r"`scaling` must be one of: .*Did you mean 'global'"),
            ({"prior_check": "warning"}, r"`prior_check` must be one of: .*Did you mean 'warn'"),
            ({"optimizer": "adamm"}, r"`optimizer` must be one of: .*Did you mean 'adam"),
            ({"schedule": "onecycle"}, r"`schedule` must be one of: .*Did you mean 'one-cycle'"),
            ({"epochs": 0}, r"`epochs` must be at least 1. Got 0"),
            ({"batch_size": 0}, r"`batch_size` must be at least 1"),
            ({"lr": 0.0}, r"`lr` must lie in \(0, inf\). Got 0.0"),
            ({"lr": float("nan")}, r"`lr` must lie in .*Got nan"),
            ({"weight_decay": -1.0}, r"`weight_decay` must lie in"),
            ({"validation_fraction": 1.0}, r"`validation_fraction` must lie in \(0, 1\)"),
            ({"prior": 0.0}, r"`prior` must lie in \(0, 1\). Got 0.0"),
            ({"prior": 1.2}, r"`prior` must lie in \(0, 1\). Got 1.2"),
            ({"prior": None}, r"`prior`, the share of positives.*is required"),
            ({"random_state": -1}, r"`random_state` must be at least 0"),
            ({"model": "cnn"}, r"`image_shape` is required for model 'cnn'"),
            ({"image_shape": (1, 8, 8)}, r"`image_shape` must be \(channels, height, width\) with the product 2"),
        ],
        ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
    )
    def test_settings(self, data, sup, changes, message):
        clf = quick(**changes)
        with pytest.raises(InputError, match=message):
            clf.fit(data.X_train, sup)
        assert not hasattr(clf, "module_")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"prior": "0.3"}, "`prior` must be a number. Got '0.3' of type str"),
            ({"epochs": 2.5}, "`epochs` must be an integer. Got 2.5"),
            ({"method": 3}, "`method` must be one of"),
            ({"model": 3}, "`model` must be one of"),
        ],
    )
    def test_settings_of_the_wrong_type(self, data, sup, changes, message):
        with pytest.raises(InputTypeError, match=message):
            quick(**changes).fit(data.X_train, sup)

    def test_no_unlabeled_points_for_a_method_that_needs_them(self, data, sup):
        bare = replace(sup, unlabeled=None)
        with pytest.raises(
            InputError, match=r"method 'usimul' needs unlabeled points beside the tuples. Got none.*method='joint'"
        ):
            quick("usimul").fit(data.X_train, bare)
        pairs = SimilarPairs(sup.rows[:, :2], n_points=400)
        with pytest.raises(
            InputError, match=r"method 'su' needs unlabeled .*to the supervision\.$"
        ):  # nothing else fits
            quick("su").fit(data.X_train, pairs)
        assert quick().fit(data.X_train, bare).score(data.X_test, data.y_test) > 0.9  # joint does without

    def test_supervision_of_another_kind(self, data, sup):
        pairs = SimilarPairs(sup.rows[:, :2], n_points=400)
        with pytest.raises(InputTypeError, match=r"method 'joint' learns from Triplets. Got SimilarPairs"):
            quick().fit(data.X_train, pairs)

    def test_no_tuples(self, data):
        with pytest.raises(InputError, match="needs at least one tuple"):
            quick().fit(data.X_train, Triplets(np.empty((0, 3), dtype=int), unlabeled=[1, 2], n_points=400))

    def test_usimul_takes_triplet_methods_only(self, data):
        with pytest.raises(InputTypeError, match="Use WeakClassifier for the others"):
            USimULClassifier("supervised", prior=PRIOR).fit(data.X_train, data.y_train)

    def test_one_class(self, data):
        with pytest.raises(InputError, match=r"must hold exactly two classes. Got one class"):
            quick().fit(data.X_train, np.ones(400))

    def test_three_classes(self, data):
        with pytest.raises(InputError, match=r"must hold exactly two classes. Got 3 classes"):
            quick().fit(data.X_train, np.arange(400) % 3)

    def test_training_that_diverges(self, data, sup):
        with pytest.raises(TrainingDivergedError, match="Lower the learning rate"):
            quick("usimul", loss="square", lr=1e30, optimizer="sgd").fit(data.X_train, sup)

    def test_label_free_risk_of_labels_and_of_other_kinds(self, data, sup, fitted):
        labels = Labels(np.arange(400), values=data.y_train.astype(float), n_points=400)
        error = np.mean(fitted.predict(data.X_train) != data.y_train)
        assert fitted.weak_risk(data.X_train, labels).value == pytest.approx(error)
        with pytest.raises(InputTypeError, match=r"no .* risk is known for .*SimilarPairs"):
            fitted.weak_risk(data.X_train, SimilarPairs(sup.rows[:, :2]))
        with pytest.raises(InputError, match="`kind` must be one of"):
            fitted.weak_risk(data.X_train, sup, kind="second")

    def test_too_few_tuples_to_hold_some_out(self, data):
        with pytest.raises(InputError, match="leaves one side empty"):
            quick(selection="label-free").fit(data.X_train, Triplets([[0, 1, 2]], n_points=400))
        few = Triplets([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]], unlabeled=range(400), n_points=400)
        for changes in ({"selection": "label-free"}, {"method": "auto"}):
            with pytest.raises(InputError, match=r"too few held-out tuples.* 0.2 of 4 tuples is 1, and at least 2"):
                quick(**changes).fit(data.X_train, few, progress=self.no_training)

    @staticmethod
    def no_training(*told):
        raise AssertionError("training has begun")

    def test_what_cannot_judge_is_found_before_training(self, data, sup):
        release = replace(sup, world="release", n_asked=None, n_accepted=None)
        pairs = SimilarPairs(sup.rows[:, :2], unlabeled=sup.unlabeled, n_points=400)
        for method, drawn, message in (
            ("usimul", release, "no label-free risk exists for triplets of world 'release'"),
            ("su", pairs, "must differ from 0.5"),
        ):
            prior = PRIOR if method == "usimul" else 0.5
            with pytest.raises(InputError, match=message):
                quick(method, prior=prior, selection="label-free").fit(data.X_train, drawn, progress=self.no_training)

    @pytest.mark.parametrize("value", [7, -1, float("nan"), 0])
    @pytest.mark.parametrize("given", ["labels", "supervision"])
    def test_a_prior_that_is_not_needed_must_be_one(self, data, value, given):
        y = data.y_train if given == "labels" else sample_labels(data.y_train)
        with pytest.raises(InputError, match=r"`prior` must lie in \(0, 1\)"):
            quick("supervised", prior=value).fit(data.X_train, y)

    @pytest.mark.parametrize("value", ["0.4", True, [0.4], np.array([0.4])], ids=str)
    @pytest.mark.parametrize("method", ["supervised", "joint"])
    def test_a_prior_that_is_no_number(self, data, sup, value, method):
        y = sup if method == "joint" else sample_labels(data.y_train)
        with pytest.raises(InputTypeError, match=r"`prior` must be a number\. Got"):
            quick(method, prior=value).fit(data.X_train, y)

    @pytest.mark.parametrize("method", ["joint", "joint-likelihood", "usimul-exact", "usimul-exact-abs", "auto"])
    def test_the_world_release_fits_the_printed_methods_only(self, data, method):
        drawn = sample_triplets(data.y_train, 50, n_unlabeled=50, prior=0.4, world="release", random_state=0)
        with pytest.raises(
            InputError,
            match=r"of world 'definition1' or 'pair_plus_unlabeled'. Got world 'release'.*"
            r"or use method='usimul' or method='usimul-abs' or method='usimul-relu'",
        ):
            quick(method, prior=0.4).fit(data.X_train, drawn)

    @pytest.mark.parametrize("method", ["usimul", "usimul-abs", "usimul-relu"])
    def test_the_printed_methods_train_in_their_world(self, data, method):
        drawn = sample_triplets(data.y_train, 50, n_unlabeled=50, prior=0.4, world="release", random_state=0)
        assert quick(method, prior=0.4, epochs=1).fit(data.X_train, drawn).world_ == "release"

    @pytest.mark.parametrize(
        ("device", "why"),
        [("foo", "Expected one of cpu"), ("meta", "meta tensors"), ("cpu:x", "Invalid device string: 'cpu:x'")],
    )
    def test_devices_that_cannot_be_used(self, data, sup, device, why):
        with pytest.raises(InputError, match=rf"`device` '{device}' cannot be used here: .*{why}.*\. Use 'cpu'"):
            quick(device=device).fit(data.X_train, sup)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device here")
    def test_no_accelerator(self, data, sup):
        with pytest.raises(InputError, match=r"`device` 'cuda' cannot be used here: [^.]*\. Use 'cpu'"):
            quick(device="cuda").fit(data.X_train, sup)

    @pytest.mark.parametrize(("width", "kind"), [(3, "Triplets"), (2, "SimilarPairs")])
    def test_rows_without_a_supervision_object(self, data, sup, fitted, width, kind):
        for rows in (sup.rows[:, :width], sup.rows[:400, :width].tolist()):
            with pytest.raises(InputError, match=rf"`y` must be a supervision object.*, {width}\).*wrap it.*{kind}"):
                quick().fit(data.X_train, rows)
            with pytest.raises(InputTypeError, match=r"`supervision` must be a supervision object. Got (ndarray|list)"):
                fitted.weak_risk(data.X_train, rows)

    @pytest.mark.parametrize("options", [[1], "lam=1", 3])
    def test_options_that_are_no_mapping(self, data, sup, options):
        with pytest.raises(InputTypeError, match=r"`options` must be a mapping .*method 'usimul-exact': lam"):
            quick("usimul-exact", options=options).fit(data.X_train, sup)

    def test_models_that_bring_their_own_scaling_or_precision(self, data, sup):
        with pytest.raises(InputError, match=r"`model` must take rows .*convert it with model.float\(\)"):
            quick(model=nn.Linear(2, 1).double()).fit(data.X_train, sup)
        module = nn.Linear(2, 1)
        wrapped, bare = (quick(epochs=1, model=model).fit(data.X_train, sup) for model in (ScoreNet(module), module))
        assert np.array_equal(wrapped.decision_function(data.X_test), bare.decision_function(data.X_test))

    def test_confidences_and_a_model_to_choose(self, data):
        clf = quick("confdiff-abs", model="auto", epochs=1, prior=None).fit(data.X_train[:80], data.y_train[:80])
        assert clf.model_ in ("mlp", "mlp-dropout")
        assert {row["method"] for row in clf.auto_} == {"confdiff-abs"}

    @pytest.mark.parametrize("model", ["mlp-bn", "mlp-shared"])
    def test_steps_of_one_point(self, data, model):
        labels = sample_labels(data.y_train, 5, random_state=0)
        with pytest.raises(InputError, match=r"`batch_size`=1 leaves steps of one point.*BatchNorm"):
            quick("supervised", model=model, batch_size=1).fit(data.X_train, labels, progress=self.no_training)
        assert quick("supervised", model=model, batch_size=2, epochs=1).fit(
            data.X_train, sample_labels(data.y_train, 4, random_state=0)
        )
