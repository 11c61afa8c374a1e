"""SGLang's HiCache over a daemon: what one engine stores another reads, bit by bit, whatever happens."""

import itertools
import logging
import os
import signal
import threading
import time

import pytest
import torch
from conftest import Daemon, private
from daemons import processes_of
from hicache_engine import HiCacheEngine, HostPool, keys
from test_end_to_end import settle, status
from ucm import client, pages
from ucm.daemon import may_start
from ucm.integration.sglang import hicache, pools
from ucm.integration.sglang.hicache import UcmHiCache

LAYOUTS = ("page_first", "page_first_direct", "layer_first", "page_head")
KINDS = [
    (layout, tp, mla)
    for layout in LAYOUTS
    for tp, mla in ((1, False), (2, False), (2, True))
    if not (mla and layout == "page_head")
]


def extra(daemon, **more):
    return {
        "UCM_CONFIG_FILE": daemon.yaml,
        "ucm_socket": daemon.socket,
        "ucm_start_daemon": False,
        "ucm_staging_gb": 0.001,
        **more,
    }


def wait_connected(engine):
    deadline = time.monotonic() + 120
    for rank in engine.ranks:
        while not rank.storage._pools["kv"].pages._link.connected:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def stores_and_reads(daemon, count, layout, tp, mla):
    first = HiCacheEngine(extra(daemon), layout, tp, mla)
    chains = [keys(f"{layout}{tp}{mla}{i}", min(200, count - i)) for i in range(0, count, 200)]
    assert first.prefetch(chains[0]) == (0, 0)
    for chain in chains:
        assert first.backup(chain) == len(chain)
    second = HiCacheEngine(extra(daemon), layout, tp, mla)
    for chain in chains:
        more = chain + keys("never stored", 3)
        assert second.prefetch(more) == (len(chain), len(chain))
    assert second.compared == count * tp
    first.close()
    second.close()
    settle(daemon)


@pytest.mark.parametrize("layout, tp, mla", KINDS)
def test_each_byte_of_what_one_engine_stores_is_read_by_another(daemon, layout, tp, mla):
    stores_and_reads(daemon, 150, layout, tp, mla)


@pytest.mark.full
@pytest.mark.parametrize("layout, tp, mla", KINDS)
def test_each_byte_of_ten_thousand_pages(daemon, layout, tp, mla):
    stores_and_reads(daemon, 10_000, layout, tp, mla)


def test_pages_in_tensors_are_those_of_the_host_pool(daemon):
    """Without interface_v1, SGLang hands each page over in a tensor."""
    chain = keys(1, 150)
    plain = HiCacheEngine(extra(daemon), "page_first_direct", zero_copy=False)
    assert plain.backup(chain) == 150
    assert plain.prefetch(chain) == (150, 150)
    direct = HiCacheEngine(extra(daemon), "page_first_direct")
    assert direct.prefetch(chain) == (150, 150)
    assert direct.backup(keys(2, 5)) == 5
    assert plain.prefetch(keys(2, 6)) == (5, 5)
    storage = plain.ranks[0].storage
    page = plain.ranks[0].pool.get_dummy_flat_data_page()
    assert storage.exists(chain[0]) is True and storage.exists("ab" * 32) is False
    assert storage.get(chain[0], page) is page
    assert storage.get("ab" * 32, page) is None
    assert storage.get(chain[0]) is None
    assert storage.set("cd" * 32, page) is True
    assert storage.exists("cd" * 32) is True
    plain.close()
    direct.close()


def test_a_page_has_one_name_whatever_is_asked_with_it():
    hashed = keys(3, 2)
    others = ["", "a", hashed[0][:-1], hashed[0] + "0", " " * 64, "0" * 31 + " " * 33, "\N{BULLET}" * 64]
    alone = [pools._hashes([key]) for key in hashed + others]
    assert b"".join(alone) == pools._hashes(hashed + others)
    assert b"".join(alone[: len(hashed)]) == pools._hashes(hashed)
    assert len(set(alone)) == len(alone) and {len(one) for one in alone} == {16}


def test_a_page_is_named_by_all_that_decides_its_bytes(daemon):
    chain = keys(3, 2)
    engines = [
        HiCacheEngine(extra(daemon)),
        HiCacheEngine(extra(daemon), layout="page_first_direct"),
        HiCacheEngine(extra(daemon), tp=2),
        HiCacheEngine(extra(daemon), mla=True),
        HiCacheEngine(extra(daemon), page_size=8),
        HiCacheEngine(extra(daemon), layers=6),
        HiCacheEngine(extra(daemon), dtype=torch.float16),
    ]
    ids = [tuple(rank.storage._pools["kv"].ids(chain)) for engine in engines for rank in engine.ranks]
    assert len(set(ids)) == len(ids)
    assert all(len(one) == 16 for some in ids for one in some)
    shared = HiCacheEngine(extra(daemon), tp=2, mla=True)
    assert len({tuple(rank.storage._pools["kv"].ids(chain)) for rank in shared.ranks}) == 1
    for field, value in (("pp_size", 2), ("attn_cp_size", 2)):
        split = HiCacheEngine(extra(daemon))
        storage = split.ranks[0].storage
        setattr(storage._config, field, value)
        storage.register_mem_pool_host(split.ranks[0].pool)
        assert tuple(storage._pools["kv"].ids(chain)) not in ids
        engines.append(split)
    for engine in [*engines, shared]:
        engine.close()


def test_only_the_first_rank_of_mla_stores(daemon):
    engine = HiCacheEngine(extra(daemon), tp=2, mla=True)
    second = engine.ranks[1]
    chain = keys(4, 3)
    indices = second.pool.alloc(3)
    assert second.storage.batch_set_v1(chain, indices) == [True] * 3
    tensors = [second.pool.get_dummy_flat_data_page() for _ in chain]
    assert second.storage.batch_set(chain, tensors) is True
    second.pool.free(indices)
    assert second.storage.batch_exists(chain) == 0
    assert engine.backup(chain) == 3
    assert second.storage.batch_exists(chain) == 3
    engine.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_page_has_the_same_bytes_by_tensors_and_from_where_it_lies(daemon, layout):
    """SGLang copies a page to a tensor as it lies in the pool, and names its pieces in another order."""
    chain = keys(layout, 6)
    direct = HiCacheEngine(extra(daemon), layout)
    plain = HiCacheEngine(extra(daemon), layout, zero_copy=False)
    assert direct.backup(chain[:3]) == 3
    assert plain.prefetch(chain[:3]) == (3, 3)
    assert plain.backup(chain[3:]) == 3
    assert direct.prefetch(chain[3:]) == (3, 3)
    assert plain.compared == direct.compared == 3
    plain.close()
    direct.close()


def test_a_layout_whose_pages_are_not_described_is_refused_in_a_line(daemon, caplog, monkeypatch):
    def unsupported(pool, indices):
        raise ValueError(f"Unsupported layout: {pool.layout}")

    monkeypatch.setattr(HostPool, "get_page_buffer_meta", unsupported)
    with caplog.at_level(logging.ERROR):
        engine = HiCacheEngine(extra(daemon))
    assert "Unsupported layout: page_first" in caplog.text
    assert "--hicache-mem-layout page_first" in caplog.text
    assert engine.prefetch(keys(5, 3)) == (0, 0)
    assert engine.backup(keys(5, 3)) == 0
    engine.close()


def test_a_configuration_that_cannot_be_read_is_said_as_that(daemon, caplog, tmp_path):
    missing = tmp_path / "missing.yaml"
    with caplog.at_level(logging.WARNING):
        engine = HiCacheEngine(extra(daemon, UCM_CONFIG_FILE=str(missing)))
    assert f"UCM_CONFIG_FILE names {missing}, which cannot be read (No such file or directory" in caplog.text
    assert "no daemon" not in caplog.text
    assert engine.backup(keys(5, 3)) == 0
    engine.close()


@pytest.mark.parametrize("page_size, said", [(512, False), (256, True)])
def test_pages_of_less_than_64_kib_are_warned_of(daemon, caplog, page_size, said):
    # K and V of 3 layers, 2 heads of 8 values in 16 bits: 192 bytes a token.
    with caplog.at_level(logging.WARNING):
        engine = HiCacheEngine(extra(daemon), page_size=page_size, pages=4)
    assert ("set a larger --page-size" in caplog.text) is said
    engine.close()


def test_batches_are_larger_than_the_slots(daemon):
    page = 3 * 2 * 8 * 2 * 2 * 4
    few = extra(daemon, ucm_staging_gb=4 * page / 2**30)
    engine = HiCacheEngine(few)
    assert status(daemon)[-1]["slots"] == 4
    chain = keys(6, 200)
    assert engine.backup(chain[:150]) == 150
    reading = threading.Thread(target=lambda: engine.prefetch(chain[:150]))
    reading.start()
    assert engine.backup(chain) == 200
    reading.join()
    assert engine.prefetch(chain) == (200, 200)
    settle(daemon)
    engine.close()


@pytest.mark.parametrize("pipeline", ["Posix", "Cache|Posix"])
def test_a_prefix_of_what_is_stored_already(daemon, pipeline):
    daemon.write_yaml(pipeline)
    engine = HiCacheEngine(extra(daemon))
    chain = keys(7, 100)
    some = chain[10:20] + chain[40:41]
    assert engine.backup(some) == 11
    assert engine.backup(chain) == 100
    assert engine.prefetch(chain) == (100, 100)
    engine.close()


@pytest.mark.parametrize("zero_copy", [True, False], ids=["v1", "generic"])
@pytest.mark.parametrize("pipeline", ["Posix", "Cache|Posix"])
def test_a_full_store_takes_no_more_and_serves_what_it_has(daemon, pipeline, zero_copy):
    daemon.write_yaml(pipeline, more="posix_capacity_gb: 0.0005\n      posix_gc_enable: false")
    engine = HiCacheEngine(extra(daemon), zero_copy=zero_copy)
    chain = keys(8, 120)
    said = 0
    # What is told as stored is there, also of a buffer above it.
    while engine.backup(chain[said : said + 5]) == 5:
        said += 5
    found, read = engine.prefetch(chain)
    assert 0 < said <= found < 120
    assert read == found
    assert engine.backup(keys(9, 5)) == 0
    assert engine.prefetch(chain) == (found, found)
    settle(daemon)
    engine.close()


def own_bytes(pid):
    """Without what is in files: the buffer is memory that engines map, too."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(("RssAnon:", "RssShmem:")))


def test_eleven_sizes_of_pages_take_the_memory_of_one_buffer(tmp_path):
    daemon = Daemon(private(tmp_path / "d"), pipeline="Cache|Posix", pool_gb=0.25).start()
    try:
        engines = [HiCacheEngine(extra(daemon), layers=16)]
        alone = own_bytes(daemon.process.pid)
        # A buffer is touched when it is made.
        assert alone > 1 << 28
        engines += [HiCacheEngine(extra(daemon), layers=16 * size) for size in range(2, 12)]
        assert own_bytes(daemon.process.pid) - alone < 2 << 28
        for number, engine in enumerate(engines):
            chain = keys(f"size {number}", 20)
            assert engine.backup(chain) == 20
            assert engine.prefetch(chain) == (20, 20)
            engine.close()
        # What they leave gives way to the next one at once.
        other = HiCacheEngine(extra(daemon), layers=16 * 12)
        assert own_bytes(daemon.process.pid) - alone < 2 << 28
        other.close()
    finally:
        daemon.stop()


def test_after_a_clear_nothing_of_before_is_found(daemon):
    engine = HiCacheEngine(extra(daemon), tp=2, mla=True)
    chain = keys(10, 20)
    assert engine.backup(chain) == 20
    for rank in engine.ranks:
        rank.storage.clear()
    assert engine.prefetch(chain) == (0, 0)
    assert engine.backup(chain[:7]) == 7
    assert engine.prefetch(chain) == (7, 7)
    # A storage that is attached again by the same process is not older.
    again = HiCacheEngine(extra(daemon), tp=2, mla=True)
    assert again.prefetch(chain) == (7, 7)
    hicache._cleared.clear()
    engine.close()
    again.close()


@pytest.fixture
def hurried(monkeypatch):
    """Connections come back at once."""
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(client, "LONGEST_PAUSE", 0.02)


def kills_while_pages_move(daemon, times):
    """The daemon comes later than the engine, and is killed again and again while three threads use it."""
    engine = HiCacheEngine(extra(daemon), tp=2)
    assert engine.prefetch(keys("early", 5)) == (0, 0)
    assert engine.backup(keys("early", 5)) == 0
    daemon.start()
    stop = threading.Event()
    read, stored = [], []

    def backups():
        for i in itertools.count():
            if stop.is_set():
                return
            stored.append(engine.backup(keys(f"kill{i % 400}", 40)))

    def prefetches():
        for i in itertools.count():
            if stop.is_set():
                return
            read.append(engine.prefetch(keys(f"kill{i % 20}", 40))[1])

    threads = [threading.Thread(target=one, daemon=True) for one in (backups, prefetches)]
    for thread in threads:
        thread.start()
    for i in range(times):
        wait_connected(engine)
        before = len(read), len(stored)
        deadline = time.monotonic() + 60
        while sum(read[before[0] :]) == 0 or sum(stored[before[1] :]) == 0:
            assert time.monotonic() < deadline and all(thread.is_alive() for thread in threads)
            time.sleep(0.001)
        # At another moment of what is under way each time.
        time.sleep(0.0137 * i % 0.05)
        daemon.kill()
        engine.assert_alive()
        daemon.start()
    wait_connected(engine)
    stop.set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    chain = keys("at last", 50)
    assert engine.backup(chain) == 50
    assert engine.prefetch(chain) == (50, 50)
    settle(daemon)
    engine.close()
    assert engine.ranks[0].storage.batch_exists(chain) == 0


@pytest.mark.parametrize("pipeline", ["Posix", "Cache|Posix"])
def test_a_daemon_ended_by_sigkill_costs_hits_and_nothing_else(own_daemon, hurried, pipeline):
    own_daemon.stop()
    own_daemon.write_yaml(pipeline)
    kills_while_pages_move(own_daemon, 1)


@pytest.mark.full
def test_a_daemon_ended_by_sigkill_fifty_times(tmp_path, hurried):
    made = Daemon(private(tmp_path / "d"))
    kills_while_pages_move(made, 50)
    made.stop()


@pytest.mark.full
def test_ranks_start_one_daemon(tmp_path):
    made = Daemon(private(tmp_path / "d"))
    engine = HiCacheEngine(extra(made, ucm_start_daemon=True), tp=2)
    started = processes_of(made.socket)
    try:
        assert len(started) == 1
        assert engine.backup(keys("started", 9)) == 9
        assert engine.prefetch(keys("started", 9)) == (9, 9)
        engine.close()
    finally:
        for pid in started:
            os.kill(pid, signal.SIGTERM)


def test_a_stopped_daemon_is_left_alone(own_daemon, hurried, monkeypatch):
    engine = HiCacheEngine(extra(own_daemon))
    wait_connected(engine)
    chain = keys(12, 10)
    assert engine.backup(chain) == 10
    monkeypatch.setattr(pages, "LOOKUP_SECONDS", 0.1)
    own_daemon.freeze()
    try:
        assert engine.prefetch(chain) == (0, 0)
        # Nothing waits for it again.
        monkeypatch.setattr(pages, "LOOKUP_SECONDS", 1e9)
        assert engine.prefetch(chain) == (0, 0)
        assert engine.backup(chain) == 0
    finally:
        own_daemon.process.send_signal(signal.SIGCONT)
    wait_connected(engine)
    assert engine.prefetch(chain) == (10, 10)
    engine.close()


def test_whatever_is_asked_no_exception_leaves(daemon, caplog):
    engine = HiCacheEngine(extra(daemon))
    storage, pool = engine.ranks[0].storage, engine.ranks[0].pool
    chain = keys(13, 4)
    indices = pool.alloc(4)
    assert storage.batch_set_v1(chain, indices[:-1]) == [False] * 4
    assert storage.batch_get_v1(chain, None) == [False] * 4
    assert storage.batch_get_v1(keys=chain, host_indices=None) == [False] * 4
    assert storage.batch_exists(None) == 0
    assert storage.batch_exists([]) == 0
    assert storage.batch_get_v1([], indices[:0]) == []
    assert storage.exists(17) is False
    small = [torch.zeros(3) for _ in chain]
    assert storage.batch_get(chain, small) == [None] * 4
    assert storage.batch_set(chain, small) is False
    assert storage.set(chain[0]) is False
    assert storage.get(chain[0], "no tensor") is None
    storage.mem_pool_host.get_page_buffer_meta = lambda _: ([1], [8])
    assert storage.batch_set_v1(chain, indices) == [False] * 4
    del storage.mem_pool_host.get_page_buffer_meta
    lines = [record.message for record in caplog.records if "counts as a miss" in record.message]
    assert len(lines) == len(set(lines)) and "a page has" in caplog.text
    count = len(lines)
    assert storage.batch_get_v1(chain, None) == [False] * 4
    assert len([one for one in caplog.records if "counts as a miss" in one.message]) == count
    pool.free(indices)
    engine.close()


def test_configurations_of_other_versions(daemon):
    """What a version does not say counts as its default."""

    class Config:
        model_name = "m"
        extra_config = None

    pool = HostPool("page_first")
    storage = UcmHiCache(Config(), extra(daemon))
    assert storage.batch_exists(keys(14, 1)) == 0
    storage.register_mem_pool_host(pool)
    assert storage.mem_pool_host is pool
    indices = pool.alloc(3)
    assert storage.batch_set_v1(keys(14, 3), indices) == [True] * 3
    assert storage.batch_exists(keys(14, 5)) == 3
    storage.close()
    storage.close()
    pool.free(indices)


@pytest.mark.parametrize("gigabytes", ["many", -1, float("nan")])
def test_without_a_size_of_the_staging_nothing_is_told_as_stored(daemon, caplog, gigabytes):
    engine = HiCacheEngine(extra(daemon, ucm_staging_gb=gigabytes))
    assert f"ucm_staging_gb is {gigabytes}, and should be a number of GiB" in caplog.text
    assert engine.backup(keys(17, 3)) == 0
    storage, pool = engine.ranks[0].storage, engine.ranks[0].pool
    indices = pool.alloc(3)
    assert storage.batch_get_v1(keys(17, 3), indices) == [False] * 3
    pool.free(indices)
    engine.close()


def test_a_pool_that_fails_is_none_that_only_counts(daemon, monkeypatch):
    monkeypatch.setattr(hicache, "HostPool", None)
    engine = HiCacheEngine(extra(daemon))
    assert engine.backup(keys(17, 3)) == 0
    engine.close()


def test_more_staging_than_can_be_had_is_what_the_daemon_gives(daemon):
    engine = HiCacheEngine(extra(daemon, ucm_staging_gb=1e6))
    assert engine.backup(keys(18, 3)) == 3
    engine.close()


@pytest.mark.parametrize("said, starts", [(True, True), (False, False), ("False", False), ("true", True)])
def test_whether_a_daemon_is_started_may_be_said_as_text(said, starts):
    assert may_start({"ucm_start_daemon": said}) is starts


def test_without_the_name_of_a_model_nothing_is_stored(daemon, caplog):
    engine = HiCacheEngine(extra(daemon), model=None)
    assert "set --served-model-name" in caplog.text
    assert engine.backup(keys(17, 3)) == 0
    assert engine.prefetch(keys(17, 3)) == (0, 0)
    engine.close()


def test_the_stores_may_stand_in_the_launch_line(daemon, tmp_path):
    stores = {
        "ucm_connector_name": "UcmPipelineStore",
        "ucm_connector_config": {"store_pipeline": "Posix", "storage_backends": str(tmp_path / "here")},
    }
    own = {**extra(daemon, ucm_config=stores), "UCM_CONFIG_FILE": ""}
    os.makedirs(tmp_path / "here")
    engine = HiCacheEngine(own)
    assert engine.backup(keys(15, 4)) == 4
    assert sum(len(files) for _, _, files in os.walk(tmp_path / "here")) >= 4
    engine.close()


def test_a_configuration_that_is_refused_is_a_line(daemon, caplog):
    with open(daemon.yaml, "a", encoding="utf-8") as file:
        file.write("use_lite: true\n")
    engine = HiCacheEngine(extra(daemon))
    assert "the daemon refuses this engine" in caplog.text and "keeps no bytes" in caplog.text
    assert engine.backup(keys(16, 4)) == 0
    engine.close()
