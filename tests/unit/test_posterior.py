"""Posteriors: from an auxiliary classifier, under another prior, out of fold, with noise."""

import numpy as np
import pytest
import torch
from torch import nn

import usimul as us
from usimul.datasets import make_gaussians
from usimul.posterior import FOLDS, RECIPE, add_noise, fit_posterior, rescale
from usimul.sampling import sample_confidence_difference
from usimul.validation import InputError, InputTypeError


@pytest.fixture(scope="module")
def data():
    return make_gaussians(2000, 10, prior=0.3, random_state=0)


class TestFit:
    @pytest.mark.parametrize("cross_fit", [False, True])
    @pytest.mark.parametrize(("model", "gap"), [("linear", 0.02), ("mlp", 0.05)])
    def test_near_the_exact_posterior(self, data, model, gap, cross_fit):
        n = 2000 if model == "linear" else 1000
        eta = fit_posterior(data.X_train[:n], data.y_train[:n], model=model, cross_fit=cross_fit, random_state=0)
        assert eta.shape == (n,)
        assert eta.dtype == np.float64
        assert ((eta >= 0) & (eta <= 1)).all()
        assert np.abs(eta - data.posterior_train[:n]).mean() < gap
        assert eta.mean() == pytest.approx(np.mean(data.y_train[:n] > 0), abs=gap)

    @pytest.mark.parametrize("cross_fit", [False, True])
    def test_prior_shift_is_undone(self, data, cross_fit):
        """Trained at one prior, confidences for another must match the exact ones there."""
        eta = fit_posterior(data.X_train, data.y_train, prior=0.6, model="linear", cross_fit=cross_fit, random_state=0)
        odds = data.posterior_train / (1 - data.posterior_train) * (0.6 / 0.4) / (0.3 / 0.7)
        assert np.abs(eta - odds / (1 + odds)).mean() < 0.03
        # The identity that the confidence methods rest on: mean eta under the drawn prior is that prior.
        weights = np.where(data.y_train > 0, 0.6 / np.mean(data.y_train > 0), 0.4 / np.mean(data.y_train < 0))
        assert np.average(eta, weights=weights) == pytest.approx(0.6, abs=0.03)

    def test_without_shift_the_prior_of_the_labels_changes_nothing(self, data):
        share = float(np.mean(data.y_train > 0))
        how = {"model": "linear", "epochs": 2, "random_state": 0}
        plain = fit_posterior(data.X_train, data.y_train, **how)
        assert np.allclose(fit_posterior(data.X_train, data.y_train, prior=share, **how), plain, atol=1e-12)

    def test_a_label_does_not_reach_its_own_posterior_when_cross_fitted(self):
        """Labels without any relation to X: a network that may see them learns them by heart."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 30)).astype(np.float32), np.repeat([1, -1], 50)

        def agreement(**how):
            eta = fit_posterior(X, y, model=wide_net, epochs=60, random_state=0, **how)
            return eta[y > 0].mean() - eta[y < 0].mean()

        assert agreement() > 0.5
        assert abs(agreement(cross_fit=True)) < 0.3

    def test_noise_is_added_at_the_end(self, data):
        X, y = data.X_train[:500], data.y_train[:500]
        plain = fit_posterior(X, y, model="linear", epochs=2, random_state=0)
        noisy = fit_posterior(X, y, model="linear", epochs=2, noise=0.1, random_state=0)
        inside = (noisy > 0) & (noisy < 1)
        assert (noisy - plain)[inside].std() == pytest.approx(0.1, abs=0.02)
        assert ((noisy >= 0) & (noisy <= 1)).all()

    @pytest.mark.parametrize("cross_fit", [False, True])
    def test_same_seed_same_bits(self, data, cross_fit):
        X, y = data.X_train[:200], data.y_train[:200]
        how = {"model": "linear", "epochs": 1, "noise": 0.1, "cross_fit": cross_fit}
        first, again, other = (fit_posterior(X, y, random_state=seed, **how) for seed in (3, 3, 4))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_the_callers_random_state_and_data_stay_as_they_were(self, data):
        X, y = data.X_train[:100].copy(), data.y_train[:100].copy()
        torch.manual_seed(0)
        before = torch.random.get_rng_state()
        fit_posterior(X, y, model="linear", epochs=1, random_state=0)
        assert torch.equal(torch.random.get_rng_state(), before)
        assert np.array_equal(X, data.X_train[:100])
        assert np.array_equal(y, data.y_train[:100])

    def test_images_and_tiny_data(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(12, 64)), np.repeat([1, -1], 6)
        eta = fit_posterior(X, y, model="cnn", image_shape=(1, 8, 8), epochs=1, random_state=0)
        assert eta.shape == (12,)
        assert fit_posterior(X[[0, 11]], y[[0, 11]], model="linear", random_state=0).shape == (2,)

    def test_recipe_is_that_of_the_release(self):
        assert (RECIPE.epochs, RECIPE.batch_size, RECIPE.optimizer) == (10, 256, "adam")
        assert (RECIPE.lr, RECIPE.weight_decay) == (1e-3, 1e-5)

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"y": [1, -1, 1]}, InputError, "one label for each of 20 rows"),
            ({"y": [0, 1] * 10}, InputError, r"both labels \+1 and -1"),
            ({"y": [1] * 20}, InputError, "both labels"),
            ({"X": np.full((20, 2), np.nan)}, ValueError, "X contains NaN"),
            ({"prior": 1.0}, InputError, "`prior` must lie in"),
            ({"epochs": 0}, InputError, "`epochs` must be at least 1"),
            ({"noise": -0.1}, InputError, "`noise` must lie in"),
            ({"model": "ml"}, InputError, "Did you mean 'mlp'"),
            ({"y": [1] * 3 + [-1] * 17, "cross_fit": True}, InputError, f"at least {FOLDS} labels of each class"),
        ],
    )
    def test_bad_input(self, change, error, message):
        given = {"X": np.random.default_rng(0).normal(size=(20, 2)), "y": [1, -1] * 10, "model": "linear", **change}
        with pytest.raises(error, match=message):
            fit_posterior(given.pop("X"), given.pop("y"), epochs=given.pop("epochs", 1), **given)


def wide_net():
    return nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 1))


def test_confidences_from_a_model_teach_a_classifier(data):
    eta = fit_posterior(data.X_train, data.y_train, prior=0.4, model="linear", cross_fit=True, random_state=0)
    sup = sample_confidence_difference(data.y_train, 2000, posterior=eta, prior=0.4, random_state=0)
    clf = us.WeakClassifier("confdiff-abs", prior=0.4, model="linear", lr=0.03, random_state=0)
    test = make_gaussians(10, 4000, prior=0.4, random_state=1)
    assert clf.fit(data.X_train, sup).score(test.X_test, test.y_test) > test.bayes_accuracy - 0.02


class TestRescale:
    def test_against_bayes_rule(self):
        rng = np.random.default_rng(0)
        positive, negative = rng.random(50), rng.random(50)  # class densities
        for p0, p in ((0.2, 0.7), (0.5, 0.1), (0.9, 0.4)):
            before, after = (s * positive / (s * positive + (1 - s) * negative) for s in (p0, p))
            assert np.allclose(rescale(before, p0, p), after, atol=1e-12)
            assert np.allclose(rescale(rescale(before, p0, p), p, p0), before, atol=1e-12)

    def test_certain_points_stay_certain(self):
        assert np.array_equal(rescale([0.0, 1.0], 0.3, 0.9), [0.0, 1.0])

    def test_bad_input(self):
        with pytest.raises(InputError, match=r"`eta` must lie in \[0, 1\] and be finite. Got 1.5 \(1 such\)"):
            rescale([0.5, 1.5], 0.5, 0.5)
        with pytest.raises(InputError, match="Got nan"):
            rescale([np.nan], 0.5, 0.5)
        with pytest.raises(InputError, match="`from_prior`"):
            rescale([0.5], 0.0, 0.5)
        with pytest.raises(InputTypeError, match="`to_prior`"):
            rescale([0.5], 0.5, None)


class TestNoise:
    def test_scale_range_and_seed(self):
        eta = np.full(20_000, 0.5)
        noisy = add_noise(eta, 0.1, 0)
        assert noisy.mean() == pytest.approx(0.5, abs=0.003)
        assert noisy.std() == pytest.approx(0.1, abs=0.003)
        assert np.array_equal(noisy, add_noise(eta, 0.1, 0))
        assert np.array_equal(eta, np.full(20_000, 0.5))
        wild = add_noise(eta, 5.0, 0)
        assert (wild.min(), wild.max()) == (0.0, 1.0)

    def test_bad_input(self):
        with pytest.raises(InputError, match="`scale` must lie in"):
            add_noise([0.5], -1.0)
        with pytest.raises(InputError, match="`eta`"):
            add_noise([-0.1], 1.0)
