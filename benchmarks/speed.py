"""What a training epoch costs: ours over the bare mathematics, over a per-sample DataLoader loop, method by method.

    python benchmarks/speed.py [--quick] [--threads N]

Prints Markdown tables and writes them to benchmarks/results/speed.md. Absolute times depend on the machine and on who
else uses it, so every figure to judge by is a ratio: both sides run in turn, in one process, and the median of the
ratios of each turn is taken, of wall-clock time and of processor time.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from usimul.batching import IndexBatches, as_pool, pool_tensor
from usimul.methods import get_method, list_methods
from usimul.methods.base import Batch, Method, Run
from usimul.models import build_model, negate_output
from usimul.sampling import draw
from usimul.supervision import ConfidenceDifference, SimilarityConfidence, Supervision, Triplets
from usimul.training import _optimizer, _run_epoch, _schedule, score_sources
from usimul.validation import InputError

RESULT = Path(__file__).parent / "results" / "speed.md"
PRIOR = 0.4
BATCH_SIZE = 256
EPOCHS = 4  # `joint` refines after a quarter of a training's steps, when its scores have spread
WARM_EPOCHS = 3

# --- the same risks, written as plainly as one would by hand -------------------------------------------------------


def usimul_abs(z: dict[str, Tensor]) -> Tensor:
    p, q = PRIOR, 1 - PRIOR
    z_t, z_u, d = z["triplets"], z["unlabeled"], p - q
    plus_t, minus_t = (1 - z_t).square().mean(), (1 + z_t).square().mean()
    plus_u, minus_u = (1 - z_u).square().mean(), (1 + z_u).square().mean()
    half = (1 - p * q) / (2 * d)
    return (half * (plus_t - minus_t) + (p * minus_u - q * plus_u) / d).abs()


def usimul_exact_abs(z: dict[str, Tensor], lam: float) -> Tensor:
    p, q = PRIOR, 1 - PRIOR
    c = (1 - p * q) / (p - q)
    plus_t, minus_t = torch.sigmoid(-z["triplets"]), torch.sigmoid(z["triplets"])
    plus_u, minus_u = torch.sigmoid(-z["unlabeled"]).mean(), torch.sigmoid(z["unlabeled"]).mean()
    plus = c * plus_t[:, 0].mean() + (p - c) * ((1 - lam) * plus_u + lam * plus_t[:, 1:].mean())
    minus = -c * minus_t[:, 0].mean() + (q + c) * ((1 - lam) * minus_u + lam * minus_t[:, 1:].mean())
    return plus.abs() + minus.abs()


def joint_plain(z: dict[str, Tensor]) -> Tensor:
    p, accepted = PRIOR, 1 - PRIOR * (1 - PRIOR)
    a, b, c = torch.sigmoid(z["triplets"]).unbind(1)
    g = 1 - a * (1 - b) * (1 - c) - (1 - a) * b * c
    h = torch.sigmoid(torch.cat([z["triplets"][:, 1:].flatten(), z["unlabeled"].flatten()]))
    m, n, k = h.square().mean(), (1 - h).square().mean(), (h * (1 - h)).mean()
    mean = h.mean()
    # E g^2 = 1 - 2 E(1 - g) + E(1 - g)^2 over independent triples, and 1 - g says that the anchor is alone.
    second = 1 - 2 * mean * (1 - mean) + m * n * n + n * m * m + 2 * k**3
    return accepted * (1 - g).square().mean() + (second - accepted * g.square().mean()).abs() + (mean - p).square()


def supervised(z: dict[str, Tensor], y: Tensor) -> Tensor:
    return functional.softplus(-y * z["labeled"][:, 0]).mean()


# --- measuring ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Medians over the turns: seconds of each side, and the ratio of the first to the second, turn by turn."""

    seconds: tuple[float, float]
    wall: float
    cpu: float


def compare(first: Callable[[], object], second: Callable[[], object], repeats: int) -> Comparison:
    first(), second()
    turns: list[dict[int, tuple[float, float]]] = []
    for turn in range(repeats):
        took = {}
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            wall, cpu = time.perf_counter(), time.process_time()
            (first, second)[side]()
            took[side] = (time.perf_counter() - wall, time.process_time() - cpu)
        turns.append(took)
    return Comparison(
        (statistics.median(t[0][0] for t in turns), statistics.median(t[1][0] for t in turns)),
        statistics.median(t[0][0] / t[1][0] for t in turns),
        statistics.median(t[0][1] / t[1][1] for t in turns),
    )


@dataclass
class Data:
    """A pool of two Gaussian classes, and its labels: the mathematics costs what it costs on MNIST."""

    pool: Tensor
    labels: np.ndarray
    posterior: np.ndarray
    body: Callable[[], nn.Module] | str
    n_tuples: int
    n_unlabeled: int

    @classmethod
    def make(cls, n_points: int, n_features: int, body: Callable[[], nn.Module] | str, share: float) -> Data:
        rng = np.random.default_rng(0)
        labels = np.where(rng.random(n_points) < PRIOR, 1, -1)
        X = rng.standard_normal((n_points, n_features), dtype=np.float32)
        mean = 3.0 / np.sqrt(n_features)
        X += (mean * labels[:, None]).astype(np.float32)
        odds = np.exp(2.0 * mean * X.sum(axis=1, dtype=np.float64)) * PRIOR / (1 - PRIOR)
        return cls(pool_tensor(X, "cpu"), labels, odds / (1 + odds), body, round(10_000 * share), round(30_000 * share))

    def supervision(self, method: Method) -> Supervision:
        """As many points for every method."""
        points, kind = 3 * self.n_tuples + self.n_unlabeled, method.supervision
        n_unlabeled = self.n_unlabeled if method.needs_unlabeled or kind is Triplets else 0
        n = (points - n_unlabeled) // kind.width
        confident = {"posterior": self.posterior} if kind in (SimilarityConfidence, ConfidenceDifference) else {}
        return draw(kind, self.labels, n, n_unlabeled=n_unlabeled, prior=PRIOR, random_state=0, **confident)

    def model(self) -> nn.Module:
        net = build_model(self.body, self.pool.shape[1], seed=0)
        net.set_scaling(self.pool.mean(dim=0), self.pool.std(dim=0))
        return net


class Ours:
    """The training loop of the library, an epoch a call."""

    def __init__(self, name: str, data: Data, n_steps: int | None = None, batch_size: int = BATCH_SIZE) -> None:
        method = get_method(name)
        self.pool = data.pool
        self.supervision = data.supervision(method)
        self.objective = method.objective(self.supervision, PRIOR)
        self.recipe = replace(method.recipe, epochs=10_000)
        self.model = data.model()
        sources = self.supervision.sources()
        points = sum(rows.size for rows in sources.values())
        tuples = sum(len(rows) for rows in sources.values())
        # As many points in each step as `n_steps` steps an epoch make, whatever the width of a tuple.
        size = batch_size if n_steps is None else -(-tuples // n_steps)
        self.batches = IndexBatches(sources, size, torch.Generator().manual_seed(0))
        self.points_per_step = points / self.batches.n_steps
        self.optimizer = _optimizer(self.model, self.recipe)
        self.schedule = _schedule(self.optimizer, self.recipe, self.batches.n_steps)
        self.objective.begin(
            Run(
                self.model,
                EPOCHS * self.batches.n_steps,
                score=lambda: score_sources(self.objective.output(), self.pool, sources),
                negate=negate_output,
            )
        )

    def epoch(self) -> None:
        _run_epoch(self.model, as_pool(self.pool), self.batches, self.objective, self.optimizer, self.schedule)


class Bare:
    """Forward, backward and optimiser step on batches that are ready, with nothing around them."""

    def __init__(self, ours: Ours, risk: Callable[[dict[str, Tensor], dict[str, Tensor]], Tensor]) -> None:
        self.risk = risk
        self.model = copy.deepcopy(ours.model.body)
        self.optimizer = _optimizer(self.model, ours.recipe)
        self.batches = []
        shift, scale = ours.model.shift, ours.model.scale
        for index, rows in ours.batches.epoch():
            inputs = ours.pool[torch.cat([r.flatten() for r in rows.values()])]
            shapes = {name: tuple(r.shape) for name, r in rows.items()}
            self.batches.append(((inputs - shift) * scale, shapes, index))

    def step_risk(self, inputs: Tensor, shapes: dict[str, tuple[int, int]], index: dict[str, Tensor]) -> Tensor:
        parts = self.model(inputs)[:, 0].split([n * width for n, width in shapes.values()])
        z = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        return self.risk(z, index)

    def epoch(self) -> None:
        for inputs, shapes, index in self.batches:
            risk = self.step_risk(inputs, shapes, index)
            self.optimizer.zero_grad(set_to_none=True)
            risk.backward()
            self.optimizer.step()


def plain_risk(name: str, supervision: Supervision) -> Callable[[dict[str, Tensor], dict[str, Tensor]], Tensor]:
    if name == "usimul-abs":
        return lambda z, index: usimul_abs(z)
    if name == "usimul-exact-abs":
        lam = 2 * supervision.n_tuples / (2 * supervision.n_tuples + supervision.n_unlabeled)
        return lambda z, index: usimul_exact_abs(z, lam)
    if name == "joint-plain":
        return lambda z, index: joint_plain(z)
    y = torch.tensor(supervision.values, dtype=torch.float32)
    return lambda z, index: supervised(z, y[index["labeled"]])


def check_same_risk(ours: Ours, bare: Bare) -> None:
    """Both sides must compute the same number, or the comparison means nothing."""
    index, rows = next(iter(ours.batches.epoch()))
    inputs = ours.pool[torch.cat([r.flatten() for r in rows.values()])]
    model = ours.model
    parts = model(inputs).split([r.numel() for r in rows.values()])
    z = {name: part.view(r.shape) for (name, r), part in zip(rows.items(), parts, strict=True)}
    found = ours.objective.step(Batch(inputs, model(inputs), z, index)).total
    expected = bare.step_risk(
        (inputs - model.shift) * model.scale, {name: tuple(r.shape) for name, r in rows.items()}, index
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


# --- the loop that people write -------------------------------------------------------------------------------------


class TupleDataset(Dataset):
    """One tuple of points at a time."""

    def __init__(self, pool: np.ndarray, rows: np.ndarray) -> None:
        self.pool, self.rows = pool, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> tuple[Tensor, ...]:
        return tuple(torch.from_numpy(self.pool[row]) for row in self.rows[i])


class TensorTupleDataset(TupleDataset):
    """The same from a pool that was made a tensor beforehand, which spares a conversion for each point."""

    def __init__(self, pool: np.ndarray, rows: np.ndarray) -> None:
        super().__init__(pool, rows)
        self.tensor = torch.from_numpy(pool)

    def __getitem__(self, i: int) -> tuple[Tensor, ...]:
        return tuple(self.tensor[row] for row in self.rows[i])


class PerSample:
    """A DataLoader for each source, default collate, one forward pass for each position, Adam as it comes."""

    def __init__(self, ours: Ours, dataset: type[TupleDataset]) -> None:
        self.model = copy.deepcopy(ours.model.body)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=ours.recipe.lr)
        scaled = ((ours.pool - ours.model.shift) * ours.model.scale).numpy()
        self.loaders = {
            name: DataLoader(dataset(scaled, rows), batch_size=-(-len(rows) // ours.batches.n_steps), shuffle=True)
            for name, rows in ours.supervision.sources().items()
        }

    def epoch(self) -> None:
        for points in zip(*self.loaders.values(), strict=False):
            z = {
                name: torch.cat([self.model(x) for x in tuples], dim=1)
                for name, tuples in zip(self.loaders, points, strict=True)
            }
            risk = usimul_abs(z)
            self.optimizer.zero_grad()
            risk.backward()
            self.optimizer.step()


# --- the tables -----------------------------------------------------------------------------------------------------


def small_mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def against_bare(data: dict[str, Data], repeats: int) -> Iterator[str]:
    yield "## (a) One epoch over the bare mathematics"
    yield ""
    yield "Bare: the risk written by hand, forward, backward, optimiser step, on gathered and scaled batches in memory."
    yield "Aim on 784 features: at most 1.15. 16 features: for information, the mathematics is next to nothing there."
    yield ""
    rows = []
    for label, d in data.items():
        for name in ("joint-plain", "usimul-abs", "usimul-exact-abs", "supervised"):
            ours = Ours(name, d)
            bare = Bare(ours, plain_risk(name, ours.supervision))
            check_same_risk(ours, bare)
            c = compare(ours.epoch, bare.epoch, repeats)
            ours_s, bare_s = c.seconds
            rows.append([label, name, f"{ours_s:.3f}", f"{bare_s:.3f}", f"{c.wall:.2f}", f"{c.cpu:.2f}"])
    yield from table(["data, model", "method", "ours, s", "bare, s", "ratio, wall", "ratio, CPU"], rows)


def against_loader(data: dict[str, Data], repeats: int) -> Iterator[str]:
    yield "## (b) A per-sample DataLoader loop over ours"
    yield ""
    yield "One dataset and DataLoader for each source, default collate, no workers, a forward pass for each position;"
    yield "the pool a NumPy array or already a tensor; usimul-abs. Aim: above 1 on 784 features, at least 5 on 16."
    yield "A step of a tiny network takes torch about as long for 64 tuples as for 1,000: the batch size decides there."
    yield ""
    rows = []
    for (label, d), sizes in zip(data.items(), ((BATCH_SIZE,), (BATCH_SIZE, 1024, 4096)), strict=True):
        for size in sizes:
            for pool, dataset in (("NumPy", TupleDataset), ("tensor", TensorTupleDataset)):
                ours = Ours("usimul-abs", d, batch_size=size)
                c = compare(PerSample(ours, dataset).epoch, ours.epoch, repeats)
                loader_s, ours_s = c.seconds
                rows.append(
                    [label, str(size), pool, f"{loader_s:.3f}", f"{ours_s:.3f}", f"{c.wall:.2f}", f"{c.cpu:.2f}"]
                )
    head = ["data, model", "batch", "pool", "DataLoader, s", "ours, s", "times faster, wall", "CPU"]
    yield from table(head, rows)


def part_of(data: Data, share: float) -> Data:
    """Fewer tuples, steps of the same size: there are many methods."""
    return replace(data, n_tuples=round(share * data.n_tuples), n_unlabeled=round(share * data.n_unlabeled))


def by_method(data: dict[str, Data], repeats: int) -> Iterator[str]:
    yield "## (c) A step of every method over a plain supervised step"
    yield ""
    yield "The supervised step is bare, on as many points. `joint` is measured while it refines, after its warm-up."
    yield ""
    rows = []
    for label, whole in data.items():
        d = part_of(whole, 0.3)
        n_steps = -(-(d.n_tuples + d.n_unlabeled) // BATCH_SIZE)
        reference = Ours("supervised", d, n_steps)
        bare = Bare(reference, plain_risk("supervised", reference.supervision))
        for method in list_methods():
            try:
                ours = Ours(method.name, d, n_steps)
            except InputError as error:
                rows.append([label, method.name, "-", "-", "-", f"not run: {error}".replace("|", "given")])
                continue
            for _ in range(WARM_EPOCHS):
                ours.epoch()
            c = compare(ours.epoch, bare.epoch, repeats)
            steps = ours.batches.n_steps
            ratio = len(bare.batches) / steps
            rows.append(
                [
                    label,
                    method.name,
                    f"{ours.points_per_step:.0f}",
                    f"{1000 * c.seconds[0] / steps:.2f}",
                    f"{c.wall * ratio:.2f}",
                    f"{c.cpu * ratio:.2f}",
                ]
            )
    yield from table(["data, model", "method", "points a step", "step, ms", "ratio, wall", "ratio, CPU"], rows)


def start_up(repeats: int) -> Iterator[str]:
    spec = importlib.util.find_spec("usimul.cli")
    if spec is None or spec.origin is None:
        return
    yield "## (d) Start-up"
    yield ""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}

    def run(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)

    code = "import sys; sys.argv = ['usimul', '--help']; from usimul.cli import main; main()"
    c = compare(run(code), run("pass"), repeats)
    rows = [["usimul --help", f"{1000 * c.seconds[0]:.0f}"], ["python -c pass", f"{1000 * c.seconds[1]:.0f}"]]
    yield from table(["command", "ms"], rows)


def facts(arguments: argparse.Namespace) -> Iterator[str]:
    yield "# Speed"
    yield ""
    yield f"`python benchmarks/speed.py{' --quick' if arguments.quick else ''}`, {time.strftime('%Y-%m-%d')}."
    yield (
        f"{os.cpu_count()} cores ({platform.machine()}), load {os.getloadavg()[0]:.1f} at the start; Python "
        f"{platform.python_version()}, torch {torch.__version__}, threads of torch: {torch.get_num_threads()}."
    )
    yield (
        f"Medians of {arguments.repeats} turns, both sides in each. Two Gaussian classes, prior {PRIOR}, "
        f"batches of {BATCH_SIZE} tuples."
    )
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1, help="of torch; one is disturbed least by other processes")
    parser.add_argument("--quick", action="store_true", help="a tenth of the tuples, three turns; writes no file")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repeats = 3
    torch.set_num_threads(arguments.threads)
    share = 0.1 if arguments.quick else 1.0
    wide = Data.make(round(60_000 * share), 784, "mlp", share)
    narrow = Data.make(round(60_000 * share), 16, small_mlp, share)
    data = {"784 features, mlp": wide, "16 features, 16-32-1": narrow}
    lines = []
    for part in (
        facts(arguments),
        against_bare(data, arguments.repeats),
        against_loader(data, arguments.repeats),
        by_method(data, arguments.repeats),
        start_up(arguments.repeats),
    ):
        for line in part:
            print(line, flush=True)
            lines.append(line)
    if not arguments.quick:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
