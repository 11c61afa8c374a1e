"""Blocks that a store has in memory are read there: the daemon copies none of them."""

import ctypes
import mmap
import os
from contextlib import suppress

import pytest
from hicache_engine import HiCacheEngine, keys
from test_end_to_end import prompts, settle, status, wait_connected
from test_sglang import extra
from test_sglang import wait_connected as wait_pages_connected
from toy_engine import ToyEngine, kv
from ucm import protocol, segment
from ucm.client import Connection
from ucm.segment import Lent

pytestmark = pytest.mark.usefixtures("patient")
PROMPT = list(range(100))


@pytest.fixture(autouse=True)
def pages(monkeypatch):
    """Layers of whole pages, as those of models are: only then the layers of a block lie together."""
    monkeypatch.setattr(kv, "HEADS", 4)
    monkeypatch.setattr(kv, "DIM", 32)


@pytest.fixture
def lent(monkeypatch):
    """Slots that are read where they are."""
    slots = []
    address = Lent.address
    monkeypatch.setattr(Lent, "address", lambda self, slot: slots.append(slot) or address(self, slot))
    return slots


def answer(engine, name, prompt=PROMPT):
    before = engine.hits
    engine.add(name, prompt)
    engine.run()
    return engine.outputs[name], engine.hits - before


def reads_in_place(daemon):
    return [one["reads_in_place"] for one in status(daemon)]


@pytest.mark.parametrize("layerwise", [False, True])
def test_blocks_are_read_in_the_memory_of_the_store_wherever_they_come_from(own_daemon, lent, layerwise):
    own_daemon.write_yaml("Cache|Posix", f"use_layerwise: {str(layerwise).lower()}\n")
    engine = ToyEngine(own_daemon.transfer(ucm_start_daemon=False), prefix_caching=False)
    expected, _ = answer(engine, "stored")
    settle(own_daemon)
    assert reads_in_place(own_daemon) == [True]
    found, hits = answer(engine, "lent")
    assert found == expected and hits > 0 and len(set(lent)) > 1
    settle(own_daemon)
    # A daemon that starts has nothing in memory.
    own_daemon.kill()
    own_daemon.start()
    wait_connected(engine)
    del lent[:]
    found, hits = answer(engine, "from a file")
    assert found == expected and hits > 0 and len(set(lent)) > 1
    settle(own_daemon)
    del lent[:]
    found, hits = answer(engine, "lent again")
    assert found == expected and hits > 0 and lent
    settle(own_daemon)
    engine.close()


def test_a_slot_beside_the_right_one_is_found_out(own_daemon, monkeypatch):
    """The control: the engine sees each byte that is wrong."""
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    answer(engine, "stored")
    settle(own_daemon)
    address = Lent.address
    monkeypatch.setattr(Lent, "address", lambda self, slot: address(self, slot + 1))
    with pytest.raises(AssertionError):
        answer(engine, "wrong")
    # Its step was cut off.
    with suppress(AssertionError):
        engine.close()


def test_random_requests_in_a_memory_that_is_full(own_daemon, lent):
    own_daemon.pool_gb = 0.0007
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(), num_blocks=30, budget=48)
    for i, prompt in enumerate(prompts(11, 60)):
        engine.add(f"r{i}", prompt, max_tokens=3)
        if i % 3 == 0:
            engine.step()
    engine.run()
    assert engine.hits > 0 and lent
    settle(own_daemon)
    engine.close()


def other_process(monkeypatch):
    monkeypatch.setattr(Connection, "daemon_pid", lambda self: 0)


def older_daemon(monkeypatch):
    monkeypatch.setattr(protocol, "BORROW", 9999)


def copies(daemon, lent, **more):
    """What is found is right, and none of it is read in place."""
    engine = ToyEngine(daemon.transfer(), prefix_caching=False, **more)
    expected, _ = answer(engine, "stored")
    settle(daemon)
    found, hits = answer(engine, "copied")
    assert found == expected and hits > 0 and not lent
    assert reads_in_place(daemon) == [False]
    settle(daemon)
    engine.close()


@pytest.mark.parametrize("fault", [other_process, older_daemon])
def test_where_it_cannot_be_mapped_blocks_are_copied(own_daemon, lent, monkeypatch, fault):
    fault(monkeypatch)
    own_daemon.write_yaml("Cache|Posix")
    copies(own_daemon, lent)


@pytest.mark.parametrize("pipeline, tp", [("Cache|Posix", 2), ("Posix", 1)])
def test_ranks_and_pipelines_without_memory_have_copies(own_daemon, lent, pipeline, tp):
    own_daemon.write_yaml(pipeline)
    copies(own_daemon, lent, tp=tp)


def test_ranks_that_have_the_same_blocks_read_them_in_place(own_daemon):
    own_daemon.write_yaml("Cache|Posix")
    # In other processes layers are as small as ever; those of so large a block are whole pages.
    large = {"block_size": 128, "budget": 256}
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False, tp=2, layout="mla", **large)
    prompt = list(range(300))
    expected, _ = answer(engine, "stored", prompt)
    settle(own_daemon)
    assert reads_in_place(own_daemon) == [True]
    for name in ("lent", "again"):
        found, hits = answer(engine, name, prompt)
        assert found == expected and hits > 0
        settle(own_daemon)
    engine.close()


def test_a_file_that_forbids_it_has_copies(own_daemon, lent):
    own_daemon.write_yaml("Cache|Posix", more="cache_buffer_lent: false")
    copies(own_daemon, lent)


def test_the_memory_must_be_what_is_announced(own_daemon, lent):
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    worker = engine.ranks[0].connector._worker
    connection = worker._link.get()
    body = protocol.Writer().u8(1)
    found = protocol.read_lending(connection.ask(protocol.BORROW, body, protocol.LENDING, 60.0).body)
    for wrong in (
        found._replace(size=found.size - 4096),
        found._replace(slots=found.slots + 1),
        found._replace(descriptor=1),
        found._replace(inode=found.inode + 1),
        found._replace(device=found.device + 1),
    ):
        with pytest.raises(OSError, match="is not the memory that the daemon lends"):
            Lent(wrong, connection.daemon_pid())
    mapped = Lent(found, connection.daemon_pid())
    for slot in (-1, found.slots):
        with pytest.raises(OSError, match=f"slot {slot} of {found.slots}"):
            mapped.address(slot)
    engine.close()


def test_other_memory_of_the_same_size_is_not_mapped(own_daemon, lent, monkeypatch):
    """As behind the number of a process or a descriptor that another one has by now."""
    own_daemon.write_yaml("Cache|Posix")
    read = protocol.read_lending

    def reused(body):
        found = read(body)
        other = os.memfd_create("other")
        os.ftruncate(other, found.size)
        return found._replace(descriptor=other)

    monkeypatch.setattr(protocol, "read_lending", reused)
    monkeypatch.setattr(Connection, "daemon_pid", lambda self: os.getpid())
    copies(own_daemon, lent)


def test_a_daemon_that_does_not_say_what_memory_it_is_lends_none(own_daemon, lent, monkeypatch):
    own_daemon.write_yaml("Cache|Posix")
    read = protocol.read_lending
    monkeypatch.setattr(protocol, "read_lending", lambda body: read(body[:-16]))
    copies(own_daemon, lent)


def test_children_of_a_worker_do_not_keep_the_daemons_memory(own_daemon, lent):
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    flags = {}
    with open("/proc/self/smaps", encoding="utf-8") as maps:
        for line in maps:
            first, *more = line.split()
            if not first.endswith(":"):
                name = more[4] if len(more) > 4 else ""
            elif first == "VmFlags:":
                flags.setdefault(name, []).append(more)
    ours = [name for name in flags if name.startswith(("/dev/shm/ucm-slots", "/memfd:ucm"))]
    assert len(ours) >= 2
    # Not copied on a fork, as proc(5) has it.
    assert all("dc" in some for name in ours for some in flags[name])
    engine.close()


def test_what_lies_in_a_child_where_its_parent_maps_the_daemons_memory_stays():
    size = 1 << 20
    memory = os.memfd_create("daemon")
    os.ftruncate(memory, size)
    mapping = segment._Mapping(memory, size, mmap.PROT_READ)
    at = mapping.start
    child = os.fork()
    if child == 0:
        try:
            map_anonymously(at, size)
            del mapping
            ctypes.memset(at, 1, size)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(memory)
    assert os.waitpid(child, 0)[1] == 0


def map_anonymously(at, size):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100000  # MAP_FIXED_NOREPLACE
    prot = mmap.PROT_READ | mmap.PROT_WRITE
    where = ctypes.c_void_p(at), ctypes.c_size_t(size)
    assert libc.mmap(*where, prot, flags, -1, ctypes.c_long(0)) == at


def test_pages_of_sglang_are_read_there(own_daemon, lent):
    own_daemon.write_yaml("Cache|Posix")
    made = HiCacheEngine(extra(own_daemon))
    chain = keys("lent", 20)
    assert made.backup(chain) == 20
    settle(own_daemon)
    assert made.prefetch(chain) == (20, 20)
    assert len(set(lent)) > 10 and reads_in_place(own_daemon) == [True]
    settle(own_daemon)
    made.close()


@pytest.fixture
def mapped(monkeypatch):
    """Which memories are mapped that a daemon lends, each time that one is asked to open an engine."""
    found = []
    ask = Connection.ask

    def counted(self, kind, *more):
        if kind in (protocol.OPEN_WORKER, protocol.OPEN_NAMED):
            found.append(lent_memories())
        return ask(self, kind, *more)

    monkeypatch.setattr(Connection, "ask", counted)
    return found


def lent_memories():
    """By their inodes."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return {line.split()[4] for line in maps if "/memfd:ucm" in line}


def test_a_daemon_that_starts_finds_the_memory_of_the_last_one_free(own_daemon, mapped):
    """There may be no room for both: it would refuse the engine."""
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(ucm_start_daemon=False), prefix_caching=False)
    pages = HiCacheEngine(extra(own_daemon))
    others = mapped[0]
    expected, _ = answer(engine, "stored")
    assert pages.backup(keys("lent", 5)) == 5
    settle(own_daemon)
    answer(engine, "lent")
    assert len(lent_memories() - others) == 2
    settle(own_daemon)
    own_daemon.kill()
    own_daemon.start()
    wait_connected(engine)
    wait_pages_connected(pages)
    assert pages.prefetch(keys("lent", 5)) == (5, 5)
    found, hits = answer(engine, "copied")
    assert found == expected and hits > 0
    # That of the other one, or its new one.
    assert len(mapped) >= 4 and max(len(one - others) for one in mapped[2:]) <= 1
    assert len(lent_memories() - others) == 2
    settle(own_daemon)
    engine.close()
    pages.close()
