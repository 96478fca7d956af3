"""The paper's tables and figures as experiments, in three budgets and two worlds.

Names follow the paper's content: its table of benchmark sets, its real-world and privacy-sensitive tables, its
ablations. Accuracies of the paper stand in ``PAPER`` as far as they are known here; other cells have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from usimul.experiments.grid import Cell, Experiment
from usimul.experiments.spec import RunSpec
from usimul.validation import check_choice

__all__ = ["BUDGETS", "EXPERIMENTS", "GRID", "WORLDS_OF_THE_PAPER", "Budget", "build"]

COMPARED = (
    "sconf-abs",
    "sconf-nn",
    "pcomp-relu",
    "pcomp-abs",
    "pcomp-teacher",
    "pc-auc",
    "pcu",
    "confdiff-unbiased",
    "confdiff-relu",
    "confdiff-abs",
)
PRINTED = ("usimul", "usimul-abs", "usimul-relu")
CORRECTED = ("usimul-exact", "usimul-exact-abs", "usimul-exact-relu")
JOINT = ("joint-plain", "joint", "joint-likelihood")
CEILING = "supervised"
MAIN = (*COMPARED, "usimul-abs", "usimul-exact-abs", "joint-plain", "joint", CEILING)
TRIPLETS = (*PRINTED, *CORRECTED, *JOINT)

WORLDS_OF_THE_PAPER = ("definition1", "release")
RELEASE_PRIOR = 0.4  # the only prior for which the released code gives its class shares

TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion",
    "kmnist": "Kuzushiji",
    "cifar10": "CIFAR-10",
    "svhn": "SVHN",
    "pendigits": "Pendigits",
    "lost": "Lost",
    "msrcv2": "MSRCv2",
    "birdsong": "BirdSong",
    "yahoo_news": "Yahoo! News",
    "msld": "MSLD",
    "ham10000": "HAM10000",
    "mias": "mini-MIAS",
    "digits": "digits",
    "breast_cancer": "breast cancer",
    "gaussians": "two Gaussians",
}

# Accuracies in percent of `usimul` (its best variant) that the paper reports; the others were not at hand.
PAPER = {
    ("mnist", 0.2): 94.08,
    ("mnist", 0.4): 95.36,
    ("fashion_mnist", 0.6): 95.78,
    ("cifar10", 0.4): 84.6,
}


@dataclass(frozen=True)
class Size:
    """Triplets, unlabeled points, epochs, network, and points a step for one data set."""

    n: int
    n_unlabeled: int
    epochs: int
    model: str = "mlp"
    step_points: int = 256


@dataclass(frozen=True)
class Budget:
    """How much is run: which sets take part, how large, with how many seeds.

    Parameters
    ----------
    benchmark, real_world, private, ablation
        Data sets of each group of tables.
    size
        Size by data set; ``"*"`` for all others.
    seeds
        Number of seeds.
    steps
        Share of the ablations' grid points that is run: every one, every second.
    """

    name: str
    words: str
    benchmark: tuple[str, ...]
    real_world: tuple[str, ...]
    private: tuple[str, ...]
    ablation: tuple[str, ...]
    size: dict[str, Size]
    seeds: int
    steps: int = 1

    def of(self, data: str) -> Size:
        """Size for a data set."""
        return self.size.get(data, self.size["*"])


_NETS = {"cifar10": "resnet34", "svhn": "resnet34", "msld": "cnn", "ham10000": "cnn", "mias": "cnn"}

BUDGETS = {
    "smoke": Budget(
        "smoke",
        "a minute or two a table, embedded data: shows that everything runs, and nothing more",
        benchmark=("digits", "breast_cancer"),
        real_world=("breast_cancer",),
        private=("breast_cancer",),
        ablation=("digits",),
        size={"*": Size(400, 300, 16, step_points=64)},
        seeds=2,
        steps=2,
    ),
    "small": Budget(
        "small",
        "an afternoon on two cores: fewer triplets and epochs than the paper",
        benchmark=("mnist", "fashion_mnist", "kmnist"),
        real_world=("pendigits", "lost", "msrcv2", "birdsong"),
        private=("msld", "ham10000", "mias"),
        ablation=("mnist", "fashion_mnist"),
        size={
            "*": Size(3000, 6000, 20),
            "kmnist": Size(2000, 4000, 20),
            "pendigits": Size(2000, 2000, 40),
            "lost": Size(2000, 2000, 40),
            "msrcv2": Size(2000, 2000, 40),
            "birdsong": Size(2000, 2000, 40),
            "msld": Size(500, 500, 6, "cnn"),
            "ham10000": Size(1000, 1000, 6, "cnn"),
            "mias": Size(1000, 1000, 6, "cnn"),
        },
        seeds=3,
    ),
    "full": Budget(
        "full",
        "the paper's protocol: its sets, its sizes, five seeds; for a cluster",
        benchmark=("mnist", "fashion_mnist", "kmnist", "cifar10", "svhn"),
        real_world=("pendigits", "lost", "msrcv2", "birdsong", "yahoo_news"),
        private=("msld", "ham10000", "mias"),
        ablation=("mnist", "fashion_mnist"),
        size={
            "*": Size(12_000, 6_000, 100),
            **{data: Size(12_000, 6_000, 100, net) for data, net in _NETS.items()},
            "pendigits": Size(2000, 1000, 100),
            "lost": Size(1000, 500, 100),
            "msrcv2": Size(1000, 500, 100),
            "birdsong": Size(1200, 600, 100),
            "yahoo_news": Size(2000, 1000, 100),
        },
        seeds=5,
    ),
}


def _spec(budget: Budget, data: str, method: str, prior: float, world: str, **changes: object) -> RunSpec:
    size = budget.of(data)
    spec = RunSpec(
        data,
        method,
        prior,
        size.n,
        size.n_unlabeled,
        epochs=size.epochs,
        model=size.model,
        step_points=size.step_points,
    )
    if world == "release" and method in TRIPLETS:
        spec = replace(spec, world="release", loss="square", task=_release_task(data))
    elif world == "release":
        spec = replace(spec, task=_release_task(data))
    return replace(spec, **changes)  # type: ignore[arg-type]  # names are checked by the record


def _release_task(data: str) -> str | None:
    return "release" if data in ("mnist", "fashion_mnist", "kmnist", "svhn") else None


def _methods(methods: Sequence[str], world: str) -> list[str]:
    """In the world `release` no triplet is formed, so the tuple-level methods have nothing to learn from.

    The released experiment uses the printed risk without a correction; it stands beside the corrected one there.
    """
    if world == "definition1":
        return list(methods)
    kept = [m for m in methods if m not in (*CORRECTED, *JOINT)]
    return [name for m in kept for name in (("usimul", m) if m == "usimul-abs" and "usimul" not in kept else (m,))]


def _cells(
    budget: Budget, sets: Sequence[str], priors: Sequence[float], methods: Sequence[str], world: str
) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            method,
            f"{TITLES[data]}, {prior:g}",
            () if world == "release" and prior != RELEASE_PRIOR else (_spec(budget, data, method, prior, world),),
        )
        for data in sets
        for prior in priors
        for method in _methods(methods, world)
    )


_RELEASE_NOTE = (
    "World `release`: the class shares of the paper's released experiment, which are known at prior 0.4 only; other "
    "cells are dashes. No triplet is formed there, so tuple-level methods do not apply. Methods of triplets take the "
    "network and the settings of the released code there, the others keep theirs."
)


def _table(
    name: str, title: str, question: str, sets: Callable[[Budget], tuple[str, ...]], priors: tuple[float, ...]
) -> Callable[[Budget, str], Experiment]:
    def make(budget: Budget, world: str) -> Experiment:
        chosen = sets(budget)
        paper = {("usimul-abs", f"{TITLES[d]}, {p:g}"): PAPER[d, p] for d in chosen for p in priors if (d, p) in PAPER}
        notes = (_RELEASE_NOTE,) if world == "release" else ()
        return Experiment(
            name,
            title,
            question,
            "table",
            "data set, prior",
            _cells(budget, chosen, priors, MAIN, world),
            tuple(range(budget.seeds)),
            paper,
            notes,
        )

    return make


def _correction(budget: Budget, world: str) -> Experiment:
    cells = _cells(budget, budget.ablation, (0.2, 0.4, 0.6), (*PRINTED, *CORRECTED), world)
    return Experiment(
        "correction",
        "Corrected against uncorrected risks",
        "Does keeping partial risks from going below zero help?",
        "table",
        "data set, prior",
        cells,
        tuple(range(budget.seeds)),
        notes=(_RELEASE_NOTE,) if world == "release" else (),
    )


def _wrong_prior(true: float) -> Callable[[Budget, str], Experiment]:
    def make(budget: Budget, world: str) -> Experiment:
        told = [round(true + step, 2) for step in (-0.1, -0.05, 0.0, 0.05, 0.1)][:: budget.steps]
        return Experiment(
            f"wrong-prior-{true:g}",
            f"Told a wrong prior, true prior {true:g}",
            "How much accuracy is lost when the stated share of positives is wrong?",
            "table",
            "data set, prior told",
            tuple(
                Cell(
                    method,
                    f"{TITLES[data]}, told {t:g}",
                    ()
                    if (world == "release" and true != RELEASE_PRIOR) or (t == 0.5 and method not in JOINT)
                    else (_spec(budget, data, method, true, world, told=None if t == true else t),),
                )
                for data in budget.ablation
                for t in told
                for method in _methods(("usimul-abs", "usimul-exact-abs", "joint-plain", "joint"), world)
            ),
            tuple(range(budget.seeds)),
            notes=(
                "Told 0.5, the pointwise methods are undefined: a dash. The others cannot know which class is which, "
                "and a run may have them swapped.",
            )
            if 0.5 in told
            else (),
        )

    return make


def _sweep(
    name: str, title: str, question: str, axis: str, prior: float, change: Callable[[Size, float], dict[str, int]]
) -> Callable[[Budget, str], Experiment]:
    shares = (0.2, 0.4, 0.6, 0.8, 1.0)

    def make(budget: Budget, world: str) -> Experiment:
        cells = []
        for data in budget.ablation:
            for share in shares[(len(shares) - 1) % budget.steps :: budget.steps]:
                for method in _methods(("usimul-abs", "usimul-exact-abs", "joint-plain", "joint"), world):
                    given = change(budget.of(data), share)
                    spec = _spec(budget, data, method, prior, world, **given)
                    runs = () if world == "release" and prior != RELEASE_PRIOR else (spec,)
                    cells.append(Cell(f"{method}, {TITLES[data]}", f"{next(iter(given.values()))}", runs))
        return Experiment(name, title, question, "sweep", axis, tuple(cells), tuple(range(budget.seeds)))

    return make


def _convergence(budget: Budget, world: str) -> Experiment:
    return Experiment(
        "convergence",
        "Accuracy by epoch",
        "How does test accuracy develop while training? The curves are for looking at; no epoch is chosen on them.",
        "curve",
        "epoch",
        tuple(
            Cell(method, TITLES[data], (_spec(budget, data, method, 0.4, world, curve=True),))
            for data in budget.ablation
            for method in _methods(
                ("sconf-abs", "pcomp-teacher", "confdiff-abs", "usimul-abs", "usimul-exact-abs", "joint", CEILING),
                world,
            )
        ),
        tuple(range(budget.seeds)),
    )


def _prior_half(budget: Budget, world: str) -> Experiment:
    return Experiment(
        "prior-half",
        "Near and at prior 1/2",
        "What happens where the pointwise estimators are undefined?",
        "table",
        "data set, prior",
        tuple(
            Cell(
                method,
                f"{TITLES[data]}, {prior:g}",
                ()
                if world == "release" or (prior == 0.5 and method not in (*JOINT, CEILING))
                else (_spec(budget, data, method, prior, world),),
            )
            for data in budget.ablation
            for prior in (0.4, 0.45, 0.5)
            for method in ("usimul-abs", "usimul-exact-abs", "joint-plain", "joint", CEILING)
        ),
        tuple(range(budget.seeds)),
        notes=(
            "At prior 1/2 nothing says which class is which: accuracy there is up to a swap of the two names. The "
            "pointwise methods are undefined: a dash.",
            *((_RELEASE_NOTE,) if world == "release" else ()),
        ),
    )


EXPERIMENTS: dict[str, Callable[[Budget, str], Experiment]] = {
    "table1": _table(
        "table1",
        "Benchmark sets",
        "How do the methods compare on the same number of points?",
        lambda b: b.benchmark,
        (0.2, 0.4, 0.6),
    ),
    "real-world-0.4": _table(
        "real-world-0.4",
        "Real-world sets, prior 0.4",
        "How do the methods compare on small, noisy sets?",
        lambda b: b.real_world[:4],
        (0.4,),
    ),
    "real-world-0.6": _table(
        "real-world-0.6",
        "Real-world sets, prior 0.6",
        "How do the methods compare on small, noisy sets?",
        lambda b: b.real_world,
        (0.6,),
    ),
    "private-0.4": _table(
        "private-0.4",
        "Privacy-sensitive sets, prior 0.4",
        "How do the methods compare on medical images? Public stand-ins for the paper's private sets.",
        lambda b: b.private,
        (0.4,),
    ),
    "private-0.6": _table(
        "private-0.6",
        "Privacy-sensitive sets, prior 0.6",
        "How do the methods compare on medical images? Public stand-ins for the paper's private sets.",
        lambda b: b.private,
        (0.6,),
    ),
    "correction": _correction,
    "wrong-prior-0.4": _wrong_prior(0.4),
    "wrong-prior-0.6": _wrong_prior(0.6),
    "more-triplets-0.4": _sweep(
        "more-triplets-0.4",
        "More triplets, prior 0.4",
        "How does accuracy grow with the number of triplets?",
        "triplets",
        0.4,
        lambda size, share: {"n": round(size.n * share)},
    ),
    "more-triplets-0.6": _sweep(
        "more-triplets-0.6",
        "More triplets, prior 0.6",
        "How does accuracy grow with the number of triplets?",
        "triplets",
        0.6,
        lambda size, share: {"n": round(size.n * share)},
    ),
    "more-unlabeled": _sweep(
        "more-unlabeled",
        "More unlabeled points, prior 0.4",
        "How does accuracy grow with the number of unlabeled points?",
        "unlabeled points",
        0.4,
        lambda size, share: {"n_unlabeled": round(size.n_unlabeled * share)},
    ),
    "convergence": _convergence,
    "prior-half": _prior_half,
}
"""Name of each table and figure, and what makes it from a budget and a world. The privacy table needs no runs."""


GRID = tuple((lr, decay) for lr in (1e-3, 1e-4) for decay in (1e-5, 1e-3))
"""Rates and weight decays of a search. The paper's own grid was not at hand; these span the released settings."""


def build(
    name: str, budget: str, world: str = "definition1", selection: str = "last", *, search: bool = False
) -> Experiment:
    """Return an experiment by name; with ``search``, every cell has one run for each setting of `GRID`.

    >>> build("table1", "smoke").columns
    ['digits, 0.2', 'digits, 0.4', 'digits, 0.6', 'breast cancer, 0.2', 'breast cancer, 0.4', 'breast cancer, 0.6']
    """
    check_choice(name, EXPERIMENTS, "table or figure")
    check_choice(budget, BUDGETS, "budget")
    check_choice(world, WORLDS_OF_THE_PAPER, "world")
    experiment = EXPERIMENTS[name](BUDGETS[budget], world).with_selection(selection)
    if not search:
        return experiment
    cells = tuple(
        replace(c, specs=tuple(replace(s, lr=lr, weight_decay=decay) for s in c.specs for lr, decay in GRID))
        for c in experiment.cells
    )
    return replace(experiment, cells=cells)
