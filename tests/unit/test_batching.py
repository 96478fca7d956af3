"""Index batches: every tuple once an epoch, every source in every step, equal sizes."""

import math

import numpy as np
import pytest
import torch

from usimul.batching import IndexBatches, n_steps_per_epoch, pool_tensor

SIZES = [(100, 300, 64), (7, 90, 10), (1, 50, 8), (5, 5, 100), (3, 2, 1), (64, 192, 256), (13, 1000, 101)]


def make(n, m, batch_size, seed=0):
    rng = np.random.default_rng(1)
    sources = {"triplets": rng.integers(0, 500, (n, 3)), "unlabeled": rng.integers(0, 500, (m, 1))}
    return sources, IndexBatches(sources, batch_size, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("n", "m", "batch_size"), SIZES)
class TestEpoch:
    def test_number_of_steps(self, n, m, batch_size):
        sources, batches = make(n, m, batch_size)
        steps = list(batches.epoch())
        assert (
            len(steps) == batches.n_steps == n_steps_per_epoch(sources, batch_size) == math.ceil((n + m) / batch_size)
        )

    def test_every_tuple_once_or_equally_often(self, n, m, batch_size):
        sources, batches = make(n, m, batch_size)
        steps = list(batches.epoch())
        for name, rows in sources.items():
            seen = np.bincount(np.concatenate([index[name].numpy() for index, _ in steps]), minlength=len(rows))
            assert len(seen) == len(rows)
            # A source with fewer tuples than steps goes round again, whole rounds at a time.
            assert set(seen) == {math.ceil(len(steps) / len(rows))}
            if len(rows) >= len(steps):
                assert set(seen) == {1}

    def test_every_source_in_every_step_in_equal_sizes(self, n, m, batch_size):
        _, batches = make(n, m, batch_size)
        steps = list(batches.epoch())
        for name in ("triplets", "unlabeled"):
            sizes = [len(index[name]) for index, _ in steps]
            assert min(sizes) >= 1
            assert max(sizes) - min(sizes) <= 1

    def test_rows_are_those_of_the_positions(self, n, m, batch_size):
        sources, batches = make(n, m, batch_size)
        for index, rows in batches.epoch():
            for name in sources:
                np.testing.assert_array_equal(rows[name].numpy(), sources[name][index[name].numpy()])


class TestOrder:
    def positions(self, batches):
        return [torch.cat([index[name] for index, _ in batches.epoch()]).tolist() for name in ("triplets", "unlabeled")]

    def test_each_epoch_is_shuffled_anew(self):
        _, batches = make(100, 300, 64)
        first, second = self.positions(batches), self.positions(batches)
        assert first != second
        assert first[0] != sorted(first[0])

    def test_the_generator_decides(self):
        assert self.positions(make(100, 300, 64, seed=3)[1]) == self.positions(make(100, 300, 64, seed=3)[1])
        assert self.positions(make(100, 300, 64, seed=3)[1]) != self.positions(make(100, 300, 64, seed=4)[1])

    def test_global_state_is_not_touched(self):
        before = torch.get_rng_state()
        self.positions(make(100, 300, 64)[1])
        assert torch.equal(before, torch.get_rng_state())

    def test_sources_are_copied(self):
        sources, batches = make(10, 10, 5)
        original = sources["triplets"].copy()
        sources["triplets"][:] = -1
        for index, rows in batches.epoch():
            np.testing.assert_array_equal(rows["triplets"].numpy(), original[index["triplets"].numpy()])


class TestPool:
    def test_an_aligned_float32_array_is_shared(self):
        X = np.zeros((4, 2), dtype=np.float32)
        assert np.shares_memory(pool_tensor(X, "cpu").numpy(), X)

    def test_anything_else_becomes_float32_rows(self):
        X = np.arange(12.0).reshape(4, 3)
        for given in (X, np.asfortranarray(X), X.astype(int)):
            pool = pool_tensor(given, "cpu")
            assert pool.dtype == torch.float32
            assert pool.is_contiguous()
            np.testing.assert_array_equal(pool.numpy(), X)

    def test_a_read_only_array_is_copied_without_a_warning(self):
        X = np.ones((4, 2), dtype=np.float32)
        X.setflags(write=False)
        pool = pool_tensor(X, "cpu")
        pool[0, 0] = 5.0
        assert X[0, 0] == 1.0
