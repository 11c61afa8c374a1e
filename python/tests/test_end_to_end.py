"""Engines at a daemon: what one request computes, another loads, and every byte used is right."""

import random

import pytest
from toy_engine import ToyEngine


def prompts(seed, count, prefixes=4, longest=180):
    """Prompts that share beginnings."""
    choice = random.Random(seed)
    heads = [[choice.randrange(1000) for _ in range(longest)] for _ in range(prefixes)]
    for _ in range(count):
        head = choice.choice(heads)
        own = [choice.randrange(1000) for _ in range(choice.randrange(1, 40))]
        yield head[: choice.randrange(8, longest)] + own


def wait_until_stored(engine, daemon):
    """All saves of the engine so far are in the store."""
    import json
    import os
    import subprocess
    import time

    program = os.path.join(os.environ["UCM_HOME"], "bin", "ucm")
    while True:
        text = subprocess.check_output(
            [program, "serve", "status", "--json", "--socket", daemon.socket]
        )
        engines = json.loads(text)["engines"]
        if all(one.get("saves", 0) == 0 for one in engines):
            return engines
        time.sleep(0.05)


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_prompt_of_before_is_loaded(daemon, asynchronous):
    engine = ToyEngine(daemon.transfer(ucm_async_load=asynchronous), prefix_caching=False)
    prompt = list(range(100))
    engine.add("a", prompt)
    engine.run()
    assert engine.hits == 0
    wait_until_stored(engine, daemon)
    engine.add("b", prompt)
    engine.run()
    assert engine.hits == 96
    assert engine.outputs["a"] == engine.outputs["b"]
    engine.close()


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("layout", ["2BNHD", "packed", "mla"])
def test_random_requests(daemon, layout, tp):
    engine = ToyEngine(daemon.transfer(), layout=layout, tp=tp, num_blocks=30, budget=48)
    for i, prompt in enumerate(prompts(7, 60)):
        engine.add(f"r{i}", prompt, max_tokens=3)
        if i % 3 == 0:
            engine.step()
    engine.run()
    assert len(engine.outputs) == 60
    assert engine.hits > 0
    engine.close()
