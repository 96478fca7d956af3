"""Judging, calibrating and reporting on a fitted classifier, and what is kept of it in files."""

import copy
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from usimul import export
from usimul.assess import Assessment, agreement, assess, calibrate, retrain, seems_trained_on
from usimul.calibration import Calibration, probabilities
from usimul.cli.judge import error_lines
from usimul.datasets import make_gaussians
from usimul.estimators import WeakClassifier
from usimul.event_error import ErrorEstimate
from usimul.report.charts import Series, histogram, line_chart
from usimul.report.model import prior_sensitivity, render_model, sorted_items
from usimul.report.words import verdict
from usimul.sampling import draw, sample_triplets
from usimul.supervision import Labels, SimilarityConfidence, SimilarPairs
from usimul.validation import FileFormatError, InputError, InputTypeError, TrainedPointsWarning

PRIOR = 0.3
DATA = make_gaussians(400, 600, prior=PRIOR, random_state=0)
FRESH = sample_triplets(DATA.y_test, 400, n_unlabeled=300, prior=PRIOR, random_state=1)


@pytest.fixture(scope="module")
def clf():
    sup = sample_triplets(DATA.y_train, 400, n_unlabeled=300, prior=PRIOR, random_state=0)
    made = WeakClassifier("joint-likelihood", prior=PRIOR, model="linear", epochs=30, batch_size=64, random_state=0)
    return made.fit(DATA.X_train, sup)


class TestAssess:
    def test_all_figures_are_of_the_same_scores(self, clf):
        found = assess(clf, DATA.X_test, FRESH, labels=DATA.y_test, others={"itself": clf})
        scores = clf.decision_function(DATA.X_test)
        assert found.n_points == 600
        assert found.share_positive == np.mean(scores >= 0)
        assert found.labels.accuracy.value == pytest.approx(clf.score(DATA.X_test, DATA.y_test))
        assert list(found.errors) == ["likelihood", "second-moment", "position-aware"]
        assert found.errors["second-moment"].value == clf.weak_risk(DATA.X_test, FRESH).value
        assert found.errors["likelihood"].low <= 1 - found.labels.accuracy.value <= found.errors["likelihood"].high
        assert (found.agreements[0].share, found.agreements[0].kappa) == (1.0, 1.0)
        brier = np.mean((clf.predict_proba(DATA.X_test)[:, 1] - (DATA.y_test > 0)) ** 2)
        assert found.labels.brier.value == pytest.approx(brier)
        assert json.loads(json.dumps(found.to_dict()))["labels"]["n"] == 600

    def test_other_kinds_are_judged_too(self, clf):
        pairs = draw(SimilarPairs, DATA.y_test, 300, n_unlabeled=300, prior=PRIOR, random_state=0)
        found = assess(clf, DATA.X_test, pairs)
        assert next(iter(found.errors)) == "likelihood"
        sconf = SimilarityConfidence([[0, 1], [2, 3]] * 40, values=[0.4, 0.7] * 40, n_points=600)
        assert "likelihood" not in assess(clf, DATA.X_test, sconf).errors

    def test_what_is_missing_is_not_there(self, clf):
        found = assess(clf, DATA.X_test)
        assert (found.errors, found.agreements, found.labels, found.trained_points) == ({}, [], None, False)

    def test_labels_of_one_class(self, clf):
        found = assess(clf, DATA.X_test, labels=np.ones(600, dtype=int)).labels
        assert found.balanced_accuracy is None
        assert found.area_under_curve is None

    def test_trained_points_are_noticed(self, clf):
        with pytest.warns(TrainedPointsWarning, match="same means and deviations"):
            assert assess(clf, DATA.X_train, labels=DATA.y_train).trained_points
        assert seems_trained_on(clf, DATA.X_train[::-1].copy())
        assert not seems_trained_on(clf, DATA.X_test)
        assert not seems_trained_on(clf, DATA.X_train[:-1])

    def test_other_seeds(self, clf):
        sup = sample_triplets(DATA.y_train, 200, n_unlabeled=100, prior=PRIOR, random_state=0)
        made = retrain(clf.__class__(**{**clf.get_params(), "epochs": 2}), DATA.X_train, sup, seeds=[1, 2])
        first, second = (m.decision_function(DATA.X_test) for m in made)
        assert not np.array_equal(first, second)

    def test_agreement_by_hand(self):
        found = agreement([1, 1, 1, -1], [1, 1, -1, -1], "b")
        assert (found.name, found.share, found.swapped) == ("b", 0.75, False)
        assert found.kappa == pytest.approx((0.75 - 0.5) / 0.5)
        assert agreement([1, 1], [1, 1]).kappa is None
        with pytest.raises(InputError, match="same points"):
            agreement([1, 1], [1])

    @pytest.mark.parametrize(
        ("labels", "match"), [([0, 1] * 300, "two classes"), ([1, -1], "one label for each point")]
    )
    def test_labels_in_a_strange_form(self, clf, labels, match):
        with pytest.raises(InputError, match=match):
            assess(clf, DATA.X_test, labels=labels)


class TestCalibrate:
    def test_predictions_stay_and_probabilities_follow(self, clf):
        made = calibrate(clf, DATA.X_test, FRESH)
        scores = clf.decision_function(DATA.X_test)
        assert clf.calibration_ == Calibration()
        assert made.calibration_.kind == "label-free"
        assert np.array_equal(made.decision_function(DATA.X_test), scores)
        expected = probabilities(scores, made.calibration_.temperature)
        assert np.array_equal(made.predict_proba(DATA.X_test)[:, 1], expected)

    def test_labels_in_two_forms_are_the_same(self, clf):
        sup = Labels(np.arange(600)[:, None], values=DATA.y_test, n_points=600)
        plain, wrapped = (calibrate(clf, DATA.X_test, y).calibration_ for y in (DATA.y_test, sup))
        assert plain == wrapped
        assert plain.kind == "labels"

    def test_a_new_fit_is_not_calibrated(self, clf):
        made = calibrate(clf, DATA.X_test, FRESH)
        made.set_params(epochs=1).fit(DATA.X_test, FRESH)
        assert made.calibration_ == Calibration()

    def test_what_cannot_calibrate_is_refused(self, clf):
        sup = SimilarityConfidence([[0, 1]] * 30, values=[0.4] * 30, n_points=600)
        with pytest.raises(InputTypeError, match=r"observed under one event.* Got SimilarityConfidence"):
            calibrate(clf, DATA.X_test, sup)
        release = sample_triplets(DATA.y_test, 30, prior=0.4, world="release", random_state=0)
        with pytest.raises(InputTypeError, match="Got Triplets of world 'release'"):
            calibrate(clf, DATA.X_test, release)

    def test_it_is_saved_and_told(self, clf, tmp_path):
        export.save(calibrate(clf, DATA.X_test, FRESH), tmp_path / "m")
        again = export.load(tmp_path / "m")
        assert again.calibration_ == calibrate(clf, DATA.X_test, FRESH).calibration_
        assert "calibrated without labels: temperature" in (tmp_path / "m" / "README.md").read_text()

    def test_older_files_have_none(self, clf, tmp_path):
        export.save(clf, tmp_path / "m")
        path = tmp_path / "m" / "model.json"
        content = json.loads(path.read_text())
        del content["calibration_"]
        path.write_text(json.dumps(content))
        assert export.load(tmp_path / "m").calibration_ == Calibration()

    @pytest.mark.parametrize(
        "record",
        [
            {"kind": "magic", "temperature": 1.0, "n": 0},
            {"kind": "labels", "temperature": 0.0, "n": 3},
            {"kind": "labels", "temperature": "hot", "n": 3},
            {"kind": "labels", "temperature": 1.0},
            [],
        ],
    )
    def test_damaged_ones_are_refused(self, clf, tmp_path, record):
        export.save(clf, tmp_path / "m")
        path = tmp_path / "m" / "model.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "calibration_": record}))
        with pytest.raises(FileFormatError, match="is damaged"):
            export.load(tmp_path / "m")


def assessment(**changes):
    error = ErrorEstimate(0.1, 0.08, 0.12, 0.95, 500)
    given = {
        "n_points": 100,
        "share_positive": 0.3,
        "prior": 0.3,
        "errors": {"likelihood": error},
        "agreements": [],
        "labels": None,
        "orientation": "evidence",
        "calibration": Calibration(),
        "trained_points": False,
    }
    return Assessment(**{**given, **changes})


class TestWords:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            (
                {},
                "wrong on 10.0 % of points like these (95 % interval 8.0 % to 12.0 %, from 500 tuples). That is better",
            ),
            ({"prior": 0.1, "share_positive": 0.1}, "Whether that is better than a guess is not certain"),
            ({"prior": 0.05, "share_positive": 0.1}, "That is no better than a guess: naming all points alike"),
            ({"errors": {"likelihood": ErrorEstimate(0.1, 0.0, 0.3, 0.95, 40)}}, "40 tuples are few"),
            (
                {"errors": {"unbiased": ErrorEstimate(-71.8, 0.0, 1.0, 0.95, 500)}},
                "cannot be told without labels: the estimate from 500 tuples says nothing here",
            ),
            ({"errors": {"likelihood": "not defined"}}, "Nobody has judged this classifier yet"),
            ({"trained_points": True}, "seem to be those of the training"),
            ({"orientation": "unknown"}, "two names may be swapped"),
            ({"share_positive": 0.6}, "It calls 60.0 % of the points positive, far from the stated share of 30.0 %"),
        ],
    )
    def test_verdict_follows_the_numbers(self, changes, words):
        assert words in " ".join(verdict(assessment(**changes)))

    def test_an_estimate_that_says_nothing_is_marked(self):
        errors = {"likelihood": ErrorEstimate(0.1, 0.0, 0.3, 0.95, 40), "x": ErrorEstimate(-71.8, 0.0, 1.0, 0.95, 40)}
        first, second = error_lines(errors)
        assert first.endswith("95% interval 0.000 to 0.300")
        assert second.endswith("95% interval 0.000 to 1.000, says nothing here")
        assert len(verdict(assessment(errors={"x": errors["x"]}))) == 1

    def test_nothing_is_said_without_a_reason(self):
        assert len(verdict(assessment())) == 1


class TestPage:
    def render(self, clf, **changes):
        scores = clf.decision_function(DATA.X_test)
        found = assess(clf, DATA.X_test, FRESH, labels=DATA.y_test, others={"<other>": clf})
        given = {"name": "m", "points": "p.npy", "supervision": FRESH}
        return render_model(clf, found, scores, **{**given, **changes})

    def test_it_is_whole_and_fetches_nothing(self, clf):
        page = self.render(clf)
        assert not re.search(r"https?:|//\w|url\(|@import|<script|<link|<iframe", page)
        drawn = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
        assert len(drawn) == 4  # calibration, prior, scores, risk
        for svg in drawn:
            ET.fromstring(svg)
        for words in ("In short", "If the prior were another", "Most certainly positive", "Limits", "definition1"):
            assert words in page

    def test_names_are_escaped(self, clf):
        evil = "<img src=x onerror=alert(1)>"
        page = self.render(clf, name=evil, points=evil, ids=[evil] * 600, command=evil, made_with=evil, constant=evil)
        assert "<img src=x" not in page
        assert "<other>" not in page
        assert page.count("&lt;img src=x") >= 5

    def test_pictures_are_inside_the_page(self, clf):
        rows = np.tile(np.arange(2, dtype=np.uint8), (600, 6))[:, :12]
        page = self.render(clf, rows=rows, image_shape=(3, 2, 2))
        assert page.count('src="data:image/png;base64,') == 18
        assert "img-src data:" in page

    def test_items_are_the_extremes(self):
        scores = np.array([3.0, -2.0, 0.1, -0.2, 5.0])
        groups = dict(sorted_items(scores, 2.0, None, None, None))
        assert [i.name for i in groups["most certainly positive"]] == ["row 4", "row 0", "row 2"]
        assert [i.name for i in groups["most certainly negative"]] == ["row 1", "row 3"]
        assert [i.name for i in groups["least certain"]][:2] == ["row 2", "row 3"]
        assert groups["most certainly positive"][0].probability == pytest.approx(1 / (1 + np.exp(-2.5)))

    def test_sensitivity_is_the_estimate_at_each_prior(self, clf):
        scores = clf.decision_function(DATA.X_test)
        found = dict(prior_sensitivity(scores, FRESH, [0.2, PRIOR]))
        assert found[PRIOR] == assess(clf, DATA.X_test, FRESH).errors["likelihood"]
        sconf = SimilarityConfidence([[0, 1]] * 3, values=[0.4] * 3, n_points=600)
        assert prior_sensitivity(scores, sconf, [0.2]) == []

    def test_sensitivity_hears_the_wrong_answers_of_the_training(self, clf):
        """At the stated prior it is the estimate beside it; at 0.05, p q < 0.1: no yes would tell anything."""
        scores, noisy = clf.decision_function(DATA.X_test), copy.copy(clf)
        noisy.wrong_yes_ = 0.1
        found = dict(prior_sensitivity(scores, FRESH, [0.05, PRIOR], 0.1))
        assert found == {PRIOR: assess(noisy, DATA.X_test, FRESH).errors["likelihood"]}
        assert found[PRIOR] != assess(clf, DATA.X_test, FRESH).errors["likelihood"]
        near = [e.value for _, e in prior_sensitivity(scores, FRESH, [0.25, PRIOR, 0.35], 0.1)]
        words = f"the estimate lies between {100 * min(near):.1f} and {100 * max(near):.1f} %"
        assert words in self.render(noisy)
        assert words not in self.render(clf)

    @pytest.mark.parametrize(
        ("held_out", "words"),
        [("tuples", "Held-out tuples are made of points that were trained on"), ("points", "No held-out point was")],
    )
    def test_what_was_held_out_is_said(self, clf, held_out, words):
        chosen = copy.copy(clf)
        chosen.held_out_, chosen.history_ = held_out, {**clf.history_, "weak_risk": [0.2] * len(clf.history_["risk"])}
        page = " ".join(self.render(chosen).split())
        assert words in page
        assert ("points that were trained on: it ranks" in page) == (held_out == "tuples")


class TestCharts:
    def test_bars_have_their_own_ends(self):
        series = Series("a", [0.5], at=[0.5], between=[(0.2, 0.6)])
        root = ET.fromstring(str(line_chart([series], title="t", x_label="x", y_label="y", include=(0, 1))))
        (bar,) = [line for line in root.iter("line") if "bar" in line.get("class")]
        (dot,) = root.iter("circle")
        y = {float(bar.get("y1")), float(bar.get("y2"))}
        assert max(y) - float(dot.get("cy")) == pytest.approx(3 * (float(dot.get("cy")) - min(y)), abs=0.2)

    def test_histogram_heights_are_the_counts(self):
        root = ET.fromstring(str(histogram([-2.0, 0.0, 2.0, 4.0], [10, 5, 0], title="t", x_label="x", y_label="y")))
        first, second, third = root.iter("rect")
        assert float(first.get("height")) == pytest.approx(2 * float(second.get("height")), abs=0.1)
        assert float(third.get("height")) == 0.0
        assert ["b0" in r.get("class") for r in (first, second, third)] == [True, False, False]
