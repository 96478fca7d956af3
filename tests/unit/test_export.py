"""Saving and loading: identity, atomicity, and every kind of damage."""

import errno
import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from usimul import export
from usimul.datasets import make_gaussians
from usimul.estimators import USimULClassifier, WeakClassifier
from usimul.export.base import LATER
from usimul.methods import get_method
from usimul.sampling import draw, sample_labels, sample_triplets
from usimul.validation import DiskFullError, FileFormatError, InputError, InputTypeError

DATA = make_gaussians(120, 40, prior=0.3, random_state=0)
FILES = {"weights.safetensors", "model.json", "README.md"}


def card_of(clf, tmp_path):
    export.save(clf, tmp_path / "carded")
    card = (tmp_path / "carded" / "README.md").read_text()
    again = export.load(tmp_path / "carded")
    assert (again.prior_, again.from_labels_) == (clf.prior_, clf.from_labels_)
    return " ".join(card.split())


def fitted(**changes):
    sup = sample_triplets(DATA.y_train, 60, n_unlabeled=40, prior=0.3, random_state=0)
    settings = {"method": "usimul-exact-abs", "prior": 0.3, "model": "linear", "epochs": 2, "random_state": 0}
    return WeakClassifier(**{**settings, **changes}).fit(DATA.X_train, sup)


@pytest.fixture(scope="module")
def clf():
    return fitted()


@pytest.fixture
def folder(clf, tmp_path):
    export.save(clf, tmp_path / "model")
    return tmp_path / "model"


def names(path):
    return {p.name for p in path.iterdir()}


def edit(folder, **changes):
    path = folder / "model.json"
    content = json.loads(path.read_text())
    for key, value in changes.items():
        if value is ...:
            del content[key]
        else:
            content[key] = value
    path.write_text(json.dumps(content))


def reweigh(folder, change):
    """Change the weights and repair the checksum, as somebody who means it would."""
    path = folder / "weights.safetensors"
    state = load_file(path)
    change(state)
    save_file(state, path)
    content = path.read_bytes()
    record = {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit(folder, weights=record)


# --- identity -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["linear", "mlp", "mlp-dropout", "mlp-bn", "mlp-shared"])
def test_predictions_after_loading_have_the_same_bits(model, tmp_path):
    clf = fitted(model=model, epochs=1)
    export.save(clf, tmp_path / "m")
    again = export.load(tmp_path / "m")
    assert np.array_equal(again.decision_function(DATA.X_test), clf.decision_function(DATA.X_test))
    assert np.array_equal(again.predict_proba(DATA.X_test), clf.predict_proba(DATA.X_test))
    assert not again.module_.training


def test_image_model(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
    clf = WeakClassifier("supervised", model="cnn", image_shape=(1, 8, 8), epochs=1, random_state=0)
    clf.fit(X, np.repeat([0, 1], 20))
    export.save(clf, tmp_path / "m")
    again = export.load(tmp_path / "m")
    assert again.image_shape == (1, 8, 8)
    assert np.array_equal(again.decision_function(X), clf.decision_function(X))


def test_everything_that_was_learned_comes_back(clf, folder):
    again = export.load(folder)
    assert type(again) is WeakClassifier
    assert again.get_params() == clf.get_params()
    for name in ("method_", "model_", "prior_", "history_", "n_epochs_", "n_restarts_", "interrupted_", "orientation_"):
        assert getattr(again, name) == getattr(clf, name), name
    assert again.n_features_in_ == 2
    assert again.classes_.dtype == clf.classes_.dtype
    assert np.array_equal(again.classes_, clf.classes_)


@pytest.mark.parametrize("classes", [["healthy", "ill"], [False, True], [1.0, 2.0], np.array(["a", "b"], dtype=object)])
def test_classes_of_any_plain_type(classes, tmp_path):
    y = np.asarray(classes)[(DATA.y_train > 0).astype(int)]
    clf = USimULClassifier("usimul-exact-abs", prior=0.3, model="linear", epochs=1, random_state=0).fit(DATA.X_train, y)
    export.save(clf, tmp_path / "m")
    again = export.load(tmp_path / "m")
    assert type(again) is USimULClassifier
    assert again.predict(DATA.X_test).tolist() == clf.predict(DATA.X_test).tolist()
    assert again.classes_.dtype == clf.classes_.dtype


def test_a_seed_that_is_no_number_is_left_out(tmp_path):
    clf = fitted(random_state=np.random.RandomState(0))
    export.save(clf, tmp_path / "m")
    assert json.loads((tmp_path / "m" / "model.json").read_text())["params_left_out"] == ["random_state"]
    assert export.load(tmp_path / "m").random_state is None


def test_own_module_is_needed_again(tmp_path):
    def make():
        return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))

    clf = fitted(model=make)
    export.save(clf, tmp_path / "m")
    with pytest.raises(InputError, match=r"module of the user's own \(Sequential\).*load\(path, model="):
        export.load(tmp_path / "m")
    for given in (make, make()):
        again = export.load(tmp_path / "m", model=given)
        assert np.array_equal(again.decision_function(DATA.X_test), clf.decision_function(DATA.X_test))
    with pytest.raises(FileFormatError, match="does not fit the model"):
        export.load(tmp_path / "m", model=nn.Linear(2, 1))


def test_model_argument_is_only_for_own_modules(folder):
    with pytest.raises(InputError, match="holds the named model 'linear'"):
        export.load(folder, model=nn.Linear(2, 1))


def test_supervision_files_go_through_the_same_door(tmp_path):
    sup = sample_triplets(DATA.y_train, 5, random_state=0)
    export.save(sup, tmp_path / "sup.npz")
    assert export.load(tmp_path / "sup.npz") == sup


def test_card_says_what_matters(folder, clf):
    card = (folder / "README.md").read_text()
    for words in ("usimul-exact-abs", "0.3", "not a calibrated probability", 'usimul.load("model")', "2 features"):
        assert words in card


def test_card_describes_data_and_training(tmp_path):
    sup = sample_triplets(DATA.y_train, 60, n_unlabeled=40, prior=0.3, random_state=0)
    clf = WeakClassifier(
        "joint", prior=0.3, model="linear", epochs=3, lr=0.02, selection="label-free", random_state=7
    ).fit(DATA.X_train, sup)
    clf.feature_names_in_ = np.array(["age", "weight"], dtype=object)
    card = card_of(clf, tmp_path)
    risk = clf.history_["weak_risk"][clf.n_epochs_ - 1]
    for words in (
        "a pool of 120, 2 features: `age`, `weight`.",
        f"60 tuples, kept out of {sup.n_asked} that were asked about; and 40 unlabeled points",
        "World `definition1`: three independent points, kept if",
        "held out to choose the epoch",
        "epochs 3, lr 0.02",
        "random_state 7",
        "scaling auto",
        f"Label-free risk of that epoch on held-out tuples: {risk:.4f}. It ranked them",
        f"numpy {np.__version__}",
        "any order; missing and new ones are refused",
        "No licence is stated",
    ):
        assert words in card, words
    again = export.load(tmp_path / "carded")
    assert (again.n_points_, again.n_asked_) == (120, sup.n_asked)


def test_card_of_images(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
    clf = WeakClassifier("supervised", model="linear", image_shape=(1, 8, 8), epochs=1, random_state=0)
    assert "a pool of 40, images of 1 x 8 x 8" in card_of(clf.fit(X, np.repeat([0, 1], 20)), tmp_path)


def test_card_of_a_classifier_that_saw_labels(tmp_path):
    clf = WeakClassifier("supervised", model="linear", epochs=1, random_state=0)
    card = card_of(clf.fit(DATA.X_train, sample_labels(DATA.y_train)), tmp_path)
    assert "trained on the labels of its training points" in card
    assert "No label was needed" not in card
    assert "Class prior used in training, P(1): none, the method needs none." in card


def test_card_of_a_simulation(tmp_path):
    clf = WeakClassifier("confdiff-abs", model="linear", epochs=1, random_state=0).fit(DATA.X_train, DATA.y_train)
    card = card_of(clf, tmp_path)
    assert "made from the labels of the training points by a classifier that was trained on them: a simulation" in card
    assert "No label was needed" not in card


@pytest.mark.parametrize(
    ("method", "biased"),
    [
        ("pc-auc", "no unbiased estimate of the classification risk"),
        ("pcomp-teacher", "no unbiased estimate of the classification risk"),
        ("pcomp-abs", None),
        ("usimul-abs", "biased for the triplets that its paper defines"),
        ("joint", None),
        ("usimul-exact-abs", None),
    ],
)
def test_card_says_which_risk_is_biased(method, biased, tmp_path):
    kind = get_method(method).supervision
    sup = draw(kind, DATA.y_train, 60, n_unlabeled=40, prior=0.3, random_state=0)
    clf = WeakClassifier(method, prior=0.3, model="linear", epochs=2, lr=0.1, random_state=0).fit(DATA.X_train, sup)
    card = card_of(clf, tmp_path)
    for words in ("no unbiased estimate of the classification risk", "biased for the triplets that its paper defines"):
        assert (words in card) == (words == biased)
    assert "No label was needed for training" in card
    if clf.orientation_.status == "risk":
        assert ("they MAY BE WRONG" in card) == (biased is not None)
        assert ("fixed by the training risk" in card) == (biased is None)


def test_card_of_an_untrained_classifier(tmp_path, monkeypatch):
    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("usimul.training._run_epoch", stop)
    clf = WeakClassifier("joint", prior=0.3, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(DATA.X_train, sample_triplets(DATA.y_train, 60, prior=0.3, random_state=0))
    card = card_of(clf, tmp_path)
    assert "the first epoch was not finished" in card
    assert "Class names: UNKNOWN" in card
    assert "epoch 0" not in card


def test_card_of_the_best_candidate_so_far(tmp_path):
    def progress(name, *told):
        if name.startswith("joint-plain"):
            raise KeyboardInterrupt

    clf = WeakClassifier("auto", prior=0.3, model="linear", epochs=2, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(DATA.X_train, sample_triplets(DATA.y_train, 60, prior=0.3, random_state=0), progress=progress)
    card = card_of(clf, tmp_path)
    assert "held out to choose the candidate without labels" in card
    assert "Training was interrupted" in card


def test_no_pickle_anywhere(folder):
    assert names(folder) == FILES
    for path in folder.iterdir():
        assert not path.read_bytes().startswith((b"\x80", b"PK"))


# --- writing ------------------------------------------------------------------------------------------------------


def test_unfitted_and_foreign_objects_are_refused(tmp_path):
    with pytest.raises(InputError, match="not fitted yet"):
        export.save(WeakClassifier(), tmp_path / "m")
    with pytest.raises(InputTypeError, match="Got dict"):
        export.save({}, tmp_path / "m")
    assert not names(tmp_path)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    clf = fitted()
    with torch.no_grad():
        next(clf.module_.parameters()).fill_(float("nan"))
    with pytest.raises(InputError, match="NaN or infinite"):
        export.save(clf, tmp_path / "m")
    assert not names(tmp_path)


def test_existing_folder_is_kept_unless_asked(clf, folder):
    (folder / "README.md").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        export.save(clf, folder)
    assert (folder / "README.md").read_text() == "mine"
    export.save(clf, folder, overwrite=True)
    assert (folder / "README.md").read_text() != "mine"
    assert names(folder.parent) == {"model"}


def test_overwrite_never_takes_other_things(clf, folder, tmp_path):
    (folder / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match=r"other things than a saved model \(thesis.tex\)"):
        export.save(clf, folder, overwrite=True)
    assert (folder / "thesis.tex").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="not a folder"):
        export.save(clf, tmp_path / "file", overwrite=True)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(InputError, match="not a folder"):
        export.save(clf, tmp_path / "link", overwrite=True)


def test_overwrite_needs_a_folder_that_can_be_emptied(clf, folder, monkeypatch):
    """Root may write anywhere, so what the file system would say is put into its mouth."""

    def refuse(where, name="path"):
        if where == folder:
            raise InputError(f"nothing can be written in the folder {str(where)!r}")

    monkeypatch.setattr("usimul.export.writing.check_writable", refuse)
    before = (folder / "model.json").read_bytes()
    with pytest.raises(InputError, match=r"nothing can be written in the folder .*model"):
        export.save(clf, folder, overwrite=True)
    assert (folder / "model.json").read_bytes() == before
    assert names(folder.parent) == {"model"}


def test_parent_must_exist(clf, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        export.save(clf, tmp_path / "no" / "m")


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_write_leaves_nothing(clf, tmp_path, monkeypatch, failure):
    real = type(tmp_path).write_bytes

    def fail(path, content):
        if path.name == "model.json":
            raise failure
        return real(path, content)

    monkeypatch.setattr(type(tmp_path), "write_bytes", fail)
    with pytest.raises(type(failure)):
        export.save(clf, tmp_path / "m")
    assert not names(tmp_path)


def test_a_failed_replacement_restores_the_old_folder(clf, folder, monkeypatch):
    before = (folder / "model.json").read_bytes()
    real = type(folder).rename

    def fail(path, target):
        if path.name.endswith(".part"):
            raise OSError("no")
        return real(path, target)

    monkeypatch.setattr(type(folder), "rename", fail)
    with pytest.raises(OSError, match="no"):
        export.save(clf, folder, overwrite=True)
    assert (folder / "model.json").read_bytes() == before
    assert names(folder.parent) == {"model"}


# --- damage -------------------------------------------------------------------------------------------------------


def test_missing_things(folder, tmp_path):
    with pytest.raises(InputError, match="no model folder"):
        export.load(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"notes.txt' is a file; a model is a folder"):
        export.load_classifier(tmp_path / "notes.txt")
    with pytest.raises(FileFormatError, match=r"notes.txt.*neither"):
        export.load(tmp_path / "notes.txt")
    for name in ("weights.safetensors", "model.json"):
        copy = tmp_path / f"without-{name}"
        shutil.copytree(folder, copy)
        (copy / name).unlink()
        with pytest.raises(FileFormatError, match=f"{name}' is missing"):
            export.load(copy)


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_truncated_weights(folder, keep):
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FileFormatError, match=r"weights.safetensors' is truncated"):
        export.load(folder)


def test_every_flipped_byte_is_noticed(folder):
    path = folder / "weights.safetensors"
    content = path.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(FileFormatError, match=r"weights.safetensors'.*SHA-256"):
            export.load(folder)


def test_truncated_weights_with_a_repaired_checksum(folder):
    path = folder / "weights.safetensors"
    content = path.read_bytes()[:-3]
    path.write_bytes(content)
    edit(folder, weights={"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    with pytest.raises(FileFormatError, match=r"weights.safetensors' is not a safetensors file"):
        export.load(folder)


def test_every_truncation_of_the_description_is_noticed(folder):
    path = folder / "model.json"
    content = path.read_bytes().rstrip()
    for length in range(0, len(content), 37):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match=r"model.json"):
            export.load(folder)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[]", b"{}", b'{"format": "other"}', b"[" * 100_000])
def test_a_description_of_something_else(folder, content):
    (folder / "model.json").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"model.json"):
        export.load(folder)


def test_another_format_version(folder):
    edit(folder, version=2)
    with pytest.raises(FileFormatError, match=r"model.json' has format version 2; usimul .* reads version 1"):
        export.load(folder)


def test_a_folder_of_before_there_were_these_fields_is_read_and_kept(folder, tmp_path):
    for name in ("wrong_yes_", "calibration_", "n_points_", "n_asked_"):
        edit(folder, **{name: ...})
    clf = export.load(folder)
    assert (clf.n_points_, clf.n_asked_, clf.wrong_yes_, clf.calibration_.kind) == (None, None, 0.0, "none")
    export.save(clf, tmp_path / "again")
    assert "a pool whose size was not kept" in (tmp_path / "again" / "README.md").read_text()
    export.load(tmp_path / "again")


def test_every_missing_field_is_named(folder):
    content = json.loads((folder / "model.json").read_text())
    later = {"wrong_yes_", "calibration_", "n_points_", "n_asked_", *LATER}
    for name in set(content) - {"format", "version", "made_with", "params_left_out", "image_shape", *later}:
        edit(folder, **{name: ...})
        with pytest.raises(FileFormatError, match=rf"model.json' is damaged: the field '{name}' is missing"):
            export.load(folder)
        (folder / "model.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"estimator": "Pipeline"}, "unknown estimator 'Pipeline'"),
        ({"params": {"colour": 1}}, "parameters do not fit"),
        ({"method_": "magic"}, "unknown method 'magic'"),
        ({"prior_": 1.5}, "prior_ is 1.5"),
        ({"prior_": True}, "'prior_' holds 'True'"),
        ({"prior_": None}, "prior_ is None"),
        ({"n_points_": 0}, "there were 0 points"),
        ({"n_asked_": 3}, "3 questions"),
        ({"from_labels_": 1}, "'from_labels_' holds '1'"),
        ({"n_features_in_": 0}, "n_features_in_ is 0"),
        ({"n_features_in_": "2"}, "'n_features_in_' holds '2'"),
        ({"feature_names_in_": ["a"]}, "feature names"),
        ({"classes_": {"dtype": "<i8", "values": [1]}}, "classes"),
        ({"classes_": {"dtype": "nonsense", "values": [0, 1]}}, "classes"),
        ({"classes_": {"dtype": "<i8", "values": [[0], [1]]}}, "classes"),
        ({"orientation_": {"side": 1}}, "orientation has unknown fields"),
        ({"orientation_": {"status": "risk", "z": None}}, "'flipped' is missing"),
        ({"orientation_": {"status": [], "flipped": False, "z": None}}, r"'status' holds '\[\]'"),
        ({"orientation_": {"status": "sure", "flipped": False, "z": None}}, "orientation is 'sure'"),
        ({"orientation_": {"status": "risk", "flipped": 0, "z": None}}, "'flipped' holds '0'"),
        ({"orientation_": {"status": "risk", "flipped": False, "z": "3"}}, "'z' holds '3'"),
        ({"orientation_": {"status": "risk", "flipped": False, "z": float("nan")}}, "with z nan"),
        ({"history_": {}}, "history"),
        ({"model": {"kind": "named", "name": "transformer"}}, "unknown model 'transformer'"),
        ({"model": {"kind": "named", "name": "cnn"}}, "cannot be built"),
        ({"weights": {"bytes": 3}}, "truncated|too long"),
    ],
)
def test_wrong_fields(folder, changes, words):
    edit(folder, **changes)
    with pytest.raises(FileFormatError, match=words):
        export.load(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.update(extra=torch.zeros(1)), "unexpected tensors: extra"),
        (lambda s: s.pop("body.bias"), "missing tensors: body.bias"),
        (lambda s: s.update({"body.weight": torch.zeros(1, 3)}), r"'body.weight' is torch.float32 \(1, 3\)"),
        (lambda s: s.update({"body.weight": s["body.weight"].double()}), "is torch.float64"),
        (lambda s: s["sign"].zero_(), "tensor 'sign' is 0, not 1 or -1"),
        (lambda s: s["sign"].fill_(2.0), "tensor 'sign' is 2, not 1 or -1"),
        (lambda s: s["body.weight"].fill_(float("inf")), "NaN or infinite, in tensor 'body.weight'"),
    ],
)
def test_weights_that_do_not_fit(folder, change, words):
    reweigh(folder, change)
    with pytest.raises(FileFormatError, match=rf"weights.safetensors'.*{words}"):
        export.load(folder)


def test_a_full_disk_is_named_and_leaves_nothing(clf, tmp_path, monkeypatch):
    def fail(self, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "write_bytes", fail)
    with pytest.raises(DiskFullError, match=r"room for '.*model'. No space left .*nothing of it was kept. Make room"):
        export.save(clf, tmp_path / "model")
    assert not list(tmp_path.iterdir())
