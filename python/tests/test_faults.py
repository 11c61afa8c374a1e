"""What goes wrong between an engine and a daemon: no request fails, and no wrong byte is used or stored."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

import pytest
from conftest import Daemon
from daemons import processes_of
from test_end_to_end import prompts, settle, wait_connected
from toy_engine import ToyEngine
from ucm import protocol, staging
from ucm.daemon import read_token
from ucm.integration.vllm import scheduler, worker
from vllm import PROFILE

pytestmark = pytest.mark.usefixtures("patient")

reports_errors = pytest.mark.skipif(
    PROFILE < (0, 12), reason="this version cannot be told of failed loads"
)


@reports_errors
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_load_that_fails_is_computed_and_nothing_from_it_is_stored(daemon, asynchronous):
    prompt = list(range(150))
    engine = ToyEngine(
        daemon.transfer(ucm_async_load=asynchronous), num_blocks=60, prefix_caching=False
    )
    engine.add("a", prompt)
    engine.run()
    settle(daemon)
    worker = engine.ranks[0].connector._worker
    mapped, worker._staging = worker._staging, {}
    take, taken = worker.take_errors, set()

    def take_and_note():
        found = take()
        taken.update(found)
        return found

    worker.take_errors = take_and_note
    engine.add("b", prompt + [7] * 40)
    while not taken and engine.requests:
        engine.step()
        if not asynchronous:
            break
    worker._staging = mapped
    engine.run()
    again = ToyEngine(daemon.transfer(), num_blocks=60, prefix_caching=False)
    for i, tokens in enumerate((prompt, prompt + [7] * 40)):
        again.add(f"c{i}", tokens)
    again.run()
    assert again.outputs["c0"] == engine.outputs["a"]
    assert again.outputs["c1"] == engine.outputs["b"]
    assert again.hits > 0
    settle(daemon)
    again.close()
    engine.close()


@reports_errors
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_load_that_takes_longer_than_its_slots_are_kept_is_computed(daemon, monkeypatch, asynchronous):
    """A worker that was stopped for a minute may go on with the bytes of others."""
    engine = ToyEngine(daemon.transfer(ucm_async_load=asynchronous), num_blocks=60, prefix_caching=False)
    prompt = list(range(150))
    engine.add("a", prompt)
    engine.run()
    settle(daemon)
    side, failed = engine.ranks[0].connector._worker, []
    take = side.take_errors
    side.take_errors = lambda: failed.append(take()) or failed[-1]
    with monkeypatch.context() as late:
        late.setattr(worker, "COPY_SECONDS", 0.0)
        engine.add("b", prompt)
        engine.run()
    assert any(failed)
    del failed[:]
    hits = engine.hits
    engine.add("c", prompt)
    engine.run()
    assert engine.hits > hits and not any(failed)
    assert engine.outputs["a"] == engine.outputs["b"] == engine.outputs["c"]
    settle(daemon)
    engine.close()


def test_a_worker_that_was_stopped_before_it_copies_uses_no_slots_of_others(daemon, monkeypatch):
    """Between the scheduler's side of a step and the worker's, also where both are one process."""
    prompt = list(range(150))
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 60)
    first = ToyEngine(daemon.transfer(), num_blocks=60, prefix_caching=False)
    with monkeypatch.context() as stopped:
        stopped.setattr(worker, "time", later)
        first.add("a", prompt)
        first.run()
        settle(daemon)
    first.add("b", prompt)
    first.run()
    assert first.hits == 0
    settle(daemon)
    failed = []
    side = first.ranks[0].connector._worker
    take = side.take_errors
    side.take_errors = lambda: failed.append(take()) or failed[-1]
    if PROFILE >= (0, 12):
        with monkeypatch.context() as stopped:
            stopped.setattr(worker, "time", later)
            first.add("c", prompt)
            first.run()
        assert any(failed)
    first.add("d", prompt)
    first.run()
    assert first.hits > 0
    assert len({tuple(tokens) for tokens in first.outputs.values()}) == 1
    settle(daemon)
    first.close()


def test_slots_are_marked_while_a_worker_fills_them(daemon, monkeypatch):
    """The daemon gives them to nobody else meanwhile, however long the worker is stopped in it."""
    engine = ToyEngine(daemon.transfer(), num_blocks=60, prefix_caching=False)
    segment = next(iter(engine.ranks[0].connector._worker._staging.values())).segment
    seen = []

    def marked():
        return sum(segment.buffer()[segment.slots * segment.stride :])

    def move(moves):
        seen.append((moves[0][0] in range(*whole), marked()))
        kept(moves)

    whole = segment.address(0), segment.address(segment.slots - 1) + segment.stride
    kept = staging.move
    monkeypatch.setattr(staging, "move", move)
    for name in ("a", "b"):
        engine.add(name, list(range(150)))
        engine.run()
        settle(daemon)
    assert {is_save for is_save, _ in seen} == {True, False}
    assert all((marks > 0) is is_save for is_save, marks in seen)
    assert marked() == 0
    engine.close()


@pytest.mark.parametrize("when", ["promised", "loading", "saving"])
def test_a_daemon_killed_between_two_calls(own_daemon, when):
    prompt = list(range(150))
    engine = ToyEngine(
        own_daemon.transfer(ucm_start_daemon=False), num_blocks=60, prefix_caching=False
    )
    engine.add("a", prompt)
    engine.run()
    settle(own_daemon)
    scheduler = engine.connector._scheduler
    worker = engine.ranks[0].connector._worker
    if when == "promised":
        _before(scheduler, "allocated", own_daemon.kill)
    elif when == "loading":
        _before(worker, "start_load", own_daemon.kill)
    else:
        _before(worker, "wait_for_save", own_daemon.kill)
    engine.add("b", prompt)
    engine.add("c", [5] * 100)
    engine.run()
    assert own_daemon.process.poll() is not None
    assert engine.outputs["a"] == engine.outputs["b"]
    own_daemon.start()
    wait_connected(engine)
    hits = engine.hits
    engine.add("d", prompt)
    engine.run()
    assert engine.hits > hits
    assert engine.outputs["d"] == engine.outputs["a"]
    settle(own_daemon)
    engine.close()


def _before(owner, name, act):
    """Acts before the first call of a method."""
    call = getattr(owner, name)

    def wrapped(*args, **more):
        setattr(owner, name, call)
        act()
        return call(*args, **more)

    setattr(owner, name, wrapped)


@pytest.mark.skipif(PROFILE < (0, 11), reason="look-ups of this version wait by themselves")
def test_requests_end_beside_a_stopped_daemon(own_daemon, monkeypatch):
    monkeypatch.setattr(scheduler, "LOOKUP_SECONDS", 3.0)
    monkeypatch.setattr(scheduler, "PLAN_SECONDS", 0.2)
    # Its end waits as long for blocks that miss shards, as those that its breaker refused.
    own_daemon.write_yaml("Posix", more="timeout_ms: 5000")
    engine = ToyEngine(own_daemon.transfer(), num_blocks=60, budget=48, prefix_caching=False)
    requests = list(prompts(29, 12))
    for i, prompt in enumerate(requests[:6]):
        engine.add(f"a{i}", prompt)
    engine.run()
    own_daemon.freeze()
    try:
        for i, prompt in enumerate(requests):
            engine.add(f"b{i}", prompt)
        deadline = time.monotonic() + 120
        while engine.requests and time.monotonic() < deadline:
            engine.step()
    finally:
        own_daemon.process.send_signal(signal.SIGCONT)
    assert not engine.requests
    engine.run()
    engine.close()


def test_a_connector_starts_the_daemon_once(tmp_path):
    if "UCM_HOME" not in os.environ:
        pytest.skip("UCM_HOME names no image, so there is no ucm serve to test with")
    folder = tmp_path / "d"
    folder.mkdir(mode=0o700)
    made = Daemon(str(folder))
    engine = ToyEngine(made.transfer(ucm_start_daemon=True), tp=2, prefix_caching=False)
    started = processes_of(made.socket)
    try:
        assert len(started) == 1
        for name in ("a", "b"):
            engine.add(name, range(100))
            engine.run()
            settle(made)
        assert engine.hits == 96
    finally:
        # First: an engine that goes on starts another one.
        engine.close()
        for pid in started:
            os.kill(pid, signal.SIGTERM)


KILLED = """
import json, sys
from toy_engine import ToyEngine
engine = ToyEngine(json.loads(sys.argv[1]), prefix_caching=False)
rank = engine.ranks[0].connector._worker
rank.wait_for_save = lambda: (print("saving", flush=True), sys.stdin.read())
engine.add("a", range(100))
engine.run()
"""


def test_an_engine_killed_in_a_save_leaves_nothing_that_is_found(daemon):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, json.dumps(daemon.transfer())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "saving\n"
    process.kill()
    process.wait()
    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    engine.add("b", range(100))
    engine.run()
    assert engine.hits == 0
    settle(daemon)
    engine.add("c", range(100))
    engine.run()
    assert engine.hits > 0
    engine.close()


def test_two_engines_of_one_model_share_blocks_while_they_run(daemon):
    engines = [
        ToyEngine(daemon.transfer(), num_blocks=30, budget=48, prefix_caching=False)
        for _ in range(2)
    ]
    requests = list(prompts(31, 30))
    for turn in (0, 1):
        # In the second turn each engine gets what the other one had in the first.
        for i, prompt in enumerate(requests):
            engines[(i + turn) % 2].add(f"{turn}-{i}", prompt, max_tokens=2)
            for engine in engines:
                engine.step()
        for engine in engines:
            engine.run()
        settle(daemon)
    assert all(engine.hits > 0 for engine in engines)
    for i in range(len(requests)):
        first, second = engines[i % 2], engines[(i + 1) % 2]
        assert first.outputs[f"0-{i}"] == second.outputs[f"1-{i}"]
    for engine in engines:
        engine.close()


@pytest.mark.skipif(PROFILE < (0, 15), reason="this version has no reset")
def test_nothing_of_before_a_reset_is_found(daemon):
    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    for name in ("a", "b"):
        engine.add(name, range(100))
        engine.run()
        settle(daemon)
    assert engine.hits > 0
    hits = engine.hits
    assert engine.connector.reset_cache() is True
    engine.add("c", range(100))
    engine.run()
    assert engine.hits == hits
    settle(daemon)
    engine.add("d", range(100))
    engine.run()
    assert engine.hits > hits
    engine.close()


@pytest.mark.skipif(PROFILE < (0, 11), reason="this version has no statistics of connectors")
@pytest.mark.parametrize("room", [True, False])
def test_what_a_full_store_does_not_take_is_not_found(daemon, room):
    """The buffer above it has all blocks, but those that the store refuses only until it has refused them."""
    daemon.write_yaml("Cache|Posix", more="" if room else "posix_min_free_gb: 1000000")
    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    found = []
    deadline = time.monotonic() + 60
    while len(found) < 20 if room else found[1:][-1:] != [0] and time.monotonic() < deadline:
        before = engine.hits
        engine.add(str(len(found)), range(100))
        engine.run()
        settle(daemon)
        found.append(engine.hits - before)
    outputs = [engine.outputs[str(number)] for number in range(len(found))]
    engine.close()
    assert outputs == [outputs[0]] * len(outputs)
    assert found[0] == 0
    assert (found[-1] > 0) == room


def test_statistics_count_hits_and_blocks(daemon):
    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    for name in ("a", "b"):
        engine.add(name, range(100))
        engine.run()
        settle(daemon)
    # All versions ask the workers; the scheduler, some at no time and some when a worker had some.
    worker = engine.ranks[0].connector
    assert engine.connector.get_kv_connector_stats() is None
    found = worker.get_kv_connector_stats()
    assert found.reduce() == {
        "prompt_blocks": 12,
        "external_hit_blocks": 6,
        "loaded_blocks": 6,
        "saved_blocks": 6,
        "unsaved_blocks": 0,
    }
    assert worker.get_kv_connector_stats() is None
    both = type(engine.connector).build_kv_connector_stats(found.data).aggregate(found)
    assert both.reduce()["prompt_blocks"] == 24
    engine.close()


STRANGER = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.settimeout(10)
try:
    client.connect(sys.argv[1])
except PermissionError:
    print("no permission")
else:
    client.sendall(bytes.fromhex(sys.argv[2]))
    print(client.recv(65536).hex())
    print(client.recv(1))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_refused(tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        made = Daemon(str(tmp_path), os.path.join(folder, "ucm.sock")).start()
        token = read_token(made.socket)
        hello = protocol.hello(token, protocol.WORKER, 1, "stranger").frame(protocol.HELLO, 1)
        command = ["/usr/bin/python3", "-I", "-c", STRANGER, made.socket, hello.hex()]

        def ask():
            return subprocess.check_output(command, user=65534, cwd="/", text=True).split()

        try:
            assert ask() == ["no", "permission"]
            # Also when the files are opened to all, and the token is known.
            os.chmod(folder, 0o755)
            os.chmod(made.socket, 0o666)
            answer, end = ask()
            frame = protocol.split(bytearray.fromhex(answer))
            assert frame.kind == protocol.REFUSED
            assert "must run as the daemon's user" in str(protocol.read_refused(frame.body))
            assert end == "b''"
        finally:
            made.stop()


def test_the_doctor_tells_what_is_missing(own_daemon, tmp_path):
    def ask(socket, **environment):
        ended = subprocess.run(
            [sys.executable, "-m", "ucm.doctor", "--json", "--socket", socket],
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        return ended.returncode, {one["subject"]: one for one in json.loads(ended.stdout)}

    code, found = ask(own_daemon.socket)
    assert code == 0
    assert str(own_daemon.process.pid) in found["daemon"]["found"]
    assert found["python"]["state"] == "ok"
    code, found = ask(str(tmp_path / "none.sock"))
    assert (code, found["daemon"]["state"]) == (0, "ok")
    code, found = ask(str(tmp_path / "none.sock"), UCM_HOME="/none", PATH="/none")
    assert (code, found["daemon"]["state"]) == (1, "failed")
    assert "UCM_HOME" in found["daemon"]["advice"]


def test_a_daemon_without_descriptors_for_more_clients_goes_on_and_admits_them_later(own_daemon):
    engine = ToyEngine(own_daemon.transfer(), prefix_caching=False)
    prompt = list(range(100))
    engine.add("stored", prompt)
    engine.run()
    settle(own_daemon)
    pid = own_daemon.process.pid
    _, most = limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, most))
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(own_daemon.socket)
        deadline = time.monotonic() + 60
        while "clients wait at" not in own_daemon.log():
            assert own_daemon.process.poll() is None and time.monotonic() < deadline, own_daemon.log()
            time.sleep(0.01)
        assert engine.ranks[0].connector._worker._link.connected
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        client.settimeout(60)
        token = read_token(own_daemon.socket)
        hello = protocol.hello(token, protocol.OBSERVER, os.getpid(), "waited")
        client.sendall(hello.frame(protocol.HELLO, 1))
        assert client.recv(8)[4:6] == protocol.WELCOME.to_bytes(2, "little")
    before = engine.hits
    engine.add("found", prompt)
    engine.run()
    assert engine.hits > before and own_daemon.log().count("clients wait at") == 1
    engine.close()
