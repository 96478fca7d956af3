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


@pytest.fixture(scope="module")
def folder(benchmark, tmp_path_factory):
    """A small file, one of 1 GB that takes little space on the disk, and a model."""
    made = tmp_path_factory.mktemp("memory")
    sizes = benchmark.Sizes(n_triplets=600, n_unlabeled=600, epochs=4)
    benchmark.write_pair(made, "small", 10_000_000, sizes)
    benchmark.write_pair(made, "large", benchmark.GIGA, sizes)
    benchmark.run("model", made, "small", sizes)
    yield made, sizes
    (made / "large.npy").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("task", ["fit", "decision_function", "usimul train", "usimul evaluate", "usimul predict"])
def test_memory_stays_flat_as_the_file_grows(benchmark, folder, task):
    """1 GB takes at most 300 MB more than 10 MB, in fresh processes; a copy would take a thousand."""
    assert (folder[0] / "large.npy").stat().st_size > 0.99 * benchmark.GIGA
    small, large = (benchmark.run(task, folder[0], name, folder[1])["peak"] for name in ("small", "large"))
    assert large - small < 300e6


@pytest.mark.slow
def test_a_copy_would_be_noticed(benchmark, folder):
    assert benchmark.run("fit in memory", folder[0], "large", folder[1])["peak"] > 0.9e9
