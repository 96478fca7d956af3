"""Rows of mapped files, and the pool over them: NumPy on the whole array says what must come out."""

import mmap
import re

import numpy as np
import pytest
import torch

from usimul import mapped
from usimul.batching import MappedPool, TensorPool, as_pool
from usimul.mapped import Rows, is_mapped
from usimul.points import read_points
from usimul.validation import InputError

DTYPES = ["float32", "float64", "float16", "uint8", "int16", "int64", ">f4", "bool"]
N, D = 500, 7


def numbers(dtype, shape=(N, D)):
    return (np.random.default_rng(0).normal(100, 30, shape)).astype(dtype)


@pytest.fixture
def save(tmp_path):
    def saved(array, mode="r"):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, array)
        return np.load(path, mmap_mode=mode)

    return saved


@pytest.fixture(params=["one piece", "small pieces"])
def pieces(request, monkeypatch):
    """Everything at once, and as if the file were far larger than what may be resident."""
    if request.param == "small pieces":
        monkeypatch.setattr(mapped, "RESIDENT", 200)
        monkeypatch.setattr(mapped, "WINDOW", 16)
        monkeypatch.setattr(mapped, "BLOCK_VALUES", 3 * D)
    return request.param


def layouts(save, array):
    """The same rows from files that hold them in other ways."""
    turned = np.ascontiguousarray(np.moveaxis(array.reshape(N, D, 1, 1), 1, 3))
    wide = np.zeros((2 * N, 2 * D), array.dtype)
    wide[::-2, ::2] = array
    return {
        "C": save(array),
        "Fortran": save(np.asfortranarray(array)),
        "images": save(array.reshape(N, 1, D, 1)),
        "channels last": np.moveaxis(save(turned), 3, 1),
        "part": save(np.concatenate([array, array]))[N:],
        "every other, backwards": save(wide)[::-2, ::2],
    }


class TestIsMapped:
    def test_views_of_a_file_are(self, save):
        X = save(numbers("float32"))
        assert all(map(is_mapped, (X, X[3:9], X.T, X[:, ::2], X.reshape(-1, 1))))

    def test_copies_are_not(self, save):
        X = save(numbers("float32"))
        copy = X.copy()
        assert isinstance(copy, np.memmap)
        assert not any(map(is_mapped, (copy, X[[1, 2]], X + 1, np.array(X), [[1.0]], None)))


@pytest.mark.usefixtures("pieces")
class TestRows:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_take(self, save, dtype):
        array = numbers(dtype)
        for rows in (np.arange(N), np.random.default_rng(1).integers(0, N, 3 * N), np.array([4, 4, 2]), np.array([5])):
            found = Rows(save(array)).take(rows)
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, array[rows].astype(np.float32))

    @pytest.mark.parametrize("name", ["C", "Fortran", "images", "channels last", "part", "every other, backwards"])
    def test_layouts(self, save, name):
        array = numbers("float32")
        rows = Rows(layouts(save, array)[name])
        some = np.random.default_rng(1).integers(0, N, 50)
        assert rows.shape == (N, D)
        np.testing.assert_array_equal(rows.take(some), array[some])
        np.testing.assert_array_equal(np.concatenate([part for _, part in rows.chunks(13)]), array)
        np.testing.assert_allclose(rows.moments().mean, array.astype(np.float64).mean(axis=0))

    def test_channels_come_first(self, save):
        images = numbers("uint8", (10, 4, 5, 3))
        rows = Rows(np.moveaxis(save(images), 3, 1))
        np.testing.assert_array_equal(rows.take(np.arange(10)), images.transpose(0, 3, 1, 2).reshape(10, -1))

    def test_chunks_are_numbered_and_can_be_written_to(self, save):
        X = save(numbers("float32"))
        starts = []
        for start, part in Rows(X).chunks(64):
            np.testing.assert_array_equal(part, X[start : start + 64])
            part[:] = 0
            starts.append(start)
        assert starts == list(range(0, N, 64))

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("chosen", [None, [3, 3, 499, 0, 77, 5]])
    def test_moments(self, save, dtype, chosen):
        array = numbers(dtype)
        rows = None if chosen is None else np.array(chosen)
        found = Rows(save(array)).moments(rows)
        wide = (array if chosen is None else array[chosen]).astype(np.float32).astype(np.float64)
        mean, deviation = found.by_feature()
        np.testing.assert_allclose(mean, wide.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(deviation, wide.std(axis=0, ddof=1), rtol=1e-9)
        np.testing.assert_allclose(found.overall(), (wide.mean(), wide.std(ddof=1)), rtol=1e-9)

    def test_a_large_mean_does_not_drown_the_deviation(self, save):
        """Sums of squares would lose it: the mean is 2^20 times the deviation, its square 2^40 times the variance."""
        array = (2.0**20 + np.random.default_rng(0).integers(-1, 2, (N, D))).astype(np.float32)
        _, deviation = Rows(save(array)).moments().by_feature()
        np.testing.assert_allclose(deviation, (array.astype(np.float64) - 2.0**20).std(axis=0, ddof=1), rtol=1e-9)

    def test_one_row_does_not_vary(self, save):
        moments = Rows(save(numbers("float32", (1, D)))).moments()
        assert (moments.by_feature()[1] == 0).all()


class TestBadNumbers:
    def bad(self, save, rows=(3, 8, 20, 21, 22, 400)):
        array = numbers("float64")
        array[list(rows), 2] = [np.nan, np.inf, -np.inf, 1e60, np.nan, np.nan][: len(rows)]
        return save(array)

    @pytest.mark.usefixtures("pieces")
    def test_all_of_a_file_are_found(self, save):
        X = self.bad(save)
        expected = (
            f"`X`, mapped from {str(X.filename)!r}, must hold finite numbers that fit into float32. Row 3, column 2 is "
            "nan; 6 of 500 rows looked at are such: 3, 8, 20, 21, 22 and 1 more. Drop or impute such rows."
        )
        with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
            as_pool(X).check()

    def test_those_of_a_chunk_are_found(self, save):
        words = r"Row 3, column 2 is nan; 5 of 64 rows looked at are such: 3, 8, 20, 21, 22\. Drop"
        with pytest.raises(InputError, match=words):
            list(Rows(self.bad(save)).chunks(64))

    def test_those_that_are_taken_are_found(self, save):
        rows = Rows(self.bad(save), "'points'")
        assert np.isfinite(rows.take(np.array([1, 2, 4]))).all()
        with pytest.raises(InputError, match=r"^'points' must .* Row 21, column 2 is 1e\+60; 2 of 3 rows .*: 21, 22\."):
            rows.take(np.array([22, 2, 21]))

    def test_those_of_a_part_are_numbered_as_in_the_file(self, save):
        with pytest.raises(InputError, match=r"Row 8, column 2 is inf; 2 of 4 rows looked at are such: 8, 400\."):
            as_pool(self.bad(save)).part(np.array([400, 1, 8, 9])).check()

    @pytest.mark.parametrize(
        ("array", "match"),
        [
            (np.zeros(5), r"points as rows, shape \(n, features\). Got shape \(5,\)"),
            (np.zeros((5, 2), dtype=complex), "real numbers. Got dtype complex128"),
            (np.array([["a", "b"]]), "real numbers. Got dtype <U1"),
        ],
    )
    def test_what_is_no_table_of_numbers(self, save, array, match):
        with pytest.raises(InputError, match=match):
            as_pool(save(array))

    def test_no_rows(self, save):
        with pytest.raises(InputError, match=r"Got shape \(0, 7\)"):
            Rows(save(numbers("float32"))[:0])


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="this system does not take pages back on request")
class TestPages:
    def test_what_a_caller_wrote_into_private_pages_stays(self, save):
        X = save(numbers("float32"), mode="c")
        X[5] = 1.0
        rows = Rows(X)
        rows.moments()
        rows.release()
        assert (X[5] == 1.0).all()
        assert (rows.take(np.array([5])) == 1.0).all()

    @pytest.mark.parametrize("view", [np.asarray, lambda X: X.view(np.ndarray), lambda X: np.asarray(X[1:])[:, 1:]])
    def test_private_pages_stay_behind_views_that_do_not_know_the_mode(self, save, view):
        X = save(numbers("float32"), mode="c")
        X[:] = 1.0
        read_points(view(X))
        assert (X == 1.0).all()

    def test_pages_of_no_file_stay(self):
        X = np.ndarray((N, D), np.float32, buffer=mmap.mmap(-1, N * D * 4, flags=mmap.MAP_PRIVATE))
        X[:] = 1.0
        Rows(X).release()
        assert (X == 1.0).all()

    @pytest.mark.parametrize("mode", ["r", "r+"])
    def test_of_a_file_are_given_back_behind_views(self, save, mode):
        X = save(numbers("float32"), mode=mode)
        assert [Rows(view)._map for view in (X, X[3:], np.asarray(X), X.view(np.ndarray)[:, 1:])] == [X._mmap] * 4

    def test_what_a_caller_wrote_into_shared_pages_stays(self, save):
        X = save(numbers("float32"), mode="r+")
        X[5] = 1.0
        Rows(X).release()
        assert (X[5] == 1.0).all()

    @pytest.mark.parametrize("read", ["take", "chunks", "moments"])
    def test_are_given_back_while_reading(self, save, monkeypatch, read):
        monkeypatch.setattr(mapped, "RESIDENT", 1 << 12)
        monkeypatch.setattr(mapped, "BLOCK_VALUES", 100)
        rows = Rows(save(numbers("float32")))
        counted = []
        monkeypatch.setattr(rows, "release", lambda: counted.append(1))
        {
            "take": lambda: rows.take(np.arange(N)),
            "chunks": lambda: list(rows.chunks(50)),
            "moments": rows.moments,
        }[read]()
        assert len(counted) >= N * D * 4 // (1 << 12)


class TestPools:
    @pytest.fixture(params=["in memory", "mapped"])
    def pool(self, request, save):
        array = numbers("float32")
        return as_pool(array if request.param == "in memory" else save(array))

    def test_kinds(self, save):
        array = numbers("float32")
        assert isinstance(as_pool(array), TensorPool)
        assert isinstance(as_pool(torch.from_numpy(array)), TensorPool)
        pool = as_pool(save(array))
        assert isinstance(pool, MappedPool)
        assert as_pool(pool) is pool

    def test_both_answer_alike(self, pool):
        array = numbers("float32")
        pool.check()
        assert (pool.shape, len(pool), pool.device) == ((N, D), N, torch.device("cpu"))
        rows = torch.tensor([7, 7, 499, 0])
        np.testing.assert_array_equal(pool.gather(rows).numpy(), array[rows.numpy()])
        np.testing.assert_array_equal(torch.cat(list(pool.chunks(64))).numpy(), array)
        assert max(len(part) for part in pool.chunks(64)) == 64
        for by_feature, axis in ((True, 0), (False, None)):
            mean, deviation = pool.moments(by_feature=by_feature)
            np.testing.assert_allclose(mean.numpy(), array.mean(axis=axis, dtype=np.float64), rtol=1e-5)
            np.testing.assert_allclose(deviation.numpy(), array.std(axis=axis, dtype=np.float64, ddof=1), rtol=1e-4)

    def test_parts_of_parts(self, pool):
        array = numbers("float32")
        part = pool.part(np.array([9, 3, 3, 250, 40])).part(np.array([4, 1, 0]))
        expected = array[[40, 3, 9]]
        assert part.shape == (3, D)
        np.testing.assert_array_equal(part.gather(torch.tensor([2, 0])).numpy(), expected[[2, 0]])
        np.testing.assert_array_equal(torch.cat(list(part.chunks(2))).numpy(), expected)
        np.testing.assert_allclose(part.moments(by_feature=True)[0].numpy(), expected.mean(axis=0), rtol=1e-5)

    def test_an_empty_part(self, pool):
        part = pool.part(np.zeros(0, dtype=np.int64))
        assert len(part) == 0
        assert list(part.chunks(5)) == []

    def test_long_rows_come_fewer_together(self, save, monkeypatch):
        monkeypatch.setattr("usimul.batching.CHUNK_VALUES", 10 * D)
        assert {len(part) for part in as_pool(save(numbers("float32"))).chunks(8192)} == {10}

    def test_the_file_is_read_once_for_all_moments(self, save, monkeypatch):
        pool = as_pool(save(numbers("float32")))
        pool.check()
        monkeypatch.setattr(Rows, "moments", None)
        pool.check()
        pool.moments(by_feature=True)
        pool.moments(by_feature=False)
