"""A daemon that is killed again and again under load, and copies that take long: no answer is wrong."""

import os
import random
import time

import pytest
import vllm_engine
from vllm_engine import cached, difference, forget, full_blocks, generate, prompts

# Of each mode and model.
KILLS = int(os.environ.get("UCM_KILLS", "100"))
# They begin alike in groups, and end around the edges of blocks and within them.
WANTED = [
    one
    for group, length in enumerate((383, 384, 385, 900, 1500))
    for one in prompts(seed=100 + group, count=3, length=length, shared=length // 2)
]


def busy(expected, seed):
    """Rounds of random prompts until it is told to stop: what was found, and what was wrong."""

    def scenario(llm, tell, hear):
        choice = random.Random(seed)
        while True:
            chosen = choice.sample(range(len(WANTED)), 5)
            found = generate(llm, [WANTED[number] for number in chosen])
            wrong = difference(found, [expected[number] for number in chosen])
            forget(llm, settled=False)
            tell((sum(cached(found)), wrong and f"prompts {chosen}: {wrong}"))
            if hear() == "stop":
                return None

    return scenario


@pytest.mark.full
def test_kills_of_the_daemon_under_load(engine, daemon, mode):
    kill_again_and_again(engine, daemon)


@pytest.mark.full
@pytest.mark.skipif(vllm_engine.version() < (0, 31), reason="has no groups with UCM")
@pytest.mark.parametrize("kind", ["gemma3", "gemma3n", "gemma4", "gpt-oss", "llama4", "qwen3-next"])
def test_kills_of_the_daemon_under_a_hybrid_model(engine, daemon, folder, kind):
    if kind == "qwen3-next" and vllm_engine.version() < (0, 32):
        pytest.skip("has no states of linear layers with UCM")
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    kill_again_and_again(engine, daemon, model=folder(kind))


def kill_again_and_again(engine, daemon, **arguments):
    def reference(llm, tell, hear):
        return [generate(llm, [one])[0] for one in WANTED]

    expected = engine(reference, **arguments).result()
    transfer = daemon.transfer()
    if vllm_engine.version() >= (0, 13, 0):
        transfer["kv_load_failure_policy"] = "recompute"
    seed = random.randrange(1 << 30)
    running = engine(busy(expected, seed), transfer=transfer, **arguments)
    moments = random.Random(seed)
    killed, began, rounds = 0, time.monotonic(), 0
    hit_before_kill = False
    while killed < KILLS:
        found, wrong = running.receive()
        assert wrong is None, f"seed {seed}, round {rounds}, after {killed} kills: {wrong}"
        rounds += 1
        running.send("go on")
        # A round before it has found something: the next one is under way with a daemon that lives.
        if found and hit_before_kill:
            round_seconds = (time.monotonic() - began) / rounds
            time.sleep(moments.uniform(0, min(round_seconds, 1.0)))
            daemon.kill()
            daemon.start()
            killed += 1
            hit_before_kill = False
        else:
            hit_before_kill = bool(found)
    assert running.receive()[1] is None
    running.send("stop")
    running.result()


def slowed():
    """Each copy between the engine and the staging segment takes half a second longer."""
    from ucm.staging import Staging

    for name in ("load", "save"):

        def slow(self, *arguments, copy=getattr(Staging, name)):
            time.sleep(0.5)
            return copy(self, *arguments)

        setattr(Staging, name, slow)


def thrice(llm, tell, hear):
    found = []
    for _ in range(3):
        found.append(generate(llm, WANTED[-6:]))
        forget(llm)
    return found


@pytest.mark.full
def test_copies_that_take_half_a_second(engine, daemon, mode):
    expected = engine(lambda llm, *_: generate(llm, WANTED[-6:])).result()
    rounds = engine(thrice, daemon, before=slowed).result()
    assert [difference(found, expected) for found in rounds] == [None] * 3
    assert cached(rounds[-1]) == full_blocks(WANTED[-6:])
