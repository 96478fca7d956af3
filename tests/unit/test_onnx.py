"""ONNX files: the numbers of the classifier in one file, nothing of this machine in it, and no file without parity."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from click.testing import CliRunner
from onnx import numpy_helper
from torch import nn

from usimul import export
from usimul.cli import main
from usimul.datasets import make_gaussians
from usimul.estimators import WeakClassifier
from usimul.export.onnx import BATCHES, OPSET
from usimul.sampling import sample_triplets
from usimul.validation import InputError, InputTypeError, MissingDependencyError

DATA = make_gaussians(120, 40, prior=0.3, random_state=0)


def fitted(X=DATA.X_train, y=DATA.y_train, **settings):
    return WeakClassifier("supervised", **{"model": "linear", "epochs": 1, "random_state": 0, **settings}).fit(X, y)


@pytest.fixture(scope="module")
def clf():
    return fitted()


def run(path, X):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["score", "probability"], {"X": X.astype(np.float32)})


def metadata(path):
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


def check(clf, X, path):
    """Batches of sizes that the export itself did not look at."""
    for n in (1, 3, len(X)):
        score, probability = run(path, X[:n])
        assert score.shape == probability.shape == (n,)
        np.testing.assert_allclose(score, clf.decision_function(X[:n]), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(probability, clf.predict_proba(X[:n])[:, 1], atol=1e-4)


@pytest.mark.parametrize("model", ["linear", "mlp", "mlp-dropout", "mlp-bn", "mlp-shared"])
def test_every_flat_model(model, tmp_path):
    clf = fitted(1e3 + 50 * DATA.X_train, model=model)  # raw rows far from the scale of the network
    assert export.export_onnx(clf, tmp_path / "m.onnx") == tmp_path / "m.onnx"
    check(clf, 1e3 + 50 * DATA.X_test, tmp_path / "m.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("model", ["cnn", pytest.param("resnet34", marks=pytest.mark.slow)])
def test_image_models(model, tmp_path):
    X = np.random.default_rng(0).normal(100, 30, size=(40, 3 * 9 * 8)).astype(np.float32)
    clf = fitted(X, np.repeat([0, 1], 20), model=model, image_shape=(3, 9, 8))
    export.export_onnx(clf, tmp_path / "m.onnx")
    check(clf, X, tmp_path / "m.onnx")


def test_own_module(tmp_path):
    clf = fitted(model=lambda: nn.Sequential(nn.Linear(2, 5), nn.GELU(), nn.LayerNorm(5), nn.Linear(5, 1)))
    export.export_onnx(clf, tmp_path / "m.onnx")
    check(clf, DATA.X_test, tmp_path / "m.onnx")


def test_sign_and_offset_are_inside(tmp_path):
    from usimul.models import negate_output, shift_output

    clf = fitted()
    negate_output(clf.module_)
    shift_output(clf.module_, 0.7)
    export.export_onnx(clf, tmp_path / "m.onnx")
    check(clf, DATA.X_test, tmp_path / "m.onnx")


def test_the_file_says_what_it_is(tmp_path):
    y = np.where(DATA.y_train > 0, "ill", "healthy, or so")
    clf = WeakClassifier("usimul-exact-abs", prior=0.3, model="linear", epochs=1, random_state=0).fit(DATA.X_train, y)
    clf.feature_names_in_ = np.array(["age", "weight"], dtype=object)
    export.export_onnx(clf, tmp_path / "m.onnx")
    found = metadata(tmp_path / "m.onnx")
    assert json.loads(found["classes"]) == ["healthy, or so", "ill"]
    assert json.loads(found["feature_names"]) == ["age", "weight"]
    assert (found["method"], found["prior"], found["world"]) == ("usimul-exact-abs", "0.3", "definition1")
    model = onnx.load(tmp_path / "m.onnx")
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    assert [i.name for i in model.graph.input] == ["X"]
    assert [o.name for o in model.graph.output] == ["score", "probability"]
    assert not any(tensor.external_data for tensor in model.graph.initializer)


def test_nothing_of_this_machine_is_in_the_file(tmp_path):
    export.export_onnx(fitted(model="mlp"), tmp_path / "m.onnx")
    content = (tmp_path / "m.onnx").read_bytes()
    for words in (b".py", b"site-packages", b"stack_trace", str(tmp_path).encode()):
        assert words not in content


class Half(WeakClassifier):
    """A temperature of two and a half, and an offset."""

    def probability_of(self, scores):
        return super().probability_of(scores / 2.5 - 0.3)


class Cut(WeakClassifier):
    """No sigmoid of a line."""

    def probability_of(self, scores):
        return np.clip(super().probability_of(scores), 0.4, 0.6)


def test_probability_is_that_of_the_estimator(tmp_path):
    clf = Half("supervised", model="linear", epochs=1, random_state=0).fit(DATA.X_train, DATA.y_train)
    export.export_onnx(clf, tmp_path / "m.onnx")
    check(clf, DATA.X_test, tmp_path / "m.onnx")
    clf = Cut("supervised", model="linear", epochs=1, random_state=0).fit(DATA.X_train, DATA.y_train)
    with pytest.raises(export.ParityError, match="the probability is off by"):
        export.export_onnx(clf, tmp_path / "n.onnx")
    assert not (tmp_path / "n.onnx").exists()


# --- parity ---------------------------------------------------------------------------------------------------------


class TwoFaces(nn.Module):
    """Computes something else while it is exported."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, X):
        return self.layer(X) * (1.01 if torch.compiler.is_compiling() else 1.0)


def test_a_module_that_exports_as_another_is_not_kept(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"old")
    with pytest.raises(export.ParityError, match=r"On 1 rows the score is off by .*nothing was kept"):
        export.export_onnx(fitted(model=TwoFaces, lr=1.0, epochs=20), tmp_path / "m.onnx", overwrite=True)
    assert (tmp_path / "m.onnx").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("by", [1e-2, float("nan")])
def test_a_changed_weight_is_noticed(clf, tmp_path, monkeypatch, by):
    real = sys.modules["usimul.export.onnx"]._to_onnx

    def change(*given):
        model = real(*given)
        weight = next(t for t in model.graph.initializer if t.name.endswith("body.weight"))
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) + np.float32(by), weight.name))
        return model

    monkeypatch.setattr("usimul.export.onnx._to_onnx", change)
    with pytest.raises(export.ParityError, match="the score is off by"):
        export.export_onnx(clf, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


class OnlySeven(nn.Module):
    """Right on all batches but those of seven rows."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, X):
        return self.layer(X) + (1.0 if not torch.compiler.is_compiling() and len(X) == 7 else 0.0)


def test_more_than_one_batch_size_is_looked_at(tmp_path):
    assert {1, 7, 64} <= set(BATCHES)
    with pytest.raises(export.ParityError, match="On 7 rows"):
        export.export_onnx(fitted(model=OnlySeven), tmp_path / "m.onnx")


class ByNumbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, X):
        return self.layer(X) if float(X.sum()) > 0 else -self.layer(X)


def test_a_module_that_cannot_be_exported(tmp_path):
    with pytest.raises(InputError, match=r"could not turn the model \(ByNumbers\) into ONNX: .* same operations"):
        export.export_onnx(fitted(model=ByNumbers), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


# --- bad input ------------------------------------------------------------------------------------------------------


def test_bad_input(clf, tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(InputTypeError, match="Got dict"):
        export.export_onnx({}, tmp_path / "m.onnx")
    with pytest.raises(NotFittedError):
        export.export_onnx(WeakClassifier(), tmp_path / "m.onnx")
    with pytest.raises(InputError, match=r"must end in \.onnx"):
        export.export_onnx(clf, tmp_path / "m.pt")
    (tmp_path / "m.onnx").write_bytes(b"mine")
    with pytest.raises(InputError, match="exists already"):
        export.export_onnx(clf, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == b"mine"


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_missing_packages_are_named(clf, tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"'{package}'.* pip install 'usimul\[onnx\]'"):
        export.export_onnx(clf, tmp_path / "m.onnx")


def test_weights_that_fit_no_file(clf, tmp_path, monkeypatch):
    monkeypatch.setattr("usimul.export.onnx.LARGEST", 10)
    with pytest.raises(InputError, match="at most 2 GB"):
        export.export_onnx(clf, tmp_path / "m.onnx")


# --- the command ----------------------------------------------------------------------------------------------------


def usimul(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


def test_command(tmp_path):
    sup = sample_triplets(DATA.y_train, 60, n_unlabeled=40, prior=0.3, random_state=0)
    clf = WeakClassifier("usimul-exact-abs", prior=0.3, model="linear", epochs=1).fit(DATA.X_train, sup)
    export.save(clf, tmp_path / "model")
    given = ["export", tmp_path / "model", "--format", "onnx", "--output", tmp_path / "m.onnx"]
    found = usimul(*given)
    assert found.exit_code == 0, found.output
    assert "(n, 2), raw rows" in found.stdout
    assert f"operator set {OPSET}" in found.stdout
    assert "torchvision" not in found.output  # the exporter talks about packages that nobody needs
    check(clf, DATA.X_test, tmp_path / "m.onnx")
    for args, words in (
        (given, "exists already"),
        (["export", tmp_path / "nowhere", "-o", tmp_path / "n.onnx"], "no model folder"),
        (["export", tmp_path / "model", "-o", tmp_path / "n.bin"], "must end in .onnx"),
        (["export", tmp_path / "model", "-o", tmp_path / "no" / "n.onnx"], "does not exist"),
    ):
        found = usimul(*args)
        assert found.exit_code == 2
        assert words in found.stderr
        assert "Traceback" not in found.stderr


def test_command_on_an_own_module_says_how(tmp_path):
    export.save(fitted(model=lambda: nn.Linear(2, 1)), tmp_path / "model")
    found = usimul("export", tmp_path / "model", "-o", tmp_path / "m.onnx")
    assert found.exit_code == 2
    assert "load(path, model=" in found.stderr
