"""Copies within the host's memory, by more than one thread where there is much to copy."""

from __future__ import annotations

import ctypes
import functools
import os
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Sequence, Tuple

# One thread does not reach what the memory can do, four do.
_COPIERS = min(4, os.cpu_count() or 1)
# Less than this is copied sooner than another thread is woken.
_COPIER_BYTES = 2 << 20

# Where to, where from, bytes.
Move = Tuple[int, int, int]


def move(moves: Sequence[Move]) -> None:
    """Copies; returns when all is copied. Other Python threads run meanwhile.

    The caller answers for the addresses.
    """
    parts = max(1, min(_COPIERS, sum(length for _, _, length in moves) // _COPIER_BYTES))
    size = max(1, -(-len(moves) // parts))
    others = [
        _copiers().submit(_move_all, moves[first : first + size])
        for first in range(size, len(moves), size)
    ]
    try:
        _move_all(moves[:size])
    finally:
        wait(others)
    for other in others:
        other.result()


def _move_all(moves: Sequence[Move]) -> None:
    for to, source, length in moves:
        ctypes.memmove(to, source, length)


@functools.lru_cache(maxsize=None)
def _copiers() -> Executor:
    return ThreadPoolExecutor(max(1, _COPIERS - 1), "ucm-copy", _use_all_processors)


def _use_all_processors() -> None:
    """An engine on CPUs ties its threads, and so those that they start, to some."""
    with suppress(OSError):
        os.sched_setaffinity(0, range(1 << 13))
