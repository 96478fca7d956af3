"""One process at a time in a folder, by a lock that the system drops when its holder dies."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["locked"]

LOOK_SECONDS = 0.2
# What file systems answer that have no locks, as some network ones do. Not every system knows every name.
_NO_LOCKS = {getattr(errno, name, None) for name in ("ENOSYS", "ENOLCK", "EOPNOTSUPP", "ENOTSUP", "EINVAL")} - {None}


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[bool]:
    """Hold the lock file ``path``; ``waiting`` is called once if another process has it.

    Yields False where the file system has no locks: the caller is then not alone.
    """
    descriptor = None
    said = False
    try:
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            if _try_lock(descriptor):
                if _is_still(path, descriptor):
                    break
            elif not said:
                waiting()
                said = True
            os.close(descriptor)
            descriptor = None
            time.sleep(LOOK_SECONDS)
        yield True
    except _NoLocksError:
        yield False
    finally:
        if descriptor is not None:
            # Before it is closed: afterwards it might already be another's. Windows refuses, and the file then stays.
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(descriptor)


class _NoLocksError(Exception):
    pass


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise _NoLocksError from error
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the locked file is the one under this name: its last holder may have removed it in between."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
