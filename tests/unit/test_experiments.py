"""Experiments: specs and their keys, the store under crashes, tables against scipy, grids, findings."""

import errno
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import usimul
from usimul.datasets import dataset_names
from usimul.events import EVENTS
from usimul.experiments.claims import CLAIMS, JUDGED, claims_markdown, judge_claims
from usimul.experiments.curves import panels
from usimul.experiments.disclosure import KINDS, disclosure, disclosure_markdown
from usimul.experiments.findings import findings
from usimul.experiments.grid import Cell, Experiment
from usimul.experiments.page import render_page
from usimul.experiments.paper import BUDGETS, EXPERIMENTS, GRID, TRIPLETS, build
from usimul.experiments.runner import missing, open_executor, run_missing
from usimul.experiments.spec import Run, RunSpec
from usimul.experiments.store import Store
from usimul.experiments.tables import make_table, paired_p_values
from usimul.methods import get_method, list_methods
from usimul.report.charts import Series, line_chart
from usimul.supervision import Triplets
from usimul.validation import DiskFullError, FileFormatError, InputError, MissingDependencyError

SOURCE = str(Path(usimul.__file__).parents[1])
TINY = json.dumps({"n_train": 300, "n_test": 200, "prior": 0.4})


def tiny(method="usimul-exact-abs", **changes):
    spec = RunSpec("gaussians", method, 0.4, 60, 60, epochs=1, model="linear", data_options=TINY)
    return replace(spec, **changes)


def row_of(run, accuracy=0.9, status="done", **result):
    content = {"accuracy": accuracy, "up_to_swap": accuracy, "own_risk": 0.1, "measured_on": "toy", **result}
    return {
        "key": run.spec.key,
        "seed": run.seed,
        "spec": run.spec.to_dict(),
        "status": status,
        "seconds": 1.0,
        "when": "2026-01-01T00:00:00+00:00",
        "where": {"host": "h", "system": "s", "cores": 2},
        "versions": {"usimul": "0"},
        **({"result": content} if status == "done" else {"error": "E: broke", "traceback": "Traceback ..."}),
    }


class TestSpec:
    def test_key_knows_everything_but_the_seed(self):
        spec = tiny()
        for name, value in (("prior", 0.3), ("n", 61), ("lr", 0.1), ("selection", "oracle"), ("curve", True)):
            assert replace(spec, **{name: value}).key != spec.key
        assert Run(spec, 1).id != Run(spec, 2).id
        assert Run(spec, 1).id.startswith(spec.key)

    def test_key_does_not_depend_on_how_options_are_written(self):
        assert tiny(options='{"a": 1, "b": 2}').key == tiny(options='{"b":2,"a":1}').key

    def test_key_is_stable(self):
        # Written down on purpose: a change here orphans every store that users have.
        assert RunSpec("digits", "joint", 0.4, 100, 50).key == "".join(
            __import__("hashlib")
            .sha256(b'{"data": "digits", "method": "joint", "n": 100, "n_unlabeled": 50, "prior": 0.4}')
            .hexdigest()[:16]
        )

    def test_editions_are_other_data(self):
        e = build("table1", "small")
        part = e.with_editions({"kmnist": "test-part"}, {"kmnist": "only a part"})
        assert part.notes[-1] == "only a part"
        keys = {run.spec.data: run.spec.key for run in e.runs()}
        again = {run.spec.data: run.spec.key for run in part.runs()}
        assert keys["kmnist"] != again["kmnist"]
        assert keys["mnist"] == again["mnist"]

    def test_round_trip(self):
        spec = tiny(lr=0.1, told=0.3, options='{"lam": 0.5}')
        assert RunSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"prior": 1.0}, "`prior`"),
            ({"told": 0.0}, "`told`"),
            ({"n": 0}, "`n` must be at least 1"),
            ({"world": "definiton1"}, "Did you mean 'definition1'"),
            ({"selection": "best"}, "`selection` must be one of"),
            ({"epochs": 0}, "`epochs`"),
            ({"lr": -1.0}, "`lr`"),
            ({"options": "{"}, "`options` must be a JSON object"),
        ],
    )
    def test_bad_values_are_refused(self, change, message):
        with pytest.raises(InputError, match=message):
            tiny(**change)

    def test_unknown_field_names_the_nearest(self):
        with pytest.raises(InputError, match="Did you mean 'prior'"):
            RunSpec.from_dict({**tiny().to_dict(), "priro": 0.3})
        with pytest.raises(InputError, match="needs the fields method"):
            RunSpec.from_dict({"data": "digits", "prior": 0.4, "n": 1, "n_unlabeled": 0})


class TestStore:
    def test_rows_come_back(self, tmp_path):
        store = Store(tmp_path / "s")
        run = Run(tiny(), 0)
        store.append(row_of(run))
        store.close()
        assert Store(tmp_path / "s").refresh()[run.id]["result"]["accuracy"] == 0.9

    def test_first_row_of_a_run_counts_and_success_replaces_failure(self, tmp_path):
        store, other = Store(tmp_path), Store(tmp_path)
        run = Run(tiny(), 0)
        store.append({**row_of(run, status="failed"), "when": "2026-01-01"})
        store.append({**row_of(run, 0.7), "when": "2026-01-03"})
        other.append({**row_of(run, 0.8), "when": "2026-01-02"})
        assert store.refresh()[run.id]["result"]["accuracy"] == 0.8

    def test_half_a_line_is_cut_off_and_reported(self, tmp_path):
        store = Store(tmp_path)
        runs = [Run(tiny(), seed) for seed in range(3)]
        for run in runs:
            store.append(row_of(run))
        store.close()
        (path,) = (tmp_path / "runs").iterdir()
        content = path.read_bytes()
        path.write_bytes(content[:-40])
        again = Store(tmp_path)
        assert set(again.refresh()) == {runs[0].id, runs[1].id}
        assert "cut short by a crash" in again.damage[0]
        assert path.read_bytes() == b"".join(content.splitlines(keepends=True)[:2])
        assert [run.id for run in missing(runs, again)] == [runs[2].id]

    def test_a_living_writers_half_line_is_left_alone(self, tmp_path):
        writer, reader = Store(tmp_path), Store(tmp_path)
        writer.append(row_of(Run(tiny(), 0)))
        writer._mine.write(b'{"key": "half')
        assert len(reader.refresh()) == 1
        assert reader.damage == []
        writer._mine.write(b'"}\n')
        reader.refresh()
        assert "a line is damaged" in reader.damage[0]

    def test_damage_in_the_middle_costs_one_run(self, tmp_path):
        store = Store(tmp_path)
        for seed in range(3):
            store.append(row_of(Run(tiny(), seed)))
        store.close()
        (path,) = (tmp_path / "runs").iterdir()
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(lines[0] + b"\x00\xff garbage\n" + lines[2])
        again = Store(tmp_path)
        assert {row["seed"] for row in again.refresh().values()} == {0, 2}
        assert "a line is damaged" in again.damage[0]
        assert "garbage" in again.damage[0]

    def test_rows_without_a_result_are_damage(self, tmp_path):
        store = Store(tmp_path)
        row = {"version": 1, "key": "k", "seed": 0, "when": "", "seconds": 1.0, "status": "done"}
        (tmp_path / "runs" / "x.jsonl").write_text(json.dumps(row) + "\n")
        assert store.refresh() == {}
        assert "a line is damaged" in store.damage[0]

    def test_newer_versions_are_refused(self, tmp_path):
        Store(tmp_path / "a")
        (tmp_path / "a" / "store.json").write_text('{"format": "usimul-results", "version": 2}')
        with pytest.raises(FileFormatError, match=r"store of version 2; this usimul reads version 1"):
            Store(tmp_path / "a")
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "store.json").write_text('{"format": "usimul-results", "version": 7}')
        with pytest.raises(FileFormatError):
            Store(tmp_path / "d")
        assert [p.name for p in (tmp_path / "d").iterdir()] == ["store.json"]
        store = Store(tmp_path / "b")
        (tmp_path / "b" / "runs" / "x.jsonl").write_text(
            '{"version": 9, "key": "k", "seed": 0, "status": "done", "when": "", "seconds": 1, "result": {}}\n'
        )
        with pytest.raises(FileFormatError, match="rows of version 9"):
            store.refresh()
        (tmp_path / "c").mkdir()
        (tmp_path / "c" / "store.json").write_text("[]")
        with pytest.raises(FileFormatError, match="not the header of a store"):
            Store(tmp_path / "c")

    def test_full_disk_leaves_whole_lines(self, tmp_path, monkeypatch):
        store = Store(tmp_path)
        store.append(row_of(Run(tiny(), 0)))
        real = store._mine

        class Full:
            def write(self, line):
                real.write(line[:20])
                raise OSError(errno.ENOSPC, "No space left on device")

            def __getattr__(self, name):
                return getattr(real, name)

        monkeypatch.setattr(store, "_mine", Full())
        with pytest.raises(DiskFullError, match="call the same command again"):
            store.append(row_of(Run(tiny(), 1)))
        (path,) = (tmp_path / "runs").iterdir()
        assert len(path.read_bytes().splitlines()) == 1
        assert path.read_bytes().endswith(b"\n")

    @pytest.mark.skipif(sys.platform == "win32", reason="claims are locks that Windows lacks")
    def test_claims_exclude_each_other_and_know_what_is_done(self, tmp_path):
        first, second = Store(tmp_path), Store(tmp_path)
        run = Run(tiny(), 0)
        with first.claim(run.id) as mine:
            assert mine
            with second.claim(run.id) as theirs:
                assert not theirs
            assert second.status()["running"] == 1
            first.append(row_of(run))
        with second.claim(run.id) as again:
            assert not again

    @pytest.mark.skipif(sys.platform == "win32", reason="claims are locks that Windows lacks")
    def test_a_killed_holder_loses_its_claim(self, tmp_path):
        code = f"""
            import sys, time
            from pathlib import Path
            from usimul.experiments.store import Store
            store = Store(Path({str(tmp_path)!r}))
            with store.claim("x-0") as mine:
                print(mine, flush=True)
                time.sleep(60)
        """
        holder = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )
        assert holder.stdout.readline().strip() == b"True"
        store = Store(tmp_path)
        with store.claim("x-0") as mine:
            assert not mine
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
        with store.claim("x-0") as mine:
            assert mine


class TestTables:
    def experiment(self, n_seeds=4, **changes):
        cells = tuple(
            Cell(method, column, (tiny(method, prior=prior),))
            for method in ("pcu", "pc-auc", "usimul-abs", "supervised")
            for column, prior in (("a", 0.3), ("b", 0.6))
        )
        fields = {"name": "t", "title": "T & T", "question": "?", "kind": "table", "axis": "set"}
        return Experiment(**{**fields, "cells": cells, "seeds": tuple(range(n_seeds)), **changes})

    def rows(self, experiment, values):
        return {
            run.id: row_of(run, values[run.spec.method][run.seed])
            for run in experiment.runs()
            if run.seed < len(values[run.spec.method])
        }

    def test_p_values_equal_scipys(self):
        rng = np.random.default_rng(0)
        for n in (3, 5, 10):
            best, other = rng.normal(0.9, 0.01, n), rng.normal(0.89, 0.01, n)
            (found,) = paired_p_values(dict(enumerate(best)), [dict(enumerate(other))])
            assert found == pytest.approx(stats.ttest_rel(best, other).pvalue, rel=1e-9)

    def test_holm_equals_a_plain_loop(self):
        rng = np.random.default_rng(1)
        best = dict(enumerate(rng.normal(0.9, 0.01, 6)))
        others = [dict(enumerate(rng.normal(0.895, 0.01, 6))) for _ in range(5)]
        plain = paired_p_values(best, others)
        expected, running = [None] * 5, 0.0
        for place, index in enumerate(np.argsort(plain)):
            running = max(running, min(1.0, plain[index] * (5 - place)))
            expected[index] = running
        assert paired_p_values(best, others, "holm") == pytest.approx(expected)

    def test_best_second_and_the_ceiling(self):
        e = self.experiment()
        values = {
            "pcu": [0.90, 0.91, 0.92, 0.91],
            "pc-auc": [0.80, 0.81, 0.82, 0.82],
            "usimul-abs": [0.40, 0.41, 0.42, 0.40],
            "supervised": [0.99] * 4,
        }
        table = make_table(e, self.rows(e, values))
        assert [table.cell(m, "a").rank for m in values] == [1, 2, 0, 0]
        assert table.cell("pcu", "a").mean == pytest.approx(91.0)
        assert table.cell("pcu", "a").deviation == pytest.approx(100 * np.std(values["pcu"], ddof=1))

    def test_not_significantly_worse_is_bold_too(self):
        e = self.experiment()
        values = {
            "pcu": [0.9, 0.8, 0.9, 0.8],
            "pc-auc": [0.8, 0.9, 0.79, 0.9],
            "usimul-abs": [0.1] * 4,
            "supervised": [1.0],
        }
        table = make_table(e, self.rows(e, values))
        assert [table.cell(m, "a").rank for m in ("pcu", "pc-auc", "usimul-abs")] == [1, 1, 2]

    def test_fewer_seeds_do_not_compete(self):
        e = self.experiment()
        values = {"pcu": [0.9], "pc-auc": [0.95, 0.7, 0.71, 0.7], "usimul-abs": [0.4] * 4, "supervised": [1.0] * 4}
        table = make_table(e, self.rows(e, values))
        assert [table.cell(m, "a").rank for m in ("pcu", "pc-auc", "usimul-abs")] == [0, 1, 2]

    def test_curves_are_ranked_within_their_data_set(self):
        e = build("more-triplets-0.4", "small")
        rows = {
            run.id: row_of(run, (0.5 if run.spec.data == "mnist" else 0.8) + 0.1 * (run.spec.method == "joint"))
            for run in e.runs()
        }
        table = make_table(e, rows)
        column = e.columns[0]
        assert [table.cell(f"joint, {name}", column).rank for name in ("MNIST", "Fashion")] == [1, 1]

    def test_the_papers_claim_is_about_the_published_methods(self):
        e = build("table1", "smoke")
        rows = {
            run.id: row_of(run, {"usimul-abs": 0.9, "joint": 0.95, "supervised": 0.99}.get(run.spec.method, 0.7))
            for run in e.runs()
        }
        said = " ".join(findings(make_table(e, rows)))
        assert "holds in 6 of 6 columns" in said
        e = build("correction", "smoke")
        rows = {run.id: row_of(run, 0.9) for run in e.runs()}
        assert "claim" not in " ".join(findings(make_table(e, rows)))

    def test_what_was_measured_on_is_named(self):
        e = self.experiment(1)
        rows = {run.id: row_of(run, measured_on="Kuzushiji-MNIST test part, 8,000 / 2,000") for run in e.runs()}
        table = make_table(e, rows)
        for text in (table.markdown(), table.latex(), table.terminal(200)):
            assert "Kuzushiji-MNIST test part, 8,000 / 2,000" in text

    def test_a_cell_not_run_is_a_dash_and_a_half_run_one_says_so(self):
        e = self.experiment()
        table = make_table(e, self.rows(e, {"pcu": [0.9, 0.8], "pc-auc": [], "usimul-abs": [], "supervised": []}))
        assert table.cell("pc-auc", "a").text() == "-"
        assert table.cell("pcu", "a").text().endswith("(2/4)")
        assert table.n_missing == 8 * 4 - 4
        assert "preliminary" in findings(table)[0]

    def test_failed_cells_say_so(self):
        e = self.experiment(1)
        run = next(e.runs())
        table = make_table(e, {run.id: row_of(run, status="failed")})
        assert table.cell(run.spec.method, "a").text() == "failed"

    def test_search_takes_the_least_label_free_risk_or_the_test_label_best(self):
        e = self.experiment(1)
        cell = Cell("pcu", "a", tuple(tiny("pcu", lr=lr) for lr in (0.1, 0.01)))
        e = replace(e, cells=(cell,))
        rows = {}
        for spec, accuracy, risk in zip(cell.specs, (0.7, 0.8), (0.1, 0.2), strict=True):
            run = Run(spec, 0)
            rows[run.id] = row_of(run, accuracy, own_risk=risk)
        assert make_table(e, rows, search="label-free").cell("pcu", "a").mean == pytest.approx(70.0)
        oracle = make_table(e, rows, search="oracle")
        assert oracle.cell("pcu", "a").mean == pytest.approx(80.0)
        assert any(line.startswith("ORACLE") for line in oracle.legend())
        # With a setting missing nothing may be chosen: the choice would depend on what happens to be there.
        rows.popitem()
        assert make_table(e, rows, search="label-free").cell("pcu", "a").text() == "-"

    def test_formats(self):
        e = self.experiment(3, paper={("usimul-abs", "a"): 95.36})
        values = {m: [0.5 + 0.1 * i, 0.51 + 0.1 * i, 0.52 + 0.1 * i] for i, m in enumerate(e.rows)}
        table = make_table(e, self.rows(e, values))
        assert "[paper: 95.36]" in table.markdown()
        tex = table.latex()
        assert tex.count("{") == tex.count("}")
        assert r"T \& T" in tex
        body = tex[tex.index(r"\midrule") : tex.index(r"\bottomrule")]
        assert all(line.count("&") == 2 for line in body.splitlines()[1:] if line)
        assert all(len(line) <= 80 for line in table.terminal(80).splitlines())
        lines = table.csv().splitlines()
        assert len(lines) == 1 + len(e.cells)
        assert "0:0.5" in lines[1]


class TestClaims:
    """Every rule is met once by numbers that keep it and once by numbers that break it."""

    ACCURACY = {"usimul-abs": 0.3, "usimul": 0.35, "usimul-exact-abs": 0.8, "usimul-exact": 0.7, "joint": 0.95}  # noqa: RUF012

    def verdicts(self, name, value, **result):
        e = build(name, "small")
        made = {}
        for run in e.runs():
            made[run.id] = row_of(run, value(run.spec), **{k: v(run.spec) for k, v in result.items()})
        return {(v.claim.experiments[0], v.claim.words, v.method): v for v in judge_claims([make_table(e, made)], made)}

    def counts(self, found, words):
        by_method = {method: v for (_, said, method), v in found.items() if words in said}
        return [(by_method[m].held, by_method[m].seen) for m in JUDGED]

    def test_learning_and_being_ahead(self):
        found = self.verdicts("table1", lambda spec: self.ACCURACY.get(spec.method, 0.85))
        n = len(build("table1", "small").columns)
        assert self.counts(found, "learns from") == [
            (0, 0),
            (0, n),
            (n // 3 * 2, n),
            (n, n),
        ]  # 0.8 is the share at prior 0.2
        assert self.counts(found, "ahead of the ten") == [(0, 0), (0, n), (0, n), (n, n)]

    def test_correction(self):
        found = self.verdicts("correction", lambda spec: self.ACCURACY.get(spec.method, 0.5))
        n = len(build("correction", "small").columns)
        assert self.counts(found, "correction helps") == [(0, 0), (0, n), (n, n), (0, 0)]

    def test_a_wrong_prior(self):
        off = {"usimul-abs": 0.2, "joint": 0.01}
        found = self.verdicts(
            "wrong-prior-0.4", lambda spec: 0.9 - (0.0 if spec.told is None else off.get(spec.method, 0.0))
        )
        assert self.counts(found, "inaccurate prior") == [(0, 0), (0, 4), (4, 4), (4, 4)]

    @pytest.mark.parametrize(
        ("name", "words"), [("more-triplets-0.4", "More triplets"), ("more-unlabeled", "More unl")]
    )
    def test_more_data(self, name, words):
        found = self.verdicts(
            name, lambda spec: 0.5 + 1e-5 * (spec.n + spec.n_unlabeled) * (-1 if spec.method == "usimul-abs" else 1)
        )
        assert self.counts(found, words) == [(0, 0), (0, 2), (2, 2), (2, 2)]

    def test_steady_training(self):
        curves = {"usimul-abs": [0.5, 0.9, 0.7], "joint": [0.5, 0.9, 0.89]}
        found = self.verdicts("convergence", lambda spec: 0.9, by_epoch=lambda spec: curves.get(spec.method, [0.9]))
        assert self.counts(found, "steady") == [(0, 0), (0, 2), (2, 2), (2, 2)]

    def test_a_constant_bears_nothing_and_is_not_steady(self):
        found = self.verdicts("wrong-prior-0.4", lambda spec: 0.6)
        assert self.counts(found, "inaccurate prior") == [(0, 0), (0, 4), (0, 4), (0, 4)]
        found = self.verdicts("convergence", lambda spec: 0.6, by_epoch=lambda spec: [0.6, 0.6])
        assert self.counts(found, "steady") == [(0, 0), (0, 2), (0, 2), (0, 2)]

    def test_the_uncorrected_one_is_found_in_the_other_table(self):
        tables, rows = [], {}
        for name in ("table1", "correction"):
            e = build(name, "small")
            rows.update({r.id: row_of(r, {"usimul": 0.99}.get(r.spec.method, 0.85)) for r in e.runs()})
            tables.append(make_table(e, rows))
        found = {(v.claim.words, v.method): v for v in judge_claims(tables, rows)}
        ahead = next(v for (words, method), v in found.items() if "ahead" in words and method == "usimul")
        assert (ahead.held, ahead.seen) == (6, 6)  # MNIST and Fashion at three priors

    def test_the_released_experiment_is_run_without_a_correction(self):
        for name in ("table1", "wrong-prior-0.4", "more-triplets-0.4", "convergence"):
            methods = {run.spec.method for run in build(name, "small", "release").runs()}
            assert {"usimul", "usimul-abs"} <= methods, name

    def test_what_was_not_run_is_not_counted(self):
        e = build("table1", "small", "release")
        verdicts = judge_claims([make_table(e, {})], {})
        assert {str(verdict) for verdict in verdicts} == {"-"}
        said = claims_markdown(verdicts, "release")
        assert said.count("| - | - | - | - |") == len(CLAIMS)
        assert "Full privacy protection" in said


class TestGrids:
    @pytest.mark.parametrize("budget", BUDGETS)
    @pytest.mark.parametrize("world", ["definition1", "release"])
    @pytest.mark.parametrize("name", EXPERIMENTS)
    def test_every_experiment_is_valid(self, name, budget, world):
        e = build(name, budget, world)
        assert e.name == name
        for run in e.runs():
            method = get_method(run.spec.method)
            assert run.spec.data in dataset_names()
            told = run.spec.told or run.spec.prior
            assert method.defined_at_half or told != 0.5
            if run.spec.world == "release":
                assert method.supervision is Triplets
                assert run.spec.prior == 0.4

    def test_triplet_methods_are_all_named(self):
        assert set(TRIPLETS) == {m.name for m in list_methods() if m.supervision is Triplets}

    def test_search_spans_the_grid(self):
        e = build("table1", "smoke", search=True)
        assert all(len(cell.specs) == len(GRID) for cell in e.cells)

    @pytest.mark.parametrize("arguments", [("tabel1", "smoke"), ("table1", "smal"), ("table1", "smoke", "relase")])
    def test_unknown_words_name_the_known_ones(self, arguments):
        with pytest.raises(InputError, match="Did you mean"):
            build(*arguments)

    def test_light_modules_import_no_torch(self):
        modules = ("spec", "store", "grid", "paper", "tables", "findings", "claims", "curves", "page", "disclosure")
        code = (
            "import sys;"
            + ";".join(f"import usimul.experiments.{m}" for m in modules)
            + ";print('torch' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": SOURCE}
        )
        assert done.stdout.strip() == "False", done.stderr


class TestFiguresAndPage:
    def sweep(self):
        e = replace(build("more-triplets-0.4", "smoke"), seeds=(0, 1, 2))
        rows = {run.id: row_of(run, 0.5 + run.spec.n / 1000) for run in e.runs()}
        return e, rows

    def test_sweep_panels_hold_the_means(self):
        e, rows = self.sweep()
        (panel,) = panels(make_table(e, rows), rows)
        assert panel.title == "digits"
        assert list(panel.curves[0].at) == [80.0, 240.0, 400.0]
        assert panel.curves[0].values == pytest.approx([58.0, 74.0, 90.0])

    def test_convergence_is_cut_to_the_shortest_run(self):
        e = build("convergence", "smoke")
        rows = {run.id: row_of(run, by_epoch=[0.5, 0.6, 0.7][: 3 - run.seed]) for run in e.runs()}
        (panel,) = panels(make_table(e, rows), rows)
        assert panel.curves[0].values == pytest.approx([50.0, 60.0])

    @pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
    def test_figure_files(self, tmp_path, suffix):
        from usimul.experiments.figures import save_figure

        e, rows = self.sweep()
        path = save_figure(make_table(e, rows), rows, tmp_path / f"f.{suffix}")
        start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
        assert path.read_bytes().startswith(start)

    def test_without_matplotlib_the_line_that_fixes_it(self, tmp_path, monkeypatch):
        from usimul.experiments import figures

        real = importlib.import_module

        def absent(name, *rest):
            if name.startswith("matplotlib"):
                raise ImportError(name)
            return real(name, *rest)

        monkeypatch.setattr(figures.importlib, "import_module", absent)
        e, rows = self.sweep()
        with pytest.raises(MissingDependencyError, match=r"usimul\[plots\]"):
            figures.save_figure(make_table(e, rows), rows, tmp_path / "f.png")

    def test_page_needs_nothing_from_elsewhere(self):
        e, rows = self.sweep()
        run = next(e.runs())
        rows[run.id] = row_of(run, status="failed")
        page = render_page([make_table(e, rows)], rows, heading="<H>", command="c", budget="b", extra="x")
        assert "&lt;H&gt;" in page
        assert "default-src 'none'" in page
        assert "http" not in page.replace("http-equiv", "")
        assert "E: broke" in page

    def test_chart_places_and_bars(self):
        chart = line_chart(
            [Series("a", [50.0, 60.0], 0, at=[100.0, 200.0], spread=[0.0, 5.0])],
            title="t",
            x_label="x",
            y_label="y",
        )
        assert chart.count("<circle") == 2
        assert chart.count('class="bar s0"') == 1


class TestDisclosure:
    @pytest.mark.parametrize("prior", [0.1, 0.4, 0.8])
    @pytest.mark.parametrize("name", KINDS)
    def test_equals_brute_force(self, name, prior):
        event = KINDS[name]
        weights = {y: math.prod(prior if v else 1 - prior for v in y) for y in event.admissible}
        total = sum(weights.values())
        found = disclosure(event, prior)
        assert found.bits == pytest.approx(-math.log2(total), abs=1e-12)
        best = 0.0
        for member in range(event.size):
            for other in range(event.size):
                for label in (0, 1):
                    fits = {y: w for y, w in weights.items() if y[other] == label}
                    if member != other and fits:
                        share = sum(w for y, w in fits.items() if y[member]) / sum(fits.values())
                        best = max(best, share, 1 - share)
        assert found.one_known == pytest.approx(best, abs=1e-12)

    def test_numbers_of_the_theory(self):
        # Highest of 1/(1+q), p/(1+p), p/Z and their complements: P(y = - given y' = -) = q/Z.
        d = disclosure(EVENTS["triplet"], 0.2)
        assert d.one_known == pytest.approx(0.8 / 0.84)
        assert d.rest_known == 1.0
        assert "| triplet (USimUL) | 0.4 |" in disclosure_markdown()


@pytest.mark.slow
class TestRunner:
    def runs(self, n=6):
        return [Run(tiny(method), seed) for method in ("usimul-exact-abs", "supervised") for seed in range(n // 2)]

    def test_runs_what_is_missing_and_nothing_else(self, tmp_path):
        store = Store(tmp_path)
        runs = self.runs()
        broken = Run(tiny("confdiff-abs", options='{"nonsense": 1}'), 0)
        seen = []
        failed = run_missing([*runs, broken, runs[0]], store, open_executor(2), progress=lambda *p: seen.append(p))
        assert failed == 1
        rows = store.refresh()
        assert "nonsense" in rows[broken.id]["error"]
        assert "Traceback" in rows[broken.id]["traceback"]
        assert seen[-1][:3] == (6, 1, 7)
        assert missing([*runs, broken], store) == []
        assert missing([broken], store, retry_failed=True) == [broken]
        lines = sum(len(p.read_bytes().splitlines()) for p in (tmp_path / "runs").iterdir())
        assert lines == 7

    def test_one_process_and_two_give_the_same_rows(self, tmp_path):
        results = []
        for jobs in (1, 2):
            store = Store(tmp_path / str(jobs))
            run_missing(self.runs(), store, open_executor(jobs))
            results.append(comparable(store))
        assert results[0] == results[1]
        assert len(results[0]) == 6

    def test_the_best_epoch_by_labels_at_prior_half_is_up_to_a_swap(self, tmp_path):
        options = json.dumps({"n_train": 300, "n_test": 200, "prior": 0.5})
        spec = tiny("joint-likelihood", prior=0.5, epochs=6, selection="oracle", curve=True, data_options=options)
        store = Store(tmp_path)
        run_missing([Run(spec, 0)], store, open_executor(1))
        ((_, row),) = store.refresh().items()
        by_epoch = row["result"]["by_epoch"]
        assert row["result"]["up_to_swap"] == max(max(a, 1 - a) for a in by_epoch)

    def test_curves_hold_the_attempt_that_was_kept(self, tmp_path):
        # So short a training stays on the plateau, and is started again with more epochs.
        spec = tiny("joint-plain", model="mlp", epochs=1, curve=True)
        store = Store(tmp_path)
        run_missing([Run(spec, 0)], store, open_executor(1))
        ((_, row),) = store.refresh().items()
        assert row["result"]["restarts"] > 0
        assert len(row["result"]["by_epoch"]) == row["result"]["epochs"] == len(row["result"]["risk"])

    def test_a_full_disk_is_no_failed_run(self, tmp_path, monkeypatch):
        from usimul.experiments import execute

        def full(*given):
            raise DiskFullError("full")

        monkeypatch.setattr(execute, "_execute", full)
        with pytest.raises(DiskFullError):
            execute.execute(Run(tiny(), 0), tmp_path)

    def test_waits_for_a_run_that_another_process_has_claimed(self, tmp_path, monkeypatch):
        monkeypatch.setattr("usimul.experiments.runner.REVIVALS", 1)
        other, store = Store(tmp_path), Store(tmp_path)
        run = Run(tiny(), 0)
        seen = []

        def progress(*told):
            seen.append(told)
            if len(seen) == 5:  # more rounds than a dying pool is given
                other.append(row_of(run))
                claim.__exit__(None, None, None)

        claim = other.claim(run.id)
        claim.__enter__()
        assert run_missing([run], store, open_executor(1), progress=progress) == 0
        assert store.rows[run.id]["result"]["measured_on"] == "toy"

    def test_a_dask_cluster_gives_the_same_rows(self, tmp_path):
        distributed = pytest.importorskip("distributed")
        store = Store(tmp_path / "local")
        run_missing(self.runs(), store, open_executor(2))
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster:
            other = Store(tmp_path / "dask")
            run_missing(self.runs(), other, open_executor(2, cluster.scheduler_address))
        assert comparable(other) == comparable(store)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [((0,), "`jobs` must be at least 1"), ((1, "tcp://127.0.0.1:1", {}), "choose one of")],
    )
    def test_bad_engines(self, arguments, message):
        with pytest.raises(InputError, match=message):
            open_executor(*arguments)


TIMES = ("seconds", "cpu_seconds", "when", "where")


def comparable(store):
    """Rows without what differs from run to run: times, machine."""
    found = {}
    for identity, row in store.refresh().items():
        kept = {k: v for k, v in row.items() if k not in TIMES}
        kept["result"] = {k: v for k, v in kept["result"].items() if k != "train_seconds"}
        found[identity] = kept
    return found
