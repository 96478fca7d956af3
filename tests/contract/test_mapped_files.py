"""A file of points gives what the same points in memory give."""

import numpy as np
import pytest

from usimul.datasets import make_gaussians
from usimul.estimators import WeakClassifier
from usimul.posterior import fit_posterior
from usimul.sampling import sample_triplets
from usimul.validation import InputError

PRIOR = 0.3
SETTINGS = {"prior": PRIOR, "epochs": 8, "batch_size": 64, "model": "linear", "lr": 0.05, "random_state": 0}
MLP = {**SETTINGS, "epochs": 3, "model": "mlp", "lr": 1e-3}


@pytest.fixture(scope="module")
def data():
    return make_gaussians(1500, 500, prior=PRIOR, random_state=0)


@pytest.fixture(scope="module")
def sup(data):
    return sample_triplets(data.y_train, 1000, n_unlabeled=500, prior=PRIOR, random_state=0)


def as_dtype(X, dtype):
    """Whole numbers of 0 to 255 lose little of two Gaussian classes."""
    return np.clip(128 + 20 * X, 0, 255).astype(dtype) if np.dtype(dtype).kind in "iu" else X.astype(dtype)


@pytest.fixture
def save(tmp_path):
    def saved(X, mode="r"):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, X)
        return np.load(path, mmap_mode=mode)

    return saved


def alike(left, right):
    """Scores differ by rounding alone: of the scaling, which steps of training make a little larger."""
    assert np.corrcoef(left, right)[0, 1] > 0.99999
    np.testing.assert_allclose(left, right, atol=0.01 * np.abs(left).max())
    assert np.mean((left >= 0) == (right >= 0)) > 0.995


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int32"])
@pytest.mark.parametrize("settings", [SETTINGS, MLP], ids=["linear", "mlp"])
def test_fit_predict_and_judge(data, sup, save, dtype, settings):
    X, X_test = as_dtype(data.X_train, dtype), as_dtype(data.X_test, dtype)
    memory, mapped = (WeakClassifier("joint", **settings).fit(given, sup) for given in (X, save(X)))
    alike(memory.decision_function(X_test), mapped.decision_function(save(X_test)))
    # The same weights on the same rows: nothing but where they lie.
    np.testing.assert_allclose(
        memory.decision_function(X_test), memory.decision_function(save(X_test)), rtol=1e-5, atol=1e-5
    )
    assert np.array_equal(memory.predict(X_test), memory.predict(save(X_test)))
    assert memory.weak_risk(save(X), sup).value == pytest.approx(memory.weak_risk(X, sup).value, abs=1e-6)
    assert mapped.n_features_in_ == 2
    accuracy = memory.score(X_test, data.y_test)
    assert accuracy > 0.8  # one class for all points: 0.7
    assert mapped.score(save(X_test), data.y_test) == pytest.approx(accuracy, abs=0.005)


@pytest.mark.parametrize("scaling", ["feature", "global", "none"])
def test_scaling(data, sup, save, scaling):
    X = data.X_train * np.float32(5.0) + np.float32(100.0)
    memory, mapped = (
        WeakClassifier("joint", scaling=scaling, **{**SETTINGS, "epochs": 1}).fit(given, sup).module_
        for given in (X, save(X))
    )
    np.testing.assert_allclose(memory.shift.numpy(), mapped.shift.numpy(), rtol=1e-5)
    np.testing.assert_allclose(memory.scale.numpy(), mapped.scale.numpy(), rtol=1e-4)
    assert scaling == "none" or not np.allclose(mapped.shift.numpy(), 0.0)


@pytest.mark.parametrize("changes", [{"method": "auto"}, {"selection": "label-free"}, {"model": "auto"}])
def test_what_is_chosen_without_labels(data, sup, save, changes):
    memory, mapped = (
        WeakClassifier(**{"method": "joint", **SETTINGS, "epochs": 2, "lr": 1e-3, **changes}).fit(X, sup)
        for X in (data.X_train, save(data.X_train))
    )
    assert (mapped.method_, mapped.model_, mapped.n_epochs_) == (memory.method_, memory.model_, memory.n_epochs_)
    alike(memory.decision_function(data.X_test), mapped.decision_function(data.X_test))


@pytest.mark.parametrize("method", ["supervised", "joint", "confdiff-unbiased"])
def test_plain_labels(data, save, method):
    words = np.where(data.y_train > 0, "yes", "no")
    memory, mapped = (WeakClassifier(method, **SETTINGS).fit(X, words) for X in (data.X_train, save(data.X_train)))
    assert mapped.classes_.tolist() == ["no", "yes"]
    alike(memory.decision_function(data.X_test), mapped.decision_function(data.X_test))


@pytest.mark.parametrize("cross_fit", [False, True])
def test_posteriors(data, save, cross_fit):
    how = {"cross_fit": cross_fit, "epochs": 2, "random_state": 0}
    memory, mapped = (fit_posterior(X, data.y_train, **how) for X in (data.X_train, save(data.X_train)))
    np.testing.assert_allclose(memory, mapped, atol=0.01)


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_images_in_a_file(save, model):
    """Channels last in the file, seen channels first: the same as rows made of them in memory."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], 60)
    images = rng.integers(0, 200, (120, 8, 8, 3)).astype(np.uint8) + np.uint8(40) * (y > 0)[:, None, None, None]
    rows = images.transpose(0, 3, 1, 2).reshape(120, -1)
    made = {"model": model, "image_shape": (3, 8, 8), "epochs": 2, "random_state": 0}
    memory = WeakClassifier("supervised", **made).fit(rows, y)
    mapped = WeakClassifier("supervised", **made).fit(np.moveaxis(save(images), 3, 1), y)
    assert mapped.n_features_in_ == 192
    alike(memory.decision_function(rows), mapped.decision_function(rows))


class TestBadInput:
    def test_numbers_that_are_not_finite(self, data, sup, save):
        X = data.X_train.copy()
        X[[17, 40], 1] = np.nan
        with pytest.raises(InputError, match="Row 17, column 1 is nan; 2 of 1,500 rows looked at are such: 17, 40"):
            WeakClassifier("joint", **SETTINGS).fit(save(X), sup)

    def test_a_file_is_not_read_for_settings_that_cannot_be(self, data, sup, save, monkeypatch):
        monkeypatch.setattr("usimul.mapped.Rows.moments", None)
        with pytest.raises(InputError, match="contradicts"):
            WeakClassifier("joint", **{**SETTINGS, "prior": 0.05}).fit(save(data.X_train), sup)
        with pytest.raises(InputError, match="made for a pool of 1500 points, but X has 10"):
            WeakClassifier("joint", **SETTINGS).fit(save(data.X_train)[:10], sup)

    def test_other_features(self, data, sup, save):
        clf = WeakClassifier("joint", **{**SETTINGS, "epochs": 1}).fit(save(data.X_train), sup)
        with pytest.raises(ValueError, match="X has 1 features, but WeakClassifier is expecting 2"):
            clf.predict(save(data.X_test[:, :1]))

    def test_other_labels(self, data, save):
        clf = WeakClassifier("supervised", **SETTINGS)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            clf.fit(save(data.X_train), data.y_train[:10])
        with pytest.raises(InputError, match="Got one class"):
            clf.fit(save(data.X_train), np.ones(1500))
        with pytest.raises(ValueError, match="requires y"):
            clf.fit(save(data.X_train), None)


def test_the_file_is_left_as_it_was(data, sup, save):
    X = save(data.X_train, "r+")
    WeakClassifier("joint", **{**SETTINGS, "epochs": 1}).fit(X, sup).predict(X)
    assert np.array_equal(X, data.X_train)
