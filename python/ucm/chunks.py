"""Chunks of an engine's own shared memory, moved between it and the daemon's pipeline.

The daemon maps the memory and moves chunks by itself. Where it cannot, they go through its slots, as
pages do.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import stat
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence

from ucm import protocol
from ucm.client import Connection
from ucm.pages import MOVE_SECONDS, Pages, Pieces, Session
from ucm.protocol import Engine, Identity, Region
from ucm.segment import Segment

# Where chunks go through slots, some of them are under way at once.
_SLOTS = 16
_END_SECONDS = 60.0


def region_of(view: memoryview) -> Optional[Region]:
    """The file of shared memory that a view is a mapping of; None when this process has none open."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    size = view.nbytes
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            span, _, offset, device, inode = line.split(maxsplit=5)[:5]
            start, end = (int(part, 16) for part in span.split("-"))
            if start <= address < end:
                break
        else:
            return None
    if inode == "0" or address != start or int(offset, 16) != 0:
        return None
    for name in os.listdir("/proc/self/fd"):
        try:
            found = os.fstat(int(name))
        except OSError:
            continue
        if (
            found.st_ino == int(inode)
            and f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}" == device
            and stat.S_ISREG(found.st_mode)
            and found.st_size == size
        ):
            return Region(int(name), size, found.st_ino)
    return None


class Chunks(Pages):
    """All chunks of a region. Used by any threads; while the daemon is away nothing is found or moved.

    When a call has returned, the daemon does not touch the chunks that were named in it.

    Args:
        view: The region: two axes, chunks and their bytes, contiguous and writable. It must outlive this.
    """

    def __init__(
        self,
        extra: Dict[str, Any],
        client: str,
        describe: Callable[[], Engine],
        view: memoryview,
        log: logging.Logger,
        identify: Callable[[], Identity] = Identity,
    ) -> None:
        self._count, size = view.shape if view.shape is not None else (0, 0)
        super().__init__(extra, client, describe, size, _SLOTS * size, log, identify)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        self._lock = threading.Lock()
        self._pidfds: Dict[Connection, int] = {}
        self._region = region_of(view)

    def _make_session(self, connection: Connection, segment: Segment) -> Session:
        for old in list(self._pidfds):
            if old.is_hung_up(0.0):
                self._release(old)
        reason = self._open_region(connection)
        if reason:
            self._log.warning("UCM: chunks go through the daemon's slots: %s", reason)
        return super()._make_session(connection, segment)

    def _open_region(self, connection: Connection) -> str:
        """Has the daemon map the region; says why it cannot."""
        if self._region is None:
            return "the region is no file of shared memory that this process has open"
        pidfd = connection.daemon_pidfd()
        if pidfd is None:
            # It could not be ended when it hangs in a copy.
            return "the daemon's process is not visible from here"
        body = protocol.open_region(self._region)
        answer = connection.ask(protocol.OPEN_REGION, body, protocol.OPENED_REGION, MOVE_SECONDS)
        reason = protocol.read_opened_region(answer.body)
        if reason:
            os.close(pidfd)
        else:
            connection.lingers = True
            self._pidfds[connection] = pidfd
        return reason

    def store(self, ids: List[bytes], numbers: Sequence[int]) -> List[bool]:
        """Stores chunks, each under its name; says of each whether it is stored."""

        def act(session: Session) -> List[bool]:
            if session.connection in self._pidfds:
                return self._move(session, protocol.STORE_CHUNKS, ids, numbers)
            stored = self._set(session, ids, self._pieces(numbers))
            return [i < stored for i in range(len(ids))]

        return self._with_session(act, [False] * len(ids))

    def load(self, ids: List[bytes], numbers: Sequence[int]) -> List[bool]:
        """Fills chunks with what is stored; says of each whether it holds it. Others are undefined."""

        def act(session: Session) -> List[bool]:
            if session.connection in self._pidfds:
                return self._move(session, protocol.LOAD_CHUNKS, ids, numbers)
            pieces = self._pieces(numbers)
            loaded = [False] * len(ids)
            at = 0
            while at < len(ids):
                got = self._get(session, ids[at:], pieces[at:])
                loaded[at : at + got] = [True] * got
                # The one after these is not there.
                at += got + 1
            return loaded

        return self._with_session(act, [False] * len(ids))

    def _move(
        self, session: Session, kind: int, ids: List[bytes], numbers: Sequence[int]
    ) -> List[bool]:
        try:
            sequence = session.send(kind, protocol.chunks(ids, numbers))
            answer = session.wait(sequence, protocol.MOVED, MOVE_SECONDS)
            return protocol.read_blocks(answer, len(ids))
        except BaseException:
            self._await_end(session.connection)
            raise

    def _await_end(self, connection: Connection) -> None:
        """Returns when the daemon does not use the region any more: it says so by hanging up."""
        connection.close()
        if not connection.is_hung_up(_END_SECONDS):
            self._log.error("UCM: the daemon hangs in a copy, and is ended")
            pidfd = self._pidfds.get(connection)
            if pidfd is not None:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            connection.is_hung_up(_END_SECONDS)
        self._release(connection)

    def _release(self, connection: Connection) -> None:
        with self._lock:
            pidfd = self._pidfds.pop(connection, None)
        if pidfd is not None:
            os.close(pidfd)
            connection.release()

    def _pieces(self, numbers: Sequence[int]) -> List[Pieces]:
        if not all(0 <= number < self._count for number in numbers):
            raise ValueError(f"the region has {self._count} chunks, and others are named: {numbers}")
        return [
            [(self._address + number * self.page_bytes, self.page_bytes)] for number in numbers
        ]
