"""The device plane: the daemon copies between the slots and KV tensors of a (simulated) GPU."""

import time

import pytest
from test_end_to_end import prompts, settle, status
from toy_engine import ToyEngine, gpus
from toy_engine.kv import LAYOUTS
from ucm import device

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
    engine.close()
    own_daemon.stop()
    report = own_daemon.gpu_report()
    assert report["misuses"] == "0", report
    assert int(report["copies"]) > 100
    assert report["opened"] == report["registrations"] == report["streams"] == "0", report


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
