"""Asynchronous scheduling, and the V2 runner, under aborts and preemption."""

import random

import pytest
from test_end_to_end import prompts, settle
from toy_engine import AheadEngine, ToyEngine
from ucm.integration.vllm import compat
from vllm import PROFILE

pytestmark = [
    pytest.mark.usefixtures("patient"),
    pytest.mark.skipif(PROFILE < (0, 15), reason="this version schedules no step ahead"),
]


def drive(engine, daemon, seed, tokens, count=60):
    choice = random.Random(seed)
    live = []
    for i, prompt in enumerate(prompts(seed, count, prefixes=3, longest=120)):
        engine.add(f"r{i}", prompt, max_tokens=tokens)
        live.append(f"r{i}")
        if choice.random() < 0.2:
            engine.abort(live.pop(choice.randrange(len(live))))
        for _ in range(choice.randrange(3)):
            engine.step()
    engine.run()
    assert engine.hits > 0
    assert len(engine.outputs) == count
    settle(daemon)
    engine.close()


@pytest.mark.parametrize("generated", [False, True])
@pytest.mark.parametrize("kind", [AheadEngine, ToyEngine])
def test_with_room(daemon, kind, generated):
    daemon.write_yaml("Posix", f"save_decode_blocks: {str(generated).lower()}\n")
    engine = kind(daemon.transfer(), num_blocks=60, budget=48, v2_runner=True)
    drive(engine, daemon, 1, 20)


@pytest.mark.parametrize("tp", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize("v2_runner", [False, True])
def test_under_preemption(daemon, v2_runner, tp):
    daemon.write_yaml("Cache|Posix", "save_decode_blocks: true\n")
    engine = AheadEngine(
        daemon.transfer(), num_blocks=18, budget=48, tp=tp, v2_runner=v2_runner, prefix_caching=False
    )
    drive(engine, daemon, 2, 24, count=14)


def test_a_token_is_known_a_step_later(daemon):
    prompt = list(range(20))
    outputs = []
    for kind in (ToyEngine, AheadEngine):
        engine = kind(daemon.transfer())
        engine.add("a", prompt, max_tokens=30)
        engine.run()
        outputs.append(engine.outputs["a"])
        settle(daemon)
        engine.close()
    assert outputs[0] == outputs[1]


@pytest.mark.skipif(not compat.features().fences_preemptions, reason="saves end with their step")
def test_an_engine_in_one_process_keeps_no_blocks_after_its_last_step(daemon):
    """It makes no step after the one that ends its last request."""
    engine = ToyEngine(daemon.transfer(), one_process=True, prefix_caching=False)
    for name in "ab":
        engine.add(name, list(range(100)) + [ord(name)], max_tokens=1)
    while engine.requests:
        engine.step()
    assert not engine.delayed
    assert not any(engine.pool.references)
    engine.run()
    settle(daemon)
    engine.add("again", list(range(100)))
    engine.run()
    assert engine.hits == 96
    engine.close()
