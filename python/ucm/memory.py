"""Copies within the host's memory, by more than one thread where there is much to copy."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Callable, Sequence, Tuple, cast

# One thread does not reach what the memory can do, four do.
_COPIERS = min(4, os.cpu_count() or 1)
# Less than this is copied sooner than another thread is woken.
_COPIER_BYTES = 2 << 20

# MADV_POPULATE_WRITE of Linux 5.14 (asm-generic/mman-common.h), which older ones refuse.
_POPULATE_WRITE = 23

# Where to, where from, bytes.
Move = Tuple[int, int, int]


def move(moves: Sequence[Move], into_new: bool = False) -> None:
    """Copies; returns when all is copied. Other Python threads run meanwhile.

    The caller answers for the addresses.

    Args:
        into_new: Nothing was written to that memory yet. The kernel gives it before the copy then, and
            not page by page meanwhile, which takes more than a third of the time.
    """
    copy = _move_all_into_new if into_new else _move_all
    parts = max(1, min(_COPIERS, sum(length for _, _, length in moves) // _COPIER_BYTES))
    size = max(1, -(-len(moves) // parts))
    others = [
        _copiers().submit(copy, moves[first : first + size])
        for first in range(size, len(moves), size)
    ]
    try:
        copy(moves[:size])
    finally:
        wait(others)
    for other in others:
        other.result()


def _move_all(moves: Sequence[Move]) -> None:
    for to, source, length in moves:
        ctypes.memmove(to, source, length)


def _move_all_into_new(moves: Sequence[Move]) -> None:
    for to, source, length in moves:
        first = to - to % mmap.PAGESIZE
        # Where it is refused the copy does the same.
        _madvise()(first, to + length - first, _POPULATE_WRITE)
        ctypes.memmove(to, source, length)


@functools.lru_cache(maxsize=None)
def _madvise() -> Callable[[int, int, int], int]:
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return cast(Callable[[int, int, int], int], madvise)


@functools.lru_cache(maxsize=None)
def _copiers() -> Executor:
    return ThreadPoolExecutor(max(1, _COPIERS - 1), "ucm-copy", _use_all_processors)


def _use_all_processors() -> None:
    """An engine on CPUs ties its threads, and so those that they start, to some."""
    with suppress(OSError):
        os.sched_setaffinity(0, range(1 << 13))
