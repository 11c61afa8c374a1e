import ctypes
import mmap

import pytest

from ucm import memory


def test_a_copy_that_fails_beside_others_is_told(monkeypatch):
    def copy(to, source, length):
        if to == 3:
            raise OSError("no such memory")

    monkeypatch.setattr(memory, "_COPIERS", 2)
    monkeypatch.setattr(memory, "_COPIER_BYTES", 1)
    monkeypatch.setattr(memory.ctypes, "memmove", copy)
    for moves in ([(3, 0, 8), (1, 0, 8)], [(1, 0, 8), (3, 0, 8)]):
        with pytest.raises(OSError, match="no such memory"):
            memory.move(moves)
    memory.move([(1, 0, 8), (2, 0, 8)])


@pytest.mark.parametrize("into_new", [False, True])
@pytest.mark.parametrize("refused", [False, True])
def test_only_what_is_copied_is_written(monkeypatch, into_new, refused):
    """Also of pages that hold other bytes, and where the kernel does not give memory beforehand."""
    if refused:
        monkeypatch.setattr(memory, "_POPULATE_WRITE", -1)
    size, most = 3 * mmap.PAGESIZE, 8 * mmap.PAGESIZE
    source = ctypes.create_string_buffer((bytes(range(1, 256)) * size)[:size], size)
    with mmap.mmap(-1, most, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as mapped:
        mapped[:] = b"#" * most
        target = ctypes.c_char.from_buffer(mapped)
        for at in (mmap.PAGESIZE, 100):
            memory.move([(ctypes.addressof(target) + at, ctypes.addressof(source), size)], into_new)
            assert mapped[at : at + size] == source.raw
        assert mapped[:100] == b"#" * 100
        assert mapped[mmap.PAGESIZE + size :] == b"#" * (most - mmap.PAGESIZE - size)
        del target
