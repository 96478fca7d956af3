"""Search without labels: what judges, what is chosen, and what survives an interruption."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from torch import nn

from usimul import WeakClassifier, make_gaussians, sample_triplets
from usimul.splits import PoolKFold, inside, pool_split
from usimul.tuning import candidates, choose, cross_validate_weak, optuna_objective, own_risk, tune
from usimul.validation import (
    DegenerateTrainingWarning,
    FewTuplesWarning,
    FileFormatError,
    InputError,
    InputTypeError,
)

PRIOR = 0.3


@pytest.fixture(scope="module")
def data():
    return make_gaussians(3000, 500, prior=PRIOR, random_state=0)


@pytest.fixture(scope="module")
def sup(data):
    return sample_triplets(data.y_train, 400, n_unlabeled=400, prior=PRIOR, random_state=0)


def quick(method="joint-likelihood", **changes):
    given = {"prior": PRIOR, "model": "linear", "epochs": 6, "lr": 0.05, "batch_size": 64, "random_state": 0, **changes}
    return WeakClassifier(method, **given)


class Blind(nn.Linear):
    """Gives every point the same score."""

    def forward(self, X):
        return super().forward(0.0 * X)


ROWS = (
    {"value": 0.13, "standard_error": 0.01},
    {"value": 0.11, "standard_error": 0.01},
    {"value": 0.10, "standard_error": 0.02},
    {"value": 0.01, "standard_error": 0.01, "degenerate": "all points negative"},
    {"value": None, "standard_error": None, "error": "diverged"},
)
RATES = {"lr": [0.01, 0.03, 0.05]}


class TestChoose:
    def test_rules(self):
        assert choose(ROWS, "least") == 2
        assert choose(ROWS, "one-se") == 1  # 0.10 + 0.02 reaches 0.11 and not 0.13
        assert choose(ROWS[3:]) is None
        with pytest.raises(InputError, match="`rule` must be one of"):
            choose(ROWS, "best")

    def test_equal_values_take_the_first(self):
        assert choose([{"value": 0.1, "standard_error": 0.0}] * 3) == 0


class TestCandidates:
    def test_the_order_is_that_of_the_grid(self):
        found = candidates({"b": [2, 1], "a": np.array([0.5, 0.1])})
        assert found == [{"b": 2, "a": 0.5}, {"b": 2, "a": 0.1}, {"b": 1, "a": 0.5}, {"b": 1, "a": 0.1}]
        assert all(type(row["a"]) is float for row in found)

    def test_draws(self):
        grid = {"a": list(range(10)), "b": list(range(10))}
        found = candidates(grid, 20, random_state=0)
        assert len({(row["a"], row["b"]) for row in found}) == 20
        assert found == sorted(found, key=lambda row: (row["a"], row["b"]))
        assert candidates(grid, 20, random_state=0) == found
        assert len(candidates(grid, 500)) == 100

    def test_distributions(self):
        from scipy.stats import loguniform

        found = candidates({"lr": loguniform(1e-4, 1e-2), "model": ["mlp"]}, 5, random_state=0)
        assert len({row["lr"] for row in found}) == 5
        assert all(1e-4 <= row["lr"] <= 1e-2 and row["model"] == "mlp" for row in found)
        with pytest.raises(InputError, match="Pass n_draws"):
            candidates({"lr": loguniform(1e-4, 1e-2)})

    @pytest.mark.parametrize("grid", [{}, [], "lr", {"lr": 0.1}, {"lr": "mlp"}, {"lr": []}])
    def test_what_is_no_grid(self, grid):
        with pytest.raises(InputTypeError, match="`grid` must"):
            candidates(grid)


class TestCrossValidation:
    def test_it_is_what_one_would_do_by_hand(self, data, sup):
        found = cross_validate_weak(quick(), data.X_train, sup, cv=3, random_state=1)
        by_hand = []
        for train, test in PoolKFold(3, random_state=1).split(None, sup):
            clf = quick().fit(data.X_train, inside(sup, train))
            by_hand.append(clf.weak_risk(data.X_train, inside(sup, test)))
        assert [fold["value"] for fold in found.folds] == [risk.value for risk in by_hand]
        assert found.value == pytest.approx(np.mean([risk.value for risk in by_hand]))
        # The variance of a mean of three independent numbers.
        assert found.standard_error**2 == pytest.approx(sum(risk.standard_error**2 for risk in by_hand) / 9)

    def test_other_ways_to_say_cv(self, data, sup):
        once = cross_validate_weak(quick(), data.X_train, sup, cv=0.25, random_state=0)
        split = pool_split(sup, 0.25, random_state=0)
        assert [fold["n_tuples"] for fold in once.folds] == [split.n_test]
        same = cross_validate_weak(quick(), data.X_train, sup, cv=PoolKFold(3, random_state=1))
        assert same.value == cross_validate_weak(quick(), data.X_train, sup, cv=3, random_state=1).value
        for bad in ("5", True, None):
            with pytest.raises(InputTypeError, match="`cv` must be"):
                cross_validate_weak(quick(), data.X_train, sup, cv=bad)

    def test_dense_tuples_cannot_judge(self):
        few = make_gaussians(40, 10, prior=PRIOR, random_state=0)
        dense = sample_triplets(few.y_train, 400, n_unlabeled=40, prior=PRIOR, random_state=0)
        with (
            pytest.raises(InputError, match=r"few lie wholly on one side"),
        ):
            cross_validate_weak(quick(), few.X_train, dense, cv=10)

    def test_few_tuples_are_told(self, data, sup):
        with pytest.warns(FewTuplesWarning, match=r"judged by \d+ tuples, which say little"):
            cross_validate_weak(quick(epochs=1), data.X_train, sup, cv=0.05)


class TestOwnRisk:
    def test_of_a_pointwise_method_it_is_the_formula(self, data, sup):
        """Audit, 5 (c), with the logistic loss, in NumPy; q = 1 - p, D = p - q, c = Z / D."""
        clf = quick("usimul-exact-abs", loss="logistic").fit(data.X_train, sup)
        f = clf.decision_function(data.X_train)
        plus, minus = np.logaddexp(0.0, -f), np.logaddexp(0.0, f)
        p, q = PRIOR, 1.0 - PRIOR
        c = (1.0 - p * q) / (p - q)
        h = (p - c) * plus + (q + c) * minus
        lam = 800 / 1200  # companions among all points that follow P
        anchors, companions = sup.rows[:, 0], sup.rows[:, 1:]
        expected = c * (plus - minus)[anchors].mean() + lam * h[companions].mean() + (1 - lam) * h[sup.unlabeled].mean()
        found = own_risk(clf, data.X_train, sup)
        assert found.value == pytest.approx(expected, rel=1e-4)
        assert 0.0 < found.standard_error < 1.0

    def test_of_the_joint_likelihood_it_is_the_formula(self, data, sup):
        """Audit, 6 (d): -mean log g + log Z_f + 2 (mean h - p)^2, the mean over companions and unlabeled points."""
        clf = quick().fit(data.X_train, sup)
        h = 1.0 / (1.0 + np.exp(-clf.decision_function(data.X_train)))
        x, first, second = h[sup.rows].T
        g = 1.0 - x * (1 - first) * (1 - second) - (1 - x) * first * second
        mean = np.concatenate([first, second, h[sup.unlabeled]]).mean()
        expected = -np.log(g).mean() + np.log(1 - mean * (1 - mean)) + 2 * (mean - PRIOR) ** 2
        assert own_risk(clf, data.X_train, sup).value == pytest.approx(expected, rel=1e-4)

    def test_wrong_answers_are_in_the_formula(self, data):
        """Of `usimul-exact-abs` c = Z / D becomes Z / (kappa D), kappa = 1 - r / (1 - Z) (`usimul.mixture`)."""
        noisy = sample_triplets(data.y_train, 400, n_unlabeled=400, prior=PRIOR, wrong_yes=0.1, random_state=0)
        clf = quick("usimul-exact-abs", loss="logistic", wrong_yes=0.1).fit(data.X_train, noisy)
        f = clf.decision_function(data.X_train)
        plus, minus = np.logaddexp(0.0, -f), np.logaddexp(0.0, f)
        p, q = PRIOR, 1.0 - PRIOR
        c = (1.0 - p * q) / (1.0 - 0.1 / (p * q)) / (p - q)
        h = (p - c) * plus + (q + c) * minus
        anchors, companions = noisy.rows[:, 0], noisy.rows[:, 1:]
        expected = c * (plus - minus)[anchors].mean() + 2 / 3 * h[companions].mean() + 1 / 3 * h[noisy.unlabeled].mean()
        assert own_risk(clf, data.X_train, noisy).value == pytest.approx(expected, rel=1e-4)

    def test_it_does_not_compare_methods(self, data, sup):
        with pytest.raises(InputError, match="mean different things"):
            tune(quick(), data.X_train, sup, {"method": ["joint", "usimul-exact"]}, criterion="own")
        with pytest.raises(InputError, match="wrong_yes mean different things"):
            tune(quick(), data.X_train, sup, {"wrong_yes": [0.0, 0.1]}, criterion="own")
        found = tune(quick(), data.X_train, sup, {"lr": [1e-7, 0.05]}, criterion="own", refit=False)
        assert found.settings == {"lr": 0.05}


class TestTune:
    def test_it_finds_the_rate_that_learns_and_refits(self, data, sup):
        told = []
        found = tune(
            quick(), data.X_train, sup, {"lr": [1e-7, 0.05]}, random_state=3, progress=lambda *n: told.append(n)
        )
        assert found.settings == {"lr": 0.05}
        assert told == [(1, 2), (2, 2)]
        by_hand = cross_validate_weak(quick(), data.X_train, sup, cv=0.25, random_state=3)
        assert found.rows[1]["value"] == by_hand.value
        same = quick().fit(data.X_train, sup)
        np.testing.assert_array_equal(
            found.estimator.decision_function(data.X_test), same.decision_function(data.X_test)
        )
        assert found.table()[found.chosen + 1].startswith("* lr=0.05")
        assert all(len(line) <= 100 for line in found.table())

    def test_degenerate_candidates_are_never_chosen(self, data, sup):
        found = tune(quick(), data.X_train, sup, {"model": [Blind(2, 1), "linear"]}, refit=False)
        assert found.settings == {"model": "linear"}
        assert "carries no information" in found.rows[0]["degenerate"]
        assert found.table()[1].endswith("degenerate")
        with pytest.warns(DegenerateTrainingWarning, match="no candidate can be chosen: all scores are the same"):
            none = tune(quick(model=Blind(2, 1), epochs=1), data.X_train, sup, [{}])
        assert (none.chosen, none.estimator) == (None, None)
        with pytest.raises(InputError, match="no candidate could be chosen"):
            _ = none.settings

    def test_a_candidate_that_diverges_costs_no_other(self, data, sup):
        settings = [{"lr": 1e30, "optimizer": "sgd", "loss": "square", "epochs": 2}, {"epochs": 2}]
        found = tune(quick("usimul-exact"), data.X_train, sup, settings, refit=False)
        assert "Lower the learning rate" in found.rows[0]["error"]
        assert found.chosen in (1, None)
        assert found.table()[1].endswith("failed")

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"learning_rate": [1]}, "'learning_rate' is no parameter of WeakClassifier"),
            ({"epoch": [1]}, r"'epoch' is no parameter.*'epochs'"),
            ({"method": ["joint", "jiont"]}, r"candidate method=jiont: .*joint"),
            ({"lr": [0.1, -1]}, r"candidate lr=-1: `lr`"),
            ({"model": ["mpl"]}, r"candidate model=mpl: .*mlp"),
            ({"epochs": [0]}, "candidate epochs=0: `epochs`"),
            ({"prior": [0.3, 0.9, 1.5]}, "`prior`"),
            ({"method": ["sconf-abs"]}, "candidate method=sconf-abs"),
            ({"wrong_yes": [0.0, 0.6]}, r"candidate wrong_yes=0.6: `wrong_yes` must be less than 0.21"),
            ({"wrong_yes": [0.0, 2]}, "candidate wrong_yes=2: `wrong_yes`"),
            ({"method": ["usimul"], "wrong_yes": [0.1]}, "has no correction for wrong yes answers"),
            ({"options": [{"wrong_yes": 0.1}]}, "is no option of a method"),
            ({"selection": ["last", "best"]}, "candidate selection=best: `selection`"),
        ],
    )
    def test_all_candidates_are_checked_before_any_training(self, data, sup, settings, words, monkeypatch):
        monkeypatch.setattr(WeakClassifier, "fit", lambda *args, **kwargs: pytest.fail("training has begun"))
        with pytest.raises((InputError, InputTypeError), match=words):
            tune(quick(), data.X_train, sup, settings)

    def test_what_fits_the_stated_share_of_wrong_answers_is_taken(self, data):
        """Who says yes too often contradicts the prior, unless so many answers are stated to be wrong."""
        noisy = sample_triplets(data.y_train, 2000, n_unlabeled=400, prior=PRIOR, wrong_yes=0.08, random_state=0)
        with pytest.raises(InputError, match="contradicts the supervision"):
            tune(quick(), data.X_train, noisy, {"lr": [0.05]}, refit=False)
        found = tune(quick(wrong_yes=0.08), data.X_train, noisy, {"lr": [0.05]}, refit=False)
        assert len(found.rows) == 1

    def test_labels_and_other_estimators(self, data, sup):
        with pytest.raises(InputTypeError, match="scikit-learn's own searches"):
            tune(quick(), data.X_train, data.y_train, {"lr": [0.1]})
        with pytest.raises(InputTypeError, match="`estimator` must be a classifier of this library"):
            tune(object(), data.X_train, sup, {"lr": [0.1]})
        with pytest.raises(InputTypeError, match="each candidate must map"):
            tune(quick(), data.X_train, sup, ["lr"])


class TestRowsInAFile:
    def test_an_interrupted_search_goes_on(self, data, sup, tmp_path, monkeypatch):
        def stop(done, total):
            if done == 2:
                raise KeyboardInterrupt

        clf = quick(epochs=2)
        first = tune(clf, data.X_train, sup, RATES, path=tmp_path / "rows.jsonl", progress=stop)
        assert (len(first.rows), first.interrupted, first.estimator) == (1, True, None)
        assert first.chosen == 0
        with (tmp_path / "rows.jsonl").open("a") as handle:
            handle.write('{"key": "cut of')  # a crash while a line is written
        told = []
        whole = tune(
            clf,
            data.X_train,
            sup,
            RATES,
            path=tmp_path / "rows.jsonl",
            refit=False,
            progress=lambda *n: told.append(n),
        )
        assert told == [(1, 2), (2, 2)]
        fresh = tune(clf, data.X_train, sup, RATES, refit=False)
        assert [row["value"] for row in whole.rows] == [row["value"] for row in fresh.rows]
        assert whole.chosen == fresh.chosen
        lines = (tmp_path / "rows.jsonl").read_text().splitlines()
        assert [json.loads(line)["settings"] for line in lines] == [{"lr": rate} for rate in RATES["lr"]]
        again = tune(clf, data.X_train, sup, RATES, path=tmp_path / "rows.jsonl", refit=False)
        assert [row["value"] for row in again.rows] == [row["value"] for row in fresh.rows]

    def test_a_row_that_lacks_only_its_end_is_done_again_and_not_twice_in_the_file(self, data, sup, tmp_path):
        path = tmp_path / "rows.jsonl"
        clf = quick(epochs=1)
        tune(clf, data.X_train, sup, RATES, path=path, refit=False)
        keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
        path.write_bytes(path.read_bytes()[:-1])
        tune(clf, data.X_train, sup, RATES, path=path, refit=False)
        assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == keys

    def test_rows_of_other_data_folds_or_settings_are_not_used(self, data, sup, tmp_path):
        told = []
        path = tmp_path / "rows.jsonl"

        def search(clf, X, random_state=0):
            told.clear()
            tune(
                clf,
                X,
                sup,
                {"lr": [0.05]},
                path=path,
                refit=False,
                random_state=random_state,
                progress=lambda *n: told.append(n),
            )
            return len(told)

        clf = quick(epochs=1)
        assert [search(clf, data.X_train), search(clf, data.X_train)] == [1, 0]
        assert search(clf, data.X_train + 1.0) == 1
        assert search(clf, data.X_train, random_state=1) == 1
        assert search(clone(clf).set_params(batch_size=32), data.X_train) == 1
        assert len(path.read_text().splitlines()) == 4
        assert all(json.loads(line)["settings"] == {"lr": 0.05} for line in path.read_text().splitlines())

    def test_a_file_of_something_else_is_refused(self, data, sup, tmp_path):
        path = tmp_path / "rows.jsonl"
        path.write_text('{"a": 1}\n{"b": 2}\n')
        with pytest.raises(FileFormatError, match="line 1 is no row"):
            tune(quick(), data.X_train, sup, RATES, path=path)
        assert path.read_text() == '{"a": 1}\n{"b": 2}\n'
        path.write_text("a note without an end of the line")
        with pytest.raises(FileFormatError, match="line 1 is no row"):
            tune(quick(), data.X_train, sup, RATES, path=path)
        assert path.read_text() == "a note without an end of the line"


def test_optuna_minimises_the_same_risk(data, sup):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def space(trial):
        if trial.suggest_categorical("blind", [True, False]):
            return {"model": Blind(2, 1), "epochs": 1}
        return {"lr": trial.suggest_categorical("lr", [1e-7, 0.05])}

    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.RandomSampler(seed=0))
    for fixed in ({"blind": True}, {"blind": False, "lr": 1e-7}, {"blind": False, "lr": 0.05}):
        study.enqueue_trial(fixed)
    study.optimize(optuna_objective(quick(), data.X_train, sup, space), n_trials=3)
    assert [trial.state.name for trial in study.trials] == ["PRUNED", *(["COMPLETE"] * 2)] or (
        study.trials[1].state.name == "PRUNED"  # what did not learn may well be called degenerate
    )
    assert study.best_params == {"blind": False, "lr": 0.05}
    grid = tune(quick(), data.X_train, sup, {"lr": [0.05]}, refit=False)
    assert study.best_value == grid.rows[0]["value"]
    assert study.best_trial.user_attrs["standard_error"] == grid.rows[0]["standard_error"]
    assert "carries no information" in study.trials[0].user_attrs["degenerate"]
