"""``usimul reproduce``: the command, and runs whose processes are killed, in real processes."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import usimul
from usimul.cli import main
from usimul.cli import reproduce as command_module
from usimul.experiments.paper import BUDGETS, EXPERIMENTS, WORLDS_OF_THE_PAPER
from usimul.experiments.spec import SELECTIONS, Run, RunSpec
from usimul.experiments.store import Store
from usimul.experiments.tables import SEARCHES

SOURCE = str(Path(usimul.__file__).parents[1])

SCRIPT = """
import json
from pathlib import Path
from usimul.experiments.runner import open_executor, run_missing
from usimul.experiments.spec import Run, RunSpec
from usimul.experiments.store import Store

TINY = json.dumps({"n_train": 300, "n_test": 200, "prior": 0.4})
RUNS = [
    Run(RunSpec("gaussians", method, 0.4, 200, 200, epochs=30, model="linear", data_options=TINY), seed)
    for seed in range(14)
    for method in ("usimul-exact-abs", "supervised", "pcomp-abs")
]
if __name__ == "__main__":
    import sys
    failed = run_missing(RUNS, Store(Path(sys.argv[1])), open_executor(2))
    print("failed", failed)
"""


def invoke(*arguments, **environment):
    return CliRunner(env=environment).invoke(main, ["reproduce", *map(str, arguments)])


def lines(store):
    return sum(len(path.read_bytes().splitlines()) for path in (store / "runs").glob("*.jsonl"))


def comparable(folder):
    """Rows without what differs from run to run: times, machine."""
    found = {}
    for identity, row in Store(folder).refresh().items():
        kept = {k: v for k, v in row.items() if k not in ("seconds", "cpu_seconds", "when", "where")}
        kept["result"] = {k: v for k, v in kept["result"].items() if k != "train_seconds"}
        found[identity] = kept
    return found


@pytest.fixture(scope="module")
def runner_script(tmp_path_factory):
    path = tmp_path_factory.mktemp("runner") / "runner.py"
    path.write_text(SCRIPT)
    return path


def start(script, store):
    return subprocess.Popen(
        [sys.executable, str(script), str(store)],
        env={**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def finish(process):
    out, _ = process.communicate(timeout=250)
    assert process.returncode == 0, out.decode()
    assert b"failed 0" in out, out.decode()


@pytest.fixture(scope="module")
def uninterrupted(runner_script, tmp_path_factory):
    store = tmp_path_factory.mktemp("whole") / "store"
    finish(start(runner_script, store))
    return comparable(store)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills process groups")
class TestKilled:
    @pytest.mark.timeout(600)
    def test_ten_kills_of_everything_change_nothing(self, runner_script, uninterrupted, tmp_path):
        store = tmp_path / "store"
        dice = random.Random(0)
        kills = 0
        for _ in range(10):
            process = start(runner_script, store)
            before = lines(store)
            wanted = before + dice.choice([0, 1, 1])
            deadline = time.monotonic() + 120
            while lines(store) < wanted and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(dice.random() * 0.15)  # anywhere in the next run, or in the start of the workers
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            process.communicate()
        assert kills == 10
        assert lines(store) < 42, "nothing was left to resume; kill earlier"
        finish(start(runner_script, store))
        assert comparable(store) == uninterrupted
        assert len(uninterrupted) == 42

    def test_a_killed_worker_loses_nothing(self, runner_script, uninterrupted, tmp_path):
        store = tmp_path / "store"
        process = start(runner_script, store)
        while lines(store) < 2 and process.poll() is None:
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        workers = [c for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
        os.kill(int(workers[-1]), signal.SIGKILL)
        finish(process)
        assert comparable(store) == uninterrupted

    def test_workers_end_with_their_runner(self, runner_script, tmp_path):
        store = tmp_path / "store"
        process = start(runner_script, store)
        while lines(store) < 1 and process.poll() is None:
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        workers = [Path(f"/proc/{c}") for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
        assert workers
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        while any(worker.exists() for worker in workers):  # the time limit of the test is that of this wait
            time.sleep(0.1)

    def test_two_runners_at_once_do_every_run_once(self, runner_script, uninterrupted, tmp_path):
        store = tmp_path / "store"
        for process in [start(runner_script, store), start(runner_script, store)]:
            finish(process)
        assert comparable(store) == uninterrupted
        assert lines(store) == 42


class TestCommand:
    def test_words_of_the_help_are_those_of_the_library(self):
        assert tuple(BUDGETS) == command_module.BUDGETS
        assert WORLDS_OF_THE_PAPER == command_module.WORLDS
        assert SELECTIONS == command_module.SELECTIONS
        assert SEARCHES == command_module.SEARCHES

    def test_list_names_all(self):
        out = invoke("list").output
        for name in (*EXPERIMENTS, "privacy"):
            assert re.search(rf"^{re.escape(name)} +\d+ runs", out, re.MULTILINE)

    def test_no_jobs_is_no_number_of_jobs(self, tmp_path):
        result = invoke("prior-half", "--jobs", 0, "--store", tmp_path / "s")
        assert result.exit_code == 2
        assert "`--jobs` must be at least 1" in result.output
        assert invoke("prior-half", "--slurm", "nonsense", "--store", tmp_path / "s").exit_code == 2
        assert not (tmp_path / "s").exists()

    def test_a_store_where_nothing_can_be_made(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        result = invoke("prior-half", "--tables-only", "--store", tmp_path / "file" / "s")
        assert result.exit_code == 2
        assert "cannot be made or read" in result.output

    def test_unknown_table_names_the_known(self, tmp_path):
        result = invoke("tabel1", "--store", tmp_path / "s")
        assert result.exit_code == 2
        assert "Did you mean 'table1'" in result.output
        assert not (tmp_path / "s").exists()

    def test_tables_of_an_empty_store_are_dashes(self, tmp_path):
        result = invoke("all", "--tables-only", "--store", tmp_path / "s")
        assert result.exit_code == 0, result.output
        folder = tmp_path / "s" / "tables" / "smoke-definition1-last"
        assert {p.stem for p in folder.glob("*.md")} == {*EXPERIMENTS, "privacy", "claims"}
        assert "| `joint` | - |" in (folder / "real-world-0.4.md").read_text()
        assert "No run of this experiment" in (folder / "report.html").read_text()

    def test_privacy_needs_no_runs(self, tmp_path):
        result = invoke("privacy", "--store", tmp_path / "s")
        assert "| triplet (USimUL) | 0.4 | 0.396 |" in result.output

    def test_status(self, tmp_path):
        assert invoke("status", "--store", tmp_path / "s").exit_code == 2
        store = Store(tmp_path / "s")
        spec = RunSpec("digits", "joint", 0.4, 10, 10)
        row = {"key": spec.key, "seed": 0, "spec": spec.to_dict(), "seconds": 3600.0, "when": "2026-01-01"}
        store.append({**row, "status": "failed", "error": "E: why", "traceback": ""})
        store.close()
        result = invoke("status", "--store", tmp_path / "s")
        assert "0 runs done, 1 failed, 0 in work" in result.output
        assert "E: why" in result.output

    def test_a_set_that_is_not_there_says_how_to_get_it(self, tmp_path):
        result = invoke(
            "real-world-0.4",
            "--budget",
            "small",
            "--store",
            tmp_path / "s",
            USIMUL_DATA=str(tmp_path),
            XDG_CACHE_HOME="",
            HOME=str(tmp_path),
        )
        assert result.exit_code == 0, result.output
        assert "data set 'pendigits' is not here" in result.output
        assert "0 runs wanted" in result.output

    def test_damage_is_reported(self, tmp_path):
        Store(tmp_path / "s")
        (tmp_path / "s" / "runs" / "a.jsonl").write_text('{"half')
        result = invoke("prior-half", "--tables-only", "--store", tmp_path / "s")
        assert "cut short by a crash" in result.output

    @pytest.mark.slow
    def test_one_table_from_nothing(self, tmp_path):
        """A real run through the command, one worker: rows, table, figure, page; the second call runs nothing."""
        arguments = ("more-unlabeled", "--store", tmp_path / "s", "--jobs", 1, "--figures", "png")
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        code = "from usimul.cli import main\nif __name__ == '__main__': main()"
        command = [sys.executable, "-c", code, "reproduce", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stderr
        runs = {run.id for run in EXPERIMENTS["more-unlabeled"](BUDGETS["smoke"], "definition1").runs()}
        assert f"{len(runs)} runs wanted, 0 already in the store" in done.stderr
        rows = Store(tmp_path / "s").refresh()
        assert set(rows) == runs
        assert {row["status"] for row in rows.values()} == {"done"}
        folder = tmp_path / "s" / "tables" / "smoke-definition1-last"
        assert (folder / "more-unlabeled.png").stat().st_size > 10_000
        again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
        assert f"{len(runs)} already in the store, 0 to do" in again.stderr
        first = json.loads(next(iter((tmp_path / "s" / "runs").glob("*.jsonl"))).read_text().splitlines()[0])
        assert Run(RunSpec.from_dict(first["spec"]), first["seed"]).id in runs
