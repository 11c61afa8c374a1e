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
