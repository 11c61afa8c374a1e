"""Engines at a daemon: what one request computes, another loads, and every byte used is right."""

import json
import os
import pickle
import random
import subprocess
import sys
import time
from hashlib import md5
from types import SimpleNamespace

import pytest
from models import checkpoint
from toy_engine import ToyEngine, kv
from ucm import protocol
from ucm.client import Connection
from vllm import PROFILE

pytestmark = pytest.mark.usefixtures("patient")


def prompts(seed, count, prefixes=4, longest=180):
    """Prompts that share beginnings."""
    choice = random.Random(seed)
    heads = [[choice.randrange(1000) for _ in range(longest)] for _ in range(prefixes)]
    for _ in range(count):
        head = choice.choice(heads)
        own = [choice.randrange(1000) for _ in range(choice.randrange(1, 40))]
        yield head[: choice.randrange(8, longest)] + own


def status(daemon):
    # A machine with much else to do is not a daemon that hangs.
    observer = Connection(daemon.socket, protocol.OBSERVER, "test", 60.0)
    answer = observer.ask(protocol.STATUS, protocol.Writer(), protocol.STATUS_TEXT, 60.0)
    observer.close()
    return json.loads(protocol.Reader(answer.body).string())["engines"]


def settle(daemon):
    """Waits until all saves so far are in the store, and nothing is held or leaked.

    However long it takes on a loaded machine: what has leaked is told by its staying the same for a minute.
    """
    before, deadline = None, 0.0
    while True:
        left = [[one.get(key) for key in ("saves", "holds", "free_slots", "slots")] for one in status(daemon)]
        busy = [one for one in left if one[0] or one[1] or one[2] != one[3]]
        if not busy:
            return
        if busy != before:
            before, deadline = busy, time.monotonic() + 60
        assert time.monotonic() < deadline, status(daemon)
        time.sleep(0.05)


def wait_connected(engine):
    """Both sides of an engine of one rank are connected."""
    while not (
        engine.connector._scheduler._link.connected
        and engine.ranks[0].connector._worker._link.connected
    ):
        time.sleep(0.01)


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("top", ["", "use_layerwise: true\n"])
def test_a_prompt_of_before_is_loaded(daemon, top, asynchronous):
    daemon.write_yaml("Cache|Posix", top)
    engine = ToyEngine(daemon.transfer(ucm_async_load=asynchronous), prefix_caching=False)
    prompt = list(range(100))
    engine.add("a", prompt)
    engine.run()
    assert engine.hits == 0
    settle(daemon)
    engine.add("b", prompt)
    engine.add("full", prompt[:96])
    engine.run()
    assert engine.hits == 96 + (96 if asynchronous and not top and PROFILE >= (0, 11) else 95)
    assert engine.outputs["a"] == engine.outputs["b"]
    settle(daemon)
    engine.close()


@pytest.mark.parametrize("tp", [1, 2, pytest.param(8, marks=pytest.mark.full)])
@pytest.mark.parametrize("layout", ["2BNHD", "B2NHD", "HND", "packed", "mla", "tuple", "kernel"])
def test_random_requests(daemon, layout, tp):
    if tp > 1 and layout not in ("2BNHD", "mla"):
        pytest.skip("several ranks are tested with two layouts")
    engine = ToyEngine(daemon.transfer(), layout=layout, tp=tp, num_blocks=30, budget=48)
    for i, prompt in enumerate(prompts(7, 60)):
        engine.add(f"r{i}", prompt, max_tokens=3)
        if i % 3 == 0:
            engine.step()
    engine.run()
    assert len(engine.outputs) == 60
    assert engine.hits > 0
    settle(daemon)
    engine.close()


def test_classic_layouts_share_blocks_and_others_do_not(daemon):
    prompt = list(range(100))
    hits = {}
    for layout in ("2BNHD", "B2NHD", "tuple", "HND", "packed"):
        engine = ToyEngine(daemon.transfer(), layout=layout)
        engine.add("a", prompt)
        engine.run()
        settle(daemon)
        hits[layout] = engine.hits
        engine.close()
    assert hits == {"2BNHD": 0, "B2NHD": 96, "tuple": 96, "HND": 0, "packed": 0}


STORED = """
import json, sys
from toy_engine import ToyEngine
engine = ToyEngine(json.loads(sys.argv[1]), prefix_caching=False)
engine.add("a", range(100))
engine.run()
engine.close()
"""


@pytest.mark.parametrize("profile", ["0.9", "0.18"])
def test_what_another_version_stored_is_found(daemon, profile):
    subprocess.run(
        [sys.executable, "-c", STORED, json.dumps(daemon.transfer())],
        env={**os.environ, "VLLM_STANDIN_PROFILE": profile},
        check=True,
    )
    settle(daemon)
    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    engine.add("b", range(100))
    engine.run()
    assert engine.hits == 96
    engine.close()


def test_what_the_original_stored_is_found(daemon):
    """Files written by hand, named by the original's formula: md5 of the model and of a pickle."""
    daemon.write_yaml("Posix", "model_fingerprint: path\n", "accept_unverified: true")
    prompt = list(range(100))
    hashes = kv.prefix_hashes(prompt)
    model = b"toy:1:torch.int16:0"
    name = md5(model + pickle.dumps("UCM_HASH_SEED", 5)).digest()
    for start in range(0, 96, 16):
        name = md5(model + pickle.dumps((name, tuple(prompt[start : start + 16])), 5)).digest()
        layers = [kv.expected(hashes[start : start + 16], i, 0) for i in range(kv.LAYERS)]
        planes = [layer[:, i].contiguous().numpy().tobytes() for layer in layers for i in (0, 1)]
        folder = os.path.join(daemon.folder, "data", name.hex()[:3])
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name.hex()), "wb") as file:
            file.write(b"".join(planes))
    engine = ToyEngine(dict(daemon.transfer(), dtype="torch.int16"))
    engine.add("a", prompt)
    engine.run()
    assert engine.hits == 96
    settle(daemon)
    engine.close()


def test_what_changes_the_kv_has_blocks_of_its_own(daemon):
    adapter = os.path.join(daemon.folder, "adapter")
    checkpoint(adapter, adapter=True)
    lora = SimpleNamespace(lora_name="adapter", lora_int_id=1, lora_path=adapter)
    image = SimpleNamespace(identifier="image", mm_position=SimpleNamespace(offset=0, length=9))
    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    prompt = list(range(100))
    kinds = [
        {},
        {"lora_request": lora, "salt": 1},
        {"mm_features": [image], "salt": 2},
        {"cache_salt": "s", "salt": 3},
    ]
    if PROFILE < (0, 11):
        kinds.pop(2)
    for again in (0, 1):
        for i, more in enumerate(kinds):
            engine.add(f"{again}-{i}", prompt, **more)
        engine.run()
        settle(daemon)
        assert engine.hits == again * 96 * len(kinds)
    engine.add("skip", prompt, skip_reading_prefix_cache=True)
    engine.run()
    assert engine.hits == 96 * len(kinds)
    engine.close()


def test_aborts_leak_nothing(daemon):
    choice = random.Random(3)
    engine = ToyEngine(daemon.transfer(), num_blocks=40, budget=48)
    live = []
    for i, prompt in enumerate(prompts(5, 150)):
        engine.add(f"r{i}", prompt, max_tokens=3)
        live.append(f"r{i}")
        if choice.random() < 0.4:
            engine.abort(live.pop(choice.randrange(len(live))))
        if choice.random() < 0.7:
            engine.step()
    engine.run()
    settle(daemon)
    engine.close()


def test_roles(daemon):
    prompt = list(range(100))
    for role, hits in (("kv_consumer", 0), ("kv_producer", 0), ("kv_consumer", 96)):
        engine = ToyEngine(daemon.transfer(kv_role=role))
        engine.add("a", prompt)
        engine.run()
        settle(daemon)
        assert engine.hits == hits, role
        engine.close()


def test_a_decoding_step_sends_nothing(daemon):
    engine = ToyEngine(daemon.transfer(), num_blocks=2000, max_num_seqs=256, budget=8192)
    for i in range(200):
        engine.add(f"r{i}", [i + 1] * 5, max_tokens=400)
    while len(engine.running) < 200:
        engine.step()
    engine.step()
    link = engine.connector._scheduler._link
    sent = []
    connection = link.get()
    connection.send = lambda *args, **more: sent.append(args)
    for _ in range(20):
        engine.step()
    assert len(engine.running) == 200
    assert sent == []
    del connection.send
    for request_id in list(engine.requests):
        engine.abort(request_id)
    engine.run()
    engine.close()
