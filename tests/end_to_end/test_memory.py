"""Files larger than what a process may take: the memory benchmark at a smaller size."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("memory_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.slow
def test_memory_stays_flat_as_the_file_grows(benchmark, tmp_path):
    """Fitting and predicting on 1 GB takes at most 300 MB more than on 10 MB; a copy would take a thousand."""
    sizes = benchmark.Sizes(n_triplets=600, n_unlabeled=600, epochs=4)
    benchmark.write_pair(tmp_path, "small", 10_000_000, sizes)
    benchmark.write_pair(tmp_path, "large", benchmark.GIGA, sizes)
    assert (tmp_path / "large.npy").stat().st_size > 0.99 * benchmark.GIGA
    for task in ("model", "usimul train", "usimul evaluate", "usimul predict", "decision_function"):
        small, large = (benchmark.run(task, tmp_path, name, sizes)["peak"] for name in ("small", "large"))
        assert large - small < 300e6, task
    in_memory = benchmark.run("fit in memory", tmp_path, "large", sizes)["peak"]
    assert in_memory > 0.9e9  # what is measured does notice a copy
