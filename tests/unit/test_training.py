"""The training loop, on objectives small enough to be followed by hand."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from usimul.batching import IndexBatches
from usimul.methods import get_method
from usimul.methods.base import Objective, Orientation, Recipe
from usimul.models import ScoreNet, build_model
from usimul.risk import Risk
from usimul.supervision import Labels
from usimul.training import (
    EXPONENTIAL_FACTOR,
    EXPONENTIAL_FLOOR,
    TrainingDivergedError,
    _optimizer,
    _schedule,
    check_recipe,
    score_sources,
    scores,
    train,
)
from usimul.validation import InputError, InputTypeError

N, D = 60, 3


@pytest.fixture
def pool():
    return torch.randn(N, D, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def sources():
    rng = np.random.default_rng(0)
    return {"pairs": rng.integers(0, N, (24, 2)), "unlabeled": rng.integers(0, N, (16, 1))}


class Recorded(Objective):
    """Mean square of all scores; notes what the loop asks of it."""

    def __init__(self, stuck=0, flip=False, factor=1.0):
        self.calls, self.batches, self.stuck, self.flip, self.factor = [], [], stuck, flip, factor

    def begin(self, run):
        super().begin(run)
        self.calls.append("begin")

    def step(self, batch):
        self.calls.append("step")
        self.batches.append(batch)
        flat = torch.cat([part.flatten() for part in batch.scores.values()])
        part = self.factor * flat.square().mean()
        return Risk(part.abs(), {"total": part}, ("total",))

    def after_step(self):
        self.calls.append("after")

    def end_epoch(self):
        self.calls.append("end")

    def orient(self, scores):
        self.seen = scores
        return Orientation("evidence", flipped=self.flip)

    def is_stuck(self, scores):
        return bool(self.stuck)


def run(pool, sources, objective=None, *, build=None, seed=0, **changes):
    recipe = Recipe(**{"epochs": 3, "batch_size": 10, "lr": 0.01, **changes.pop("recipe", {})})
    objective = Recorded() if objective is None else objective
    return train(
        build or (lambda attempt: build_model("linear", D)),
        pool,
        sources,
        objective if callable(objective) else lambda: objective,
        recipe,
        seed=seed,
        **changes,
    )


class TestLoop:
    def test_order_of_calls(self, pool, sources):
        objective = Recorded()
        run(pool, sources, objective)
        assert objective.calls == ["begin", *(["step", "after"] * 4 + ["end"]) * 3]
        assert objective.run.n_steps == 12

    def test_a_batch_holds_one_forward_pass_over_all_sources(self, pool, sources):
        objective = Recorded()
        run(pool, sources, objective)
        for batch in objective.batches:
            rows = {name: sources[name][batch.index[name].numpy()] for name in sources}
            stacked = np.concatenate([r.ravel() for r in rows.values()])
            np.testing.assert_array_equal(batch.inputs.numpy(), pool.numpy()[stacked])
            assert {name: tuple(part.shape) for name, part in batch.scores.items()} == {
                name: r.shape for name, r in rows.items()
            }
            torch.testing.assert_close(torch.cat([part.flatten() for part in batch.scores.values()]), batch.flat)

    def test_equals_a_loop_written_by_hand(self, pool, sources):
        fitted = run(pool, sources, recipe={"optimizer": "sgd", "weight_decay": 0.1})
        torch.manual_seed(0)
        model = build_model("linear", D)
        optimizer = torch.optim.SGD(
            [
                {"params": [model.body.weight], "weight_decay": 0.1},
                {"params": [model.body.bias], "weight_decay": 0.0},
            ],
            lr=0.01,
            momentum=0.9,
        )
        batches = IndexBatches(sources, 10, torch.Generator().manual_seed(0))
        risks = []
        for _ in range(3):
            epoch = []
            for _, rows in batches.epoch():
                z = model(pool[torch.cat([r.flatten() for r in rows.values()])])
                risk = z.square().mean()
                optimizer.zero_grad()
                risk.backward()
                optimizer.step()
                epoch.append(risk.item())
            risks.append(np.mean(epoch))
        torch.testing.assert_close(fitted.model.body.weight, model.body.weight)
        torch.testing.assert_close(fitted.model.body.bias, model.body.bias)
        np.testing.assert_allclose([epoch.risk for epoch in fitted.epochs], risks, rtol=1e-5)

    def test_history_tells_corrected_from_raw(self, pool, sources):
        fitted = run(pool, sources, Recorded(factor=-1.0))
        for epoch in fitted.epochs:
            assert epoch.risk == pytest.approx(-epoch.raw_risk)
            assert epoch.risk > 0
            assert epoch.corrected_share == 1.0
            assert epoch.seconds > 0
            assert epoch.weak_risk is None
            assert epoch.watched is None
        assert {epoch.corrected_share for epoch in run(pool, sources).epochs} == {0.0}

    def test_same_seed_same_bits(self, pool, sources):
        first, again, other = (run(pool, sources, seed=seed).model.body.weight for seed in (0, 0, 1))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)

    def test_global_state_is_restored(self, pool, sources):
        before = torch.get_rng_state()
        run(pool, sources)
        assert torch.equal(before, torch.get_rng_state())

    def test_returned_in_evaluation_mode_and_trained_in_training_mode(self, pool, sources):
        modes = []

        class Watched(Recorded):
            def step(self, batch):
                modes.append(self.run.model.training)
                return super().step(batch)

        # Scoring between epochs switches to evaluation; the next epoch must switch back.
        fitted = run(
            pool,
            sources,
            Watched(),
            build=lambda attempt: build_model("mlp-dropout", D),
            validate=lambda model: float(scores(model, pool).mean()),
        )
        assert all(modes)
        assert not fitted.model.training

    def test_divergence_is_an_error_with_a_way_out(self, pool, sources):
        with pytest.raises(
            TrainingDivergedError, match=r"the risk became \w+ in epoch \d of 3. Lower the learning rate"
        ):
            run(pool, sources, recipe={"optimizer": "sgd", "lr": 1e20})

    def test_divergence_of_a_real_method(self, pool):
        sup = Labels(np.arange(N), values=np.sign(pool[:, 0].numpy()), n_points=N)
        with pytest.raises(TrainingDivergedError, match=r"lr=1e\+20"):
            run(
                pool,
                sup.sources(),
                lambda: get_method("supervised").objective(sup, 0.5, loss="square"),
                recipe={"optimizer": "sgd", "lr": 1e20},
            )


class TestBestEpoch:
    values = (0.4, 0.2, 0.3, 0.2, 0.5)

    def fit(self, pool, sources, values):
        shown, states = iter(values), []

        def validate(model):
            states.append(copy.deepcopy(model.state_dict()))
            return next(shown)

        return run(pool, sources, validate=validate, recipe={"epochs": len(values)}), states

    def test_least_value_is_kept_the_later_of_two(self, pool, sources):
        fitted, states = self.fit(pool, sources, self.values)
        assert fitted.chosen_epoch == 4
        assert [epoch.weak_risk for epoch in fitted.epochs] == list(self.values)
        for name, value in fitted.model.state_dict().items():
            assert torch.equal(value, states[3][name])

    def test_a_value_that_is_no_number_is_never_chosen(self, pool, sources):
        fitted, _ = self.fit(pool, sources, (math.nan, 0.5, math.nan))
        assert fitted.chosen_epoch == 2

    def test_without_any_value_the_last_is_kept(self, pool, sources):
        fitted, states = self.fit(pool, sources, (math.nan, math.nan))
        assert fitted.chosen_epoch == 2
        assert torch.equal(fitted.model.body.weight, states[1]["body.weight"])

    def test_watching_chooses_nothing(self, pool, sources):
        figures = iter((0.9, 0.1, 0.5))
        fitted = run(pool, sources, watch=lambda model: next(figures))
        assert [epoch.watched for epoch in fitted.epochs] == [0.9, 0.1, 0.5]
        assert fitted.chosen_epoch == 3
        assert torch.equal(fitted.model.body.weight, run(pool, sources).model.body.weight)


class TestRestarts:
    def test_another_seed_and_more_epochs_until_it_gives_up(self, pool, sources):
        made, lengths = [], []

        def build(attempt):
            made.append(attempt)
            net = build_model("linear", D)
            lengths.append(net.body.weight.detach().clone())
            return net

        seen = []
        fitted = run(pool, sources, lambda: Recorded(stuck=1), build=build, report=lambda n, epoch: seen.append(n))
        assert made == [0, 1, 2]
        assert (fitted.restarts, fitted.stuck) == (2, True)
        assert seen == [*range(1, 4), *range(1, 7), *range(1, 10)]
        assert not torch.equal(lengths[0], lengths[1])

    def test_stops_as_soon_as_it_is_free(self, pool, sources):
        objectives = iter([Recorded(stuck=1), Recorded(stuck=0)])
        fitted = run(pool, sources, lambda: next(objectives))
        assert (fitted.restarts, fitted.stuck) == (1, False)
        assert len(fitted.epochs) == 6

    def test_no_restarts_when_none_are_allowed(self, pool, sources):
        fitted = run(pool, sources, lambda: Recorded(stuck=1), max_restarts=0)
        assert (fitted.restarts, fitted.stuck, len(fitted.epochs)) == (0, True, 3)


class TestOrientation:
    def test_flipped_scores_are_negated_once(self, pool, sources):
        plain = run(pool, sources)
        flipped = run(pool, sources, Recorded(flip=True))
        assert flipped.orientation.flipped
        np.testing.assert_array_equal(scores(flipped.model, pool), -scores(plain.model, pool))

    def test_known_points_are_scored_under_their_own_name(self, pool, sources):
        objective = Recorded()
        fitted = run(pool, sources, objective, known=np.array([5, 2]))
        assert set(objective.seen) == {"pairs", "unlabeled", "known"}
        np.testing.assert_allclose(objective.seen["known"][:, 0], scores(fitted.model, pool)[[5, 2]], rtol=1e-6)
        assert all(set(batch.scores) == {"pairs", "unlabeled"} for batch in objective.batches)


class TestInterruption:
    def test_what_was_trained_is_returned(self, pool, sources):
        def report(number, epoch):
            if number == 2:
                raise KeyboardInterrupt

        fitted = run(pool, sources, lambda: Recorded(stuck=1), report=report)
        assert fitted.interrupted
        assert (len(fitted.epochs), fitted.chosen_epoch, fitted.restarts) == (2, 2, 0)
        assert np.isfinite(scores(fitted.model, pool)).all()

    def test_in_the_middle_of_the_first_epoch(self, pool, sources):
        class Interrupted(Recorded):
            def after_step(self):
                raise KeyboardInterrupt

        fitted = run(pool, sources, Interrupted())
        assert fitted.interrupted
        assert (fitted.epochs, fitted.chosen_epoch) == ([], 0)


class TestOptimizer:
    @pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
    def test_only_weight_matrices_decay(self, name):
        model = build_model("mlp-bn", D)
        optimizer = _optimizer(model, Recipe(optimizer=name, weight_decay=0.3, lr=0.02))
        decayed, plain = optimizer.param_groups
        assert (decayed["weight_decay"], plain["weight_decay"]) == (0.3, 0.0)
        assert {p.ndim for p in decayed["params"]} == {2}
        assert {p.ndim for p in plain["params"]} == {1}
        assert len(decayed["params"]) + len(plain["params"]) == len(list(model.parameters()))
        assert {group["lr"] for group in optimizer.param_groups} == {0.02}

    def test_convolutions_decay(self):
        decayed, _ = _optimizer(build_model("cnn", 64, (1, 8, 8)), Recipe()).param_groups
        assert {p.ndim for p in decayed["params"]} == {2, 4}

    def test_frozen_parameters_are_left_out(self):
        module = nn.Sequential(nn.Linear(D, 4), nn.Linear(4, 1))
        module[0].requires_grad_(False)
        groups = _optimizer(build_model(module, D), Recipe()).param_groups
        assert sum(len(group["params"]) for group in groups) == 2

    def test_adamw_is_adamw(self):
        """One step from a zero gradient only decays: w (1 - lr * decay)."""
        net = ScoreNet(nn.Linear(2, 1), 2)
        before = net.body.weight.detach().clone()
        optimizer = _optimizer(net, Recipe(optimizer="adamw", lr=0.1, weight_decay=0.5))
        for p in net.parameters():
            p.grad = torch.zeros_like(p)
        bias = net.body.bias.detach().clone()
        optimizer.step()
        torch.testing.assert_close(net.body.weight.detach(), before * (1 - 0.1 * 0.5))
        assert torch.equal(net.body.bias.detach(), bias)


class TestSchedule:
    def rates(self, name, epochs=4, n_steps=5, lr=0.1):
        model = build_model("linear", D)
        optimizer = _optimizer(model, Recipe(optimizer="sgd", lr=lr))
        schedule = _schedule(optimizer, Recipe(schedule=name, lr=lr, epochs=epochs), n_steps)
        found = []
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        for _ in range(epochs * n_steps):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if schedule is not None and len(found) < epochs * n_steps:
                schedule.step()
        return np.array(found)

    def test_constant(self):
        assert set(self.rates("constant")) == {0.1}

    def test_exponential_falls_after_each_epoch(self):
        expected = np.repeat(0.1 * EXPONENTIAL_FACTOR ** np.arange(4), 5)
        np.testing.assert_allclose(self.rates("exponential"), expected)

    def test_exponential_has_a_floor(self):
        rates = self.rates("exponential", epochs=100, n_steps=1)
        assert rates[-1] == pytest.approx(EXPONENTIAL_FLOOR)
        assert np.all(rates >= EXPONENTIAL_FLOOR * (1 - 1e-12))

    def test_one_cycle_rises_to_the_rate_and_falls(self):
        rates = self.rates("one-cycle", epochs=20, n_steps=50)
        top = int(rates.argmax())
        assert rates.max() == pytest.approx(0.1)
        assert top == pytest.approx(0.3 * len(rates), abs=2)
        assert rates[0] == pytest.approx(0.1 / 25)
        assert rates[-1] == pytest.approx(0.1 / 25 / 1e4, rel=1e-3)
        assert np.all(np.diff(rates[:top]) > 0)
        assert np.all(np.diff(rates[top:]) < 0)

    def test_a_whole_training_takes_exactly_the_steps_of_the_cycle(self, pool, sources):
        fitted = run(pool, sources, recipe={"schedule": "one-cycle", "epochs": 5})
        rates = [epoch.rate for epoch in fitted.epochs]
        assert rates[0] == pytest.approx(0.01 / 25)
        assert max(rates) <= 0.01


class TestScores:
    @pytest.mark.parametrize("name", ["linear", "mlp", "mlp-dropout", "mlp-bn", "mlp-shared"])
    @pytest.mark.parametrize("chunk", [1, 7, N - 1, N])
    def test_chunks_do_not_matter(self, pool, name, chunk):
        net = build_model(name, D, seed=0)
        np.testing.assert_allclose(scores(net, pool, chunk=chunk), scores(net, pool), rtol=1e-5, atol=1e-6)

    def test_mode_is_restored(self, pool):
        net = build_model("mlp-dropout", D, seed=0)
        for mode in (True, False):
            net.train(mode)
            first = scores(net, pool)
            np.testing.assert_array_equal(first, scores(net, pool))
            assert net.training == mode

    def test_no_points(self, pool):
        found = scores(build_model("linear", D), pool[:0])
        assert found.shape == (0,)
        assert found.dtype == np.float64

    def test_sources_equal_a_loop_over_tuples(self, pool, sources):
        net = build_model("mlp", D, seed=0)
        found = score_sources(net, pool, sources)
        assert list(found) == list(sources)
        with torch.no_grad():
            for name, rows in sources.items():
                expected = [[net(pool[row : row + 1]).item() for row in line] for line in rows.tolist()]
                np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-6)

    def test_a_point_in_many_tuples_is_scored_once(self, pool):
        seen = []

        class Counting(nn.Linear):
            def forward(self, X):
                seen.append(len(X))
                return super().forward(X)

        net = ScoreNet(Counting(D, 1), D)
        score_sources(net, pool, {"a": np.array([[4, 4], [4, 1]]), "b": np.array([[1]])})
        assert seen == [2]


class TestRecipe:
    def test_a_good_one_passes_through(self):
        recipe = Recipe(epochs=2, lr=0.5)
        assert check_recipe(recipe) is recipe

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"epochs": 0}, InputError),
            ({"epochs": 1.5}, InputTypeError),
            ({"batch_size": -1}, InputError),
            ({"min_steps": -1}, InputError),
            ({"lr": 0.0}, InputError),
            ({"lr": math.inf}, InputError),
            ({"lr": "fast"}, InputTypeError),
            ({"weight_decay": -0.1}, InputError),
            ({"optimizer": "adamx"}, InputError),
            ({"schedule": "cosine"}, InputError),
        ],
    )
    def test_a_bad_one_names_the_setting(self, changes, error, pool, sources):
        (name,) = changes
        with pytest.raises(error, match=f"`{name}`"):
            run(pool, sources, recipe=changes)
