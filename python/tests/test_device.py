"""The device plane: the daemon copies between the slots and KV tensors of a (simulated) GPU."""

import time
from contextlib import suppress

import pytest
from test_end_to_end import prompts, settle, status, wait_connected
from test_lending import Places, before_loads, wait_reading
from toy_engine import ToyEngine, gpus, kv
from toy_engine.kv import LAYOUTS
from ucm import device, protocol, staging
from ucm.integration.vllm.worker import WorkerSide

pytestmark = pytest.mark.skipif(
    gpus.of_environment() is None, reason="there is no simulated GPU (SIM_CUDA_DIRECT)"
)


def run(engine, name, requests):
    for i, prompt in enumerate(requests):
        engine.add(f"{name}{i}", prompt, max_tokens=2)
    engine.run()


def test_the_daemon_copies(own_daemon):
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    assert [one["device_ranks"] for one in status(own_daemon)] == [[0]]
    requests = list(prompts(1, 20))
    for name in "ab":
        run(engine, name, requests)
        settle(own_daemon)
    assert engine.hits > 0
    connection = engine.ranks[0].connector._worker._link.get()
    engine.close()
    # It has heard of all that was saved.
    assert connection.is_hung_up(0.0)
    own_daemon.stop()
    report = own_daemon.gpu_report()
    assert report["misuses"] == "0", report
    assert int(report["copies"]) > 100
    assert report["opened"] == report["registrations"] == report["streams"] == "0", report


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(daemon, layout):
    engine = ToyEngine(daemon.transfer(), layout=layout, prefix_caching=False)
    for name in "ab":
        run(engine, name, [list(range(100))])
        settle(daemon)
    assert engine.hits == 96
    # The worker copies blocks that lie in more pieces than they have tensors.
    assert status(daemon)[-1]["device_ranks"] == ([] if layout == "scattered" else [0])
    engine.close()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("broken", ["driver", "uuid", "probe", "allocation", "tensor", "handle"])
def test_where_the_daemon_cannot_the_worker_copies(own_daemon, monkeypatch, broken):
    write = device.write

    def bad(to, exported, written):
        if broken == "uuid":
            exported = exported._replace(uuid="00" * 16)
        elif broken == "probe":
            written = bytes(len(written))
        elif broken == "allocation":
            exported = exported._replace(probe_at=(99, 0))
        elif broken == "tensor":
            last = exported.layers[-1][-1]
            exported.layers[-1][-1] = last._replace(offset=1 << 40)
        elif broken == "handle":
            exported.allocations[0] = (bytes(64), exported.allocations[0][1])
        write(to, exported, written)

    monkeypatch.setattr(device, "write", bad)
    if broken == "driver":
        own_daemon.restart(SIM_CUDA_INIT="999")
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    for name in "ab":
        run(engine, name, [list(range(100))])
        settle(own_daemon)
    assert engine.hits == 96
    assert status(own_daemon)[0]["device_ranks"] == []
    engine.close()


@pytest.mark.usefixtures("patient")
def test_memory_that_is_not_the_workers_is_found_out(own_daemon, monkeypatch):
    monkeypatch.setattr(device, "is_answered", lambda exported, written: False)
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    deadline = time.monotonic() + 60
    while not engine.ranks[0].connector._worker._link.connected:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for name in "ab":
        run(engine, name, [list(range(100))])
        settle(own_daemon)
    assert engine.hits == 96
    assert status(own_daemon)[0]["device_ranks"] == []
    engine.close()


def test_a_device_that_is_lost_costs_nothing(own_daemon):
    own_daemon.restart(SIM_CUDA_FAIL="copy,200,1,700")
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    requests = list(prompts(2, 20))
    for name in "ab":
        run(engine, name, requests)
        settle(own_daemon)
    assert engine.hits > 0
    engine.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_daemon_killed_while_it_copies(own_daemon, seed):
    own_daemon.restart(SIM_CUDA_DELAY_US="300")
    engine = ToyEngine(own_daemon.transfer(), num_blocks=40, prefix_caching=False)
    requests = list(prompts(seed, 20))
    run(engine, "a", requests)
    for i, prompt in enumerate(requests):
        engine.add(f"b{i}", prompt, max_tokens=2)
        engine.step()
        if i == 10 + seed:
            own_daemon.kill()
    engine.run()
    assert len(engine.outputs) == 40
    engine.close()


def test_a_daemon_that_hangs_in_a_copy_is_ended(own_daemon, monkeypatch):
    monkeypatch.setattr(device, "COPY_SECONDS", 0.5)
    own_daemon.restart(SIM_CUDA_HANG_AT="300")
    engine = ToyEngine(own_daemon.transfer(), num_blocks=40, prefix_caching=False)
    for name in "abc":
        run(engine, name, list(prompts(4, 10)))
    assert len(engine.outputs) == 30
    assert own_daemon.process.wait(10) != 0
    engine.close()


# -- from the memory of Cache, without the slots of the segment -----------------------------------------


@pytest.fixture
def loads(patient, monkeypatch):
    """Slots that loads name. Layers are whole pages, as in models, so those of a block lie together."""
    monkeypatch.setattr(kv, "HEADS", 4)
    monkeypatch.setattr(kv, "DIM", 32)
    named = []
    message = device.message

    def noted(save, layers, slots, blocks):
        named.extend([] if save else slots)
        return message(save, layers, slots, blocks)

    monkeypatch.setattr(device, "message", noted)
    return named


def pooled(daemon, top="", more="", **options):
    daemon.write_yaml("Cache|Posix", top, more)
    return ToyEngine(daemon.transfer(), prefix_caching=False, **options)


def reads_in_place(daemon):
    (one,) = status(daemon)
    return one["reads_in_place"], one["slots"]


def hits(engine, daemon, name, prompt=range(100)):
    before = engine.hits
    engine.add(name, list(prompt))
    engine.run()
    settle(daemon)
    return engine.hits - before


@pytest.mark.parametrize("layerwise", [False, True])
def test_blocks_are_copied_from_the_memory_of_the_store(own_daemon, loads, layerwise):
    engine = pooled(own_daemon, f"use_layerwise: {str(layerwise).lower()}\n")
    assert hits(engine, own_daemon, "stored") == 0
    is_so, slots = reads_in_place(own_daemon)
    assert is_so
    assert hits(engine, own_daemon, "from memory") > 0 and loads and min(loads) >= slots
    own_daemon.stop()
    # What is not pinned would be copied by the processor, and late.
    assert own_daemon.gpu_report()["unregistered"] == own_daemon.gpu_report()["misuses"] == "0"
    del loads[:]
    own_daemon.start()
    wait_connected(engine)
    assert hits(engine, own_daemon, "from files") > 0 and loads and min(loads) >= slots
    engine.close()


def test_a_slot_beside_the_right_one_is_found_out(own_daemon, loads, monkeypatch):
    """The control: the engine sees each byte that is wrong."""
    engine = pooled(own_daemon)
    hits(engine, own_daemon, "stored")
    message = device.message
    monkeypatch.setattr(
        device,
        "message",
        lambda save, layers, slots, blocks: message(save, layers, [slot + 1 for slot in slots], blocks),
    )
    with pytest.raises(AssertionError):
        hits(engine, own_daemon, "wrong")
    # Its step was cut off.
    with suppress(AssertionError):
        engine.close()


def test_random_requests_from_memory_that_is_full(own_daemon, loads):
    own_daemon.pool_gb = 0.0007
    engine = pooled(own_daemon, num_blocks=40)
    _, slots = reads_in_place(own_daemon)
    for name in "ab":
        run(engine, name, list(prompts(3, 30)))
    assert engine.hits > 0 and max(loads) >= slots
    settle(own_daemon)
    engine.close()


LONG = range(300)


def ranks(daemon, top="", **more):
    """Two ranks, in whose processes layers are small as ever; those of so large blocks are whole pages."""
    return pooled(daemon, top, tp=2, block_size=128, budget=256, **more)


@pytest.mark.parametrize("layout, layerwise", [("mla", False), ("2BNHD", False), ("2BNHD", True)])
def test_ranks_read_their_blocks_in_place(own_daemon, loads, layout, layerwise):
    engine = ranks(own_daemon, f"use_layerwise: {str(layerwise).lower()}\n", layout=layout)
    assert hits(engine, own_daemon, "stored", LONG) == 0
    assert reads_in_place(own_daemon)[0]
    places, told = Places(own_daemon), []
    before_loads(engine, lambda: told.append([any(one) for one in places.read()]))
    assert hits(engine, own_daemon, "from memory", LONG) > 0
    # Where all read the same, they are told the numbers themselves.
    assert told == ([[False]] if layout == "mla" else [[True, True]])
    epoch = engine.connector._scheduler._link.epoch
    own_daemon.stop()
    # What is not pinned would be copied by the processor, and late.
    assert own_daemon.gpu_report()["unregistered"] == own_daemon.gpu_report()["misuses"] == "0"
    own_daemon.start()
    wait_reading(engine, own_daemon, epoch)
    places = Places(own_daemon)
    assert hits(engine, own_daemon, "from files", LONG) > 0
    assert told[1:] == told[:1]
    engine.close()


def test_the_part_of_another_rank_is_found_out(own_daemon, loads):
    """The control."""
    engine = ranks(own_daemon)
    hits(engine, own_daemon, "stored", LONG)
    places = Places(own_daemon)
    before_loads(engine, lambda: places.write(places.read()[::-1]))
    with pytest.raises(AssertionError, match="holds wrong bytes"):
        hits(engine, own_daemon, "wrong", LONG)


def test_what_was_promised_to_ranks_outlives_the_daemon(own_daemon, loads):
    engine = ranks(own_daemon)
    hits(engine, own_daemon, "stored", LONG)
    places, told, bad = Places(own_daemon), [], []
    before_loads(engine, lambda: told.extend(map(any, places.read())) or own_daemon.kill())
    cut = engine._cut
    engine._cut = lambda scheduled, invalid: bad.extend(invalid) or cut(scheduled, invalid)
    engine.add("promised", list(LONG))
    engine.run()
    assert own_daemon.process.poll() is not None
    assert told == [True, True] and engine.hits > 0 and not bad
    engine.close()


def test_a_daemon_killed_while_it_copies_to_ranks(own_daemon, loads):
    own_daemon.restart(SIM_CUDA_DELAY_US="300")
    engine = ranks(own_daemon, num_blocks=40)
    requests = list(prompts(5, 20, longest=1200))
    run(engine, "a", requests)
    for i, prompt in enumerate(requests):
        engine.add(f"b{i}", prompt, max_tokens=2)
        engine.step()
        if i == 10:
            own_daemon.kill()
    engine.run()
    assert len(engine.outputs) == 40 and engine.hits > 0
    engine.close()


def test_ranks_killed_before_they_copy_leave_a_daemon_that_lends_to_others(own_daemon, loads):
    engine = ranks(own_daemon)
    hits(engine, own_daemon, "stored", LONG)

    def kill():
        for rank in engine.ranks:
            rank.process.kill()
            rank.process.join()
        raise InterruptedError

    before_loads(engine, kill)
    engine.add("promised", list(LONG))
    with pytest.raises(InterruptedError):
        engine.run()
    engine.connector.shutdown()
    while status(own_daemon):
        time.sleep(0.01)
    again = ranks(own_daemon)
    told, places = [], Places(own_daemon)
    before_loads(again, lambda: told.append([any(one) for one in places.read()]))
    assert hits(again, own_daemon, "loaded", LONG) > 0
    assert told == [[True, True]]
    again.close()
    own_daemon.stop()
    assert own_daemon.gpu_report()["misuses"] == "0"


def test_a_pool_that_is_not_pinned_is_not_copied_from(own_daemon, loads):
    engine = pooled(own_daemon, more="cache_device: host")
    assert hits(engine, own_daemon, "stored") == 0
    assert hits(engine, own_daemon, "loaded") > 0
    assert not reads_in_place(own_daemon)[0]
    engine.close()


@pytest.mark.parametrize("on_host", [True, False])
def test_what_was_promised_in_memory_outlives_the_daemon(own_daemon, loads, monkeypatch, on_host):
    """The worker copies it from there by itself, so that no request has to be computed or to end."""
    monkeypatch.setattr(staging, "_on_host", lambda piece: on_host)
    engine = pooled(own_daemon)
    hits(engine, own_daemon, "stored")
    _, slots = reads_in_place(own_daemon)
    copy = device.Copies.copy

    def killed(self, save, layers, named, blocks):
        if not save:
            own_daemon.kill()
        return copy(self, save, layers, named, blocks)

    monkeypatch.setattr(device.Copies, "copy", killed)
    copied = []
    copy_in = WorkerSide._copy_in
    monkeypatch.setattr(WorkerSide, "_copy_in", lambda *call: copied.append(copy_in(*call)) or copied[-1])
    engine.add("promised", list(range(100)))
    engine.run()
    assert own_daemon.process.poll() is not None
    assert engine.hits > 0 and min(loads) >= slots
    assert copied and all(copied)
    engine.close()


def test_nothing_is_saved_into_memory_that_is_lent(own_daemon, loads):
    engine = pooled(own_daemon)
    _, slots = reads_in_place(own_daemon)
    connection = engine.ranks[0].connector._worker._link.get()
    connection.send(protocol.COPY, device.message(True, [0], [slots], [0]))
    assert connection.is_hung_up(60.0)
    wait_connected(engine)
    engine.close()
