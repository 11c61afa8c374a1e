"""Blocks that a store has in memory are read there: the daemon copies none of them."""

import ctypes
import mmap
import os
import time
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
    return [one.get("reads_in_place") for one in status(daemon)]


def wait_reading(engine, daemon, epoch):
    """All ranks of an engine read in place again, after some connection of its scheduler side."""
    while engine.connector._scheduler._link.epoch == epoch or reads_in_place(daemon) != [True]:
        time.sleep(0.01)


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
    own_daemon.kill_when_written()
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


def answer_all(engine, some):
    for i, prompt in enumerate(some):
        engine.add(f"r{i}", prompt, max_tokens=3)
        if i % 3 == 0:
            engine.step()
    engine.run()


def test_random_requests_in_a_memory_that_is_full(own_daemon, lent):
    own_daemon.pool_gb = 0.0007
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(), num_blocks=30, budget=48)
    answer_all(engine, prompts(11, 60))
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


def test_pipelines_without_memory_have_copies(own_daemon, lent):
    own_daemon.write_yaml("Posix")
    copies(own_daemon, lent)


# In other processes layers are as small as ever; those of so large a block are whole pages.
LARGE = {"block_size": 128, "budget": 256, "prefix_caching": False}
LONG = list(range(300))


class Places:
    """Where each rank is told to read what was promised, as the daemon has it mapped."""

    def __init__(self, daemon):
        (one,) = status(daemon)
        self.slots = one["slots"]
        self.at = self.slots * one["slot_bytes"] + -(-self.slots // 4096) * 4096
        with open(f"/proc/{daemon.process.pid}/maps", encoding="utf-8") as maps:
            self.paths = sorted({line.split()[5] for line in maps if "/ucm-slots-" in line})

    def read(self):
        found = []
        for path in self.paths:
            with open(path, "rb") as segment:
                segment.seek(self.at)
                found.append(segment.read(4 * self.slots))
        return found

    def write(self, places):
        for path, some in zip(self.paths, places):
            with open(path, "r+b") as segment:
                segment.seek(self.at)
                segment.write(some)


def before_loads(engine, act):
    """Acts when a load has been planned, and the ranks do not know of it yet."""
    build = engine.connector.build_connector_meta

    def built(output):
        meta = build(output)
        if meta.loads:
            act()
        return meta

    engine.connector.build_connector_meta = built


@pytest.mark.parametrize(
    "layout, ranks, segments, layerwise",
    [
        ("mla", {"tp": 2}, 1, False),
        ("mla", {"tp": 2, "pp": 2}, 2, False),
        ("2BNHD", {"tp": 2}, 2, False),
        ("2BNHD", {"tp": 2}, 2, True),
        ("2BNHD", {"tp": 2, "pp": 2}, 4, False),
    ],
)
def test_ranks_read_their_blocks_in_place(own_daemon, layout, ranks, segments, layerwise):
    own_daemon.write_yaml("Cache|Posix", f"use_layerwise: {str(layerwise).lower()}\n")
    engine = ToyEngine(own_daemon.transfer(ucm_start_daemon=False), layout=layout, **LARGE, **ranks)
    expected, _ = answer(engine, "stored", LONG)
    settle(own_daemon)
    assert reads_in_place(own_daemon) == [True]
    places, told = Places(own_daemon), []
    before_loads(engine, lambda: told.append([sum(map(bool, one)) for one in places.read()]))
    for name in ("lent", "again"):
        found, hits = answer(engine, name, LONG)
        assert found == expected and hits > 0
        settle(own_daemon)
    # Where all read the same, they are told the numbers themselves.
    assert len(places.paths) == segments and len(told) == 2
    assert all(all(ranks) is (segments > 1) for ranks in told)
    assert not any(map(any, places.read()))
    epoch = engine.connector._scheduler._link.epoch
    own_daemon.kill_when_written()
    own_daemon.start()
    wait_reading(engine, own_daemon, epoch)
    places = Places(own_daemon)
    found, hits = answer(engine, "from a file", LONG)
    assert found == expected and hits > 0
    assert all(all(ranks) is (segments > 1) for ranks in told) and len(told) == 3
    settle(own_daemon)
    engine.close()


def test_the_part_of_another_rank_is_found_out(own_daemon):
    """The control."""
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(), tp=2, **LARGE)
    answer(engine, "stored", LONG)
    settle(own_daemon)
    places = Places(own_daemon)
    before_loads(engine, lambda: places.write(places.read()[::-1]))
    with pytest.raises(AssertionError, match="holds wrong bytes"):
        answer(engine, "wrong", LONG)


def test_what_was_promised_to_ranks_outlives_the_daemon(own_daemon):
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(ucm_start_daemon=False), tp=2, **LARGE)
    expected, _ = answer(engine, "stored", LONG)
    settle(own_daemon)
    places, told, bad = Places(own_daemon), [], []
    before_loads(engine, lambda: told.extend(map(any, places.read())) or own_daemon.kill())
    cut = engine._cut
    engine._cut = lambda scheduled, invalid: bad.extend(invalid) or cut(scheduled, invalid)
    found, hits = answer(engine, "promised", LONG)
    assert own_daemon.process.poll() is not None
    assert told == [True, True] and found == expected and hits > 0 and not bad
    engine.close()


def test_random_requests_of_ranks_in_a_memory_that_is_full(own_daemon):
    own_daemon.pool_gb = 0.006
    own_daemon.write_yaml("Cache|Posix")
    engine = ToyEngine(own_daemon.transfer(), tp=2, num_blocks=30, block_size=128, budget=384)
    places, told = Places(own_daemon), []
    before_loads(engine, lambda: told.append(list(map(any, places.read()))))
    answer_all(engine, prompts(11, 60, longest=1200))
    assert engine.hits > 0 and told
    settle(own_daemon)
    # Nothing was kept, so as much is lent as before.
    assert not any(map(any, places.read()))
    for name in ("stored", "lent"):
        _, hits = answer(engine, name, LONG)
        settle(own_daemon)
        engine.reset_prefix_cache()
    assert hits > 0 and told[-1] == [True, True]
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
    monkeypatch.setattr(protocol, "read_lending", lambda body: read(body[:-24]))
    copies(own_daemon, lent)


def test_a_daemon_that_knows_of_no_places_lends_to_one_rank(own_daemon, lent, monkeypatch):
    own_daemon.write_yaml("Cache|Posix")
    read = protocol.read_lending
    monkeypatch.setattr(protocol, "read_lending", lambda body: read(body[:-8]))
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    expected, _ = answer(engine, "stored")
    settle(own_daemon)
    found, hits = answer(engine, "lent")
    assert found == expected and hits > 0 and lent
    settle(own_daemon)
    engine.close()


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
    own_daemon.kill_when_written()
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
