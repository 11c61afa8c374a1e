"""The slots that are shared with the daemon, mapped into this process."""

from __future__ import annotations

import ctypes
import mmap
import os
import stat

from ucm.protocol import Opened

# Of mmap(2); Python has it from 3.10 on. Without it the first copies wait for page faults.
_MAP_POPULATE = 0x8000


class Segment:
    """Slot i begins at ``i * stride``. It is mapped as long as something refers to `map`."""

    def __init__(self, opened: Opened) -> None:
        self.slots = opened.slots
        self.stride = opened.stride
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
            self.map = mmap.mmap(fd, opened.size, mmap.MAP_SHARED | _MAP_POPULATE)
        finally:
            os.close(fd)

    def address(self, slot: int) -> int:
        """Where a slot begins; valid as long as this object is there."""
        if not 0 <= slot < self.slots:
            raise OSError(f"the daemon names slot {slot} of {self.slots}")
        return ctypes.addressof(ctypes.c_char.from_buffer(self.map)) + slot * self.stride
