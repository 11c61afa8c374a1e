"""Modes of the configuration, which the daemon carries out: what an engine loads and saves in each."""

import pytest
from test_end_to_end import prompts, settle, status
from toy_engine import ToyEngine

pytestmark = pytest.mark.usefixtures("patient")

PROMPT = list(range(100))


def run(engine, request_id, prompt, **more):
    engine.add(request_id, prompt, **more)
    engine.run()
    return engine.outputs[request_id]


@pytest.mark.parametrize("tp", [1, pytest.param(2, marks=pytest.mark.full)])
def test_chats_under_preemption_and_aborts(daemon, tp):
    daemon.write_yaml("Cache|Posix", "save_decode_blocks: true\n")
    engine = ToyEngine(daemon.transfer(), num_blocks=24, budget=48, tp=tp, prefix_caching=False)
    for turn in range(3):
        for i, prompt in enumerate(prompts(turn % 2, 10, prefixes=2, longest=100)):
            engine.add(f"{turn}-{i}", prompt, max_tokens=40)
            engine.step()
            if i % 4 == 3:
                engine.abort(f"{turn}-{i - 1}")
        engine.run()
        for request_id, answer in list(engine.outputs.items())[-4:]:
            engine.add(f"again-{turn}-{request_id}", PROMPT[:20] + answer, max_tokens=40)
        engine.run()
    assert engine.hits > 0
    settle(daemon)
    engine.close()


@pytest.mark.parametrize(
    "top, hits",
    [
        ("hit_ratio: 0.5\n", 48),
        ("persist_token_threshold: 101\n", 0),
        ("persist_token_threshold: 100\n", 96),
        ("load_tokens_threshold: 96\n", 0),
        ("load_tokens_threshold: 95\n", 96),
    ],
)
def test_thresholds(daemon, top, hits):
    daemon.write_yaml("Posix", top)
    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    for request_id in "ab":
        run(engine, request_id, PROMPT)
        settle(daemon)
    assert engine.hits == hits
    engine.close()


def test_lite_counts_hits_and_loads_none(daemon):
    daemon.write_yaml("Posix", "use_lite: true\n")
    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    for request_id in "ab":
        run(engine, request_id, PROMPT)
        settle(daemon)
    assert engine.hits == 0
    mine = status(daemon)[-1]
    assert (mine["prompt_blocks"], mine["external_hit_blocks"]) == (12, 6)
    engine.close()


def test_data_parallel_engines_share_blocks(daemon):
    transfer = daemon.transfer()
    transfer["engine_id"] = "one-engine"
    engines = [
        ToyEngine(dict(transfer, data_parallel_rank=rank), prefix_caching=False) for rank in (0, 1)
    ]
    assert {one["engine"] for one in status(daemon)} >= {"one-engine", "one-engine-dp1"}
    run(engines[0], "a", PROMPT)
    settle(daemon)
    run(engines[1], "a", PROMPT)
    assert [engine.hits for engine in engines] == [0, 96]
    settle(daemon)
    for engine in engines:
        engine.close()
