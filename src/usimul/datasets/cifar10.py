"""CIFAR-10: small colour photographs of animals and vehicles."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.datasets.checksums import check_file
from usimul.datasets.mnist import CONFDIFF
from usimul.datasets.packed import flatten_images, load_packed
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task
from usimul.datasets.unpickle import load_plain_pickle
from usimul.validation import FileFormatError

__all__ = ["CIFAR10"]

_SHAPE = (3, 32, 32)
_FOLDER = "cifar-10-batches-py"
_TEST = "test_batch"
_BATCHES = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    _TEST: "40351d587109b95175f43aff81a1287e",
}
_LARGEST_MEMBER = 1 << 26  # twice what a batch has: a damaged header must not fill the memory

Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]


def _join(batches: Iterable[Batch], n_test: int) -> RawData:
    """Put batches together, of which the last, with ``n_test`` rows, is the test part."""
    X, classes = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return RawData(X, classes, n_train=len(X) - n_test, image_shape=_SHAPE)


def _parse_batch(raw: bytes, what: str) -> Batch:
    batch: dict[str, Any] = load_plain_pickle(raw, what)
    X, labels = batch.get("data"), batch.get("labels")
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != 3072 or not isinstance(labels, list):
        raise FileFormatError(
            f"{what}: expected a batch of CIFAR-10, with `data` of shape (n, 3072) and a list of `labels`; "
            f"found the entries {', '.join(batch) or 'none'}. It is of another set or version."
        )
    if len(labels) != len(X) or not all(isinstance(label, int) and 0 <= label <= 9 for label in labels):
        raise FileFormatError(f"{what}: expected {len(X)} labels from 0 to 9, found {len(labels)} or others.")
    return X, np.array(labels, dtype=np.int64)


def _read_tar(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    (file,) = edition.files
    path = paths[file.name]
    check_file(path, file)
    batches: dict[str, Batch] = {}
    try:
        # Never extracted: names and links in an archive may point outside of any folder.
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                if folder != _FOLDER or name not in _BATCHES:
                    continue
                content = archive.extractfile(member) if member.isreg() and member.size <= _LARGEST_MEMBER else None
                if content is None:
                    raise FileFormatError(
                        f"{path}: expected {member.name} as a plain file of at most {_LARGEST_MEMBER} bytes, found a "
                        f"link or a larger one. It is not the published archive; get it again."
                    )
                batches[name] = _parse_batch(content.read(), f"{path}: {member.name}")
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise FileFormatError(f"{path}: expected a whole .tar.gz file, found a damaged one ({error}).") from error
    missing = [name for name in _BATCHES if name not in batches]
    if missing:
        raise FileFormatError(
            f"{path}: expected the six batches of CIFAR-10 in {_FOLDER}/; {', '.join(missing)} not found. "
            "Get the python version of the set, cifar-10-python.tar.gz."
        )
    return _join([batches[name] for name in _BATCHES], len(batches[_TEST][0]))


def _read_folder(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    batches = []
    for file in edition.files:
        path = paths[file.name]
        check_file(path, file)
        batches.append(_parse_batch(path.read_bytes(), str(path)))
    return _join(batches, len(batches[-1][0]))


def _read_packed(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    batches = []
    for file in edition.files:
        check_file(paths[file.name], file)
        fields = load_packed(paths[file.name], "y")
        batches.append((flatten_images(fields["x"]), fields["y"].astype(np.int64)))
    return _join(batches, len(batches[-1][0]))


CIFAR10 = DatasetRecord(
    name="cifar10",
    title="CIFAR-10",
    summary="colour photographs of 32x32 pixels, animals against vehicles (60,000 points)",
    source="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence="not stated",
    citation="Krizhevsky (2009), Learning multiple layers of features from tiny images",
    class_names=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    editions=(
        Edition(
            "official",
            _read_tar,
            files=(
                DataFile(
                    "cifar-10-python.tar.gz",
                    packed_sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
                    n_bytes=170_498_071,
                ),
            ),
            base_url="https://www.cs.toronto.edu/~kriz/",
        ),
        Edition(
            "official-folder",
            _read_folder,
            files=tuple(DataFile(f"{_FOLDER}/{name}", md5=md5) for name, md5 in _BATCHES.items()),
            by_hand=f"Unpack cifar-10-python.tar.gz in the sub-folder cifar10, so that {_FOLDER} lies there.",
        ),
        Edition(
            "packed-part",
            _read_packed,
            files=(
                DataFile(
                    "data_batch_1.npz.xz",
                    "7e6f768b0a2a490b7641dcc7fe920ac8b2e25fdf641ff7f6691342c3c79abdfe",
                    16_544_780,
                ),
                DataFile(
                    "data_batch_2.npz.xz",
                    "bfc91ffe3d99e93e81a009756828ebd47d573b86b51dc57baf2fa06d2587adb4",
                    16_592_256,
                ),
                DataFile(
                    "data_batch_3.npz.xz",
                    "edff0dd8f8a21b6696f28c2884b386d82f2b3fb26b79077b0f7e2a10f896d4a1",
                    16_588_280,
                ),
                DataFile(
                    "test_batch.npz.xz", "998403388849e5541eab8f3f3012041d6fa66f17ccc22a464dd3db9c4d67b0ee", 16_567_788
                ),
            ),
            by_hand="These archives are not published; get the official files instead.",
            part="batches 1 to 3 and test batch",
        ),
    ),
    tasks=(
        Task(
            "animals-vehicles",
            (2, 3, 4, 5, 6, 7),
            (0, 1, 8, 9),
            "+1: bird cat deer dog frog horse, -1: airplane automobile ship truck",
            CONFDIFF,
        ),
    ),
    note=(
        "The paper uses all 60,000 images (editions official and official-folder). Edition packed-part lacks the "
        "training batches 4 and 5."
    ),
)
