"""Runs what is missing: packs short runs into jobs and hands them to any ``concurrent.futures`` executor."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from usimul.experiments.execute import run_packed
from usimul.experiments.spec import Run
from usimul.experiments.store import Store
from usimul.validation import DiskFullError, InputError, missing_dependency

__all__ = ["Progress", "missing", "open_executor", "run_missing"]

MAX_PACK = 25
JOBS_PER_WORKER = 8  # so that the last jobs do not leave workers idle, and a lost job does not cost much
QUEUED = 64  # jobs handed over at a time: a scheduler with thousands of waiting jobs gets slow
POLL = 1.0
REVIVALS = 20  # how often a broken pool of workers is replaced while nothing gets done

Progress = Callable[[int, int, int, float], None]
"""Called with runs done, failed, in all, and seconds since the start."""


def missing(runs: Sequence[Run], store: Store, *, retry_failed: bool = False) -> list[Run]:
    """Return the runs that have no row yet, each once; failed ones only if they are to be tried again."""
    rows = store.refresh()
    wanted: dict[str, Run] = {run.id: run for run in runs}
    return [
        run
        for identity, run in wanted.items()
        if identity not in rows or (retry_failed and rows[identity]["status"] == "failed")
    ]


@dataclass(frozen=True)
class _Pool:
    """How to get an executor, and how many workers it has."""

    make: Callable[[], AbstractContextManager[Executor]]
    workers: int


def open_executor(jobs: int, cluster: str | None = None, slurm: dict[str, Any] | None = None) -> _Pool:
    """Return how to make the executor that is asked for: local processes, a Dask cluster, or Slurm jobs."""
    if jobs < 1:
        raise InputError(f"`jobs` must be at least 1. Got {jobs}.")
    if cluster is not None and slurm is not None:
        raise InputError("choose one of a Dask cluster and Slurm. Got both.")
    if cluster is not None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise missing_dependency("distributed", "cluster", "running on a Dask cluster") from error

        @contextmanager
        def connect() -> Iterator[Any]:
            try:
                client = distributed.Client(cluster, timeout="20s", set_as_default=False)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"no Dask scheduler answers at {cluster!r} ({error}). Start one with `dask scheduler`."
                ) from error
            with client:
                yield client

        @contextmanager
        def executor_of_cluster() -> Iterator[Executor]:
            with connect() as client:
                yield client.get_executor(pure=False)

        with connect() as client:
            workers = max(1, sum(client.nthreads().values()))
        return _Pool(executor_of_cluster, workers)
    if slurm is not None:
        try:
            submitit: Any = importlib.import_module("submitit")
        except ImportError as error:
            raise missing_dependency("submitit", "slurm", "running on Slurm") from error
        executor = submitit.AutoExecutor(folder=slurm.pop("folder"))
        executor.update_parameters(**slurm)
        return _Pool(lambda: nullcontext(executor), jobs)
    # Spawned, not forked: a forked torch can hang, and a spawned worker reads the thread limits at its start.
    context = multiprocessing.get_context("spawn")
    return _Pool(
        lambda: ProcessPoolExecutor(jobs, mp_context=context, initializer=end_with, initargs=(os.getpid(),)), jobs
    )


def end_with(parent: int) -> None:
    """End this worker soon after its runner is gone; a killed runner would leave it at work on what was queued."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL)
        os._exit(1)  # nothing to save: rows are written whole, and a claim ends with its process

    threading.Thread(target=watch, daemon=True).start()


def run_missing(
    runs: Sequence[Run],
    store: Store,
    pool: _Pool,
    *,
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> int:
    """Do all runs that have no row yet, whatever becomes of single ones; return how many of them failed.

    A worker that dies takes down its job only: what it had done is in the store, the rest is handed out again.
    """
    started = time.perf_counter()
    wanted = {run.id for run in runs}
    todo = missing(runs, store, retry_failed=retry_failed)
    revivals = 0
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # inherited by local workers
    while todo:
        before = len(todo)
        try:
            with pool.make() as executor:
                _run_all(executor, todo, store, pool.workers, lambda: _report(progress, store, wanted, started))
        except BrokenExecutor:
            pass  # a worker was killed; the next round makes a new pool
        # Runs that failed just now have a row, so they are not tried again here.
        todo = missing(todo, store)
        revivals = 0 if len(todo) < before else revivals + 1
        if todo and revivals:
            if any(store.is_claimed(run.id) for run in todo):
                revivals = 0  # another runner is at work on them, for as long as it takes
            if revivals > REVIVALS:
                raise RuntimeError(
                    f"{len(todo)} runs were not done after {REVIVALS} new starts of the workers, which die: too little "
                    f"memory? First: {todo[0].spec.describe()}, seed {todo[0].seed}."
                )
            time.sleep(POLL)
            _report(progress, store, wanted, started)
    _report(progress, store, wanted, started)
    return sum(store.rows[i]["status"] == "failed" for i in wanted if i in store.rows)


def _report(progress: Progress | None, store: Store, wanted: set[str], started: float) -> None:
    if progress is None:
        return
    rows = store.refresh()
    found = [rows[identity]["status"] for identity in wanted if identity in rows]
    progress(found.count("done"), found.count("failed"), len(wanted), time.perf_counter() - started)


def _run_all(executor: Executor, todo: Sequence[Run], store: Store, workers: int, report: Callable[[], None]) -> None:
    size = max(1, min(MAX_PACK, len(todo) // (workers * JOBS_PER_WORKER)))
    packs = [todo[start : start + size] for start in range(0, len(todo), size)]
    waiting = iter(packs)
    running: set[Future[int]] = set()
    folder = os.fspath(store.folder.absolute())
    while True:
        while len(running) < max(QUEUED, 2 * workers) and (pack := next(waiting, None)) is not None:
            running.add(executor.submit(run_packed, folder, [(run.spec.to_dict(), run.seed) for run in pack]))
        if not running:
            return
        finished, running = _wait(running)
        for future in finished:
            try:
                future.result()
            except DiskFullError:
                for other in running:
                    other.cancel()
                raise
        report()


def _wait(running: set[Future[int]]) -> tuple[set[Future[int]], set[Future[int]]]:
    if all(isinstance(future, Future) for future in running):
        done, rest = wait(running, timeout=POLL, return_when=FIRST_COMPLETED)
        return set(done), set(rest)
    # Dask's and submitit's futures share the interface, not the class.
    time.sleep(POLL)
    done = {future for future in running if future.done()}
    return done, running - done
