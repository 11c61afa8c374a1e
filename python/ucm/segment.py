"""Memory that is shared with the daemon, mapped into this process."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import mmap
import os
import stat
import weakref
from typing import Collection, Iterator, List, Optional

from ucm import protocol
from ucm.client import Connection
from ucm.protocol import Lending, Opened

ASK_SECONDS = 10.0
# The daemon leaves slots alone for a little longer when it takes a client for gone: what is copied later may
# be bytes of others.
COPY_SECONDS = 55.0

# Of mmap(2); Python has it from 3.10 on. Without it the first copies wait for page faults.
_MAP_POPULATE = 0x8000
_FAILED = ctypes.c_void_p(-1).value


class Segment:
    """Slot i begins at ``i * stride``; slots that a store lends have the numbers behind those.

    Behind the slots of the segment there is a byte for each, which tells the daemon who may be writing there.
    Where ranks have parts of blocks, there is a number for each, too: which slot this rank reads for it, if
    it is another one.
    """

    def __init__(self, opened: Opened) -> None:
        self.slots = opened.slots
        self.stride = opened.stride
        self._lent: Optional[Lent] = None
        self._places: Optional[ctypes.Array[ctypes.c_uint32]] = None
        fd = os.open(opened.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            found = os.fstat(fd)
            if (
                not stat.S_ISREG(found.st_mode)
                or found.st_uid != os.getuid()
                or stat.S_IMODE(found.st_mode) != 0o600
                or found.st_size != opened.size
                or found.st_ino != opened.inode
                or opened.slots * opened.stride > opened.size
            ):
                raise OSError(f"{opened.path} is not the segment that the daemon made")
            writable = mmap.PROT_READ | mmap.PROT_WRITE
            self._mapping = _Mapping(fd, opened.size, writable, _MAP_POPULATE)
            # An older daemon has none.
            self._has_marks = opened.slots * (opened.stride + 1) <= opened.size
        finally:
            os.close(fd)

    def borrow(self, connection: Connection, log: logging.Logger) -> None:
        """Has the daemon lend what its store has in memory, so that it copies none of that."""
        try:
            lending = _lending(connection, False)
            if lending.slots:
                self._lent = Lent(lending, connection.daemon_pid())
                self._places = self._find_places(lending.places_at)
                _lending(connection, True)
        except protocol.Refused as refusal:
            if refusal.code != protocol.UNKNOWN_TYPE:
                raise
        except OSError as reason:
            log.info("UCM: the daemon copies what it has in memory, as %s", reason)

    def _find_places(self, at: int) -> "Optional[ctypes.Array[ctypes.c_uint32]]":
        if not at:
            return None
        places = ctypes.c_uint32 * self.slots
        if at + ctypes.sizeof(places) > self._mapping.size:
            raise OSError(f"the daemon names places at byte {at} of {self._mapping.size}")
        return places.from_address(self._mapping.start + at)

    def places(self, slots: List[int]) -> List[int]:
        """The slots in which the blocks lie that were promised in some slots."""
        places = self._places
        if places is None:
            return slots
        return [places[slot] or slot if slot < self.slots else slot for slot in slots]

    def is_lent_by_other(self, connection: Connection) -> bool:
        """Whether it keeps memory of a daemon that is gone, for which another one may want the room."""
        return self._lent is not None and self._lent.daemon_pid != connection.daemon_pid()

    def address(self, slot: int) -> int:
        """Where a slot begins; valid as long as this object is there."""
        if self._lent is not None and slot >= self.slots:
            return self._lent.address(slot - self.slots)
        if not 0 <= slot < self.slots:
            raise OSError(f"the daemon names slot {slot} of {self.slots}")
        return self._mapping.start + slot * self.stride

    @contextlib.contextmanager
    def filling(self, slots: Collection[int]) -> Iterator[None]:
        """Has the daemon keep slots that are written to in this, however long this process is stopped.

        Whether they are still this process's must be asked in it, too: it can be stopped before.
        """
        own = [slot for slot in slots if self._has_marks and 0 <= slot < self.slots]
        at = self._mapping.start + self.slots * self.stride
        self._mark(at, own, 1)
        try:
            yield
        finally:
            self._mark(at, own, 0)

    def _mark(self, at: int, slots: Collection[int], mark: int) -> None:
        for slot in slots:
            ctypes.memset(at + slot, mark, 1)

    def buffer(self) -> ctypes.Array[ctypes.c_ubyte]:
        """All of it; it stays mapped as long as something refers to that."""
        whole = (ctypes.c_ubyte * self._mapping.size).from_address(self._mapping.start)
        whole.mapping = self._mapping  # type: ignore[attr-defined]
        return whole


class Lent:
    """Slots of a store in the daemon's memory, which are read: slot i begins at ``i * stride``.

    It is mapped as long as this object is there, whatever becomes of the daemon.
    """

    def __init__(self, lending: Lending, daemon_pid: int) -> None:
        self.daemon_pid = daemon_pid
        self._slots = lending.slots
        self._stride = lending.stride
        path = f"/proc/{daemon_pid}/fd/{lending.descriptor}"
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if (
                not stat.S_ISREG(found.st_mode)
                or found.st_uid != os.getuid()
                or found.st_size != lending.size
                # The number of a process or a file may be that of another one by now.
                or (found.st_ino, found.st_dev) != (lending.inode, lending.device)
                or lending.slots * lending.stride > lending.size
            ):
                raise OSError(f"{path} is not the memory that the daemon lends")
            self._mapping = _Mapping(fd, lending.size, mmap.PROT_READ)
        finally:
            os.close(fd)

    def address(self, slot: int) -> int:
        """Where a slot begins."""
        if not 0 <= slot < self._slots:
            raise OSError(f"the daemon names slot {slot} of {self._slots} that it lends")
        return self._mapping.start + slot * self._stride


def _lending(connection: Connection, mapped: bool) -> Lending:
    # This side knows of places.
    body = protocol.Writer().u8(int(mapped)).u8(1)
    answer = connection.ask(protocol.BORROW, body, protocol.LENDING, ASK_SECONDS)
    return protocol.read_lending(answer.body)


class _Mapping:
    """Shared memory of the daemon, mapped as long as this object is there.

    A child of this process does not have it: it would keep the memory of a daemon that is gone. Python's
    own mapping would be unmapped there all the same, with whatever lies in its place, and tells no address
    of memory that cannot be written.
    """

    def __init__(self, fd: int, size: int, protection: int, flags: int = 0) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
        start = libc.mmap(None, size, protection, mmap.MAP_SHARED | flags, fd, 0)
        if start is None or start == _FAILED:
            error = ctypes.get_errno()
            raise OSError(error, f"{os.strerror(error)}: mapping {size} bytes of the daemon")
        self.start = int(start)
        self.size = size
        where = ctypes.c_void_p(start), ctypes.c_size_t(size)
        libc.madvise(*where, mmap.MADV_DONTFORK)
        # Not when the process ends: a thread may be copying from it.
        weakref.finalize(self, _unmap, os.getpid(), *where).atexit = False


def _unmap(process: int, start: ctypes.c_void_p, size: ctypes.c_size_t) -> None:
    if os.getpid() == process:
        ctypes.CDLL(None).munmap(start, size)
