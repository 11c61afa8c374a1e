"""Models of several KV cache groups: vLLM's hybrid manager stays on, and blocks of all groups come back."""

import random

import pytest
import vllm_engine
from vllm_engine import cached, difference, forget, full_blocks, generate, prompts

if vllm_engine.version() < (0, 31):
    pytest.skip("vLLM before 0.31 cannot be told of loads that failed in one group", allow_module_level=True)

# Longer than the models' windows, so that blocks are let go and parts of a hit are not loaded.
WANTED = prompts(count=3, length=1500, shared=700)
full = pytest.mark.full
WINDOWS = ["gemma3", pytest.param("gpt-oss", marks=full)]


def groups(llm):
    """How many groups of KV caches there are, and for how many tokens they have room."""
    core = llm.llm_engine.engine_core.engine_core
    config = core.scheduler.kv_cache_config
    return len(config.kv_cache_groups), core.scheduler.kv_cache_manager.block_pool.num_gpu_blocks


def twice(llm, tell, hear):
    first = generate(llm, WANTED)
    forget(llm)
    return groups(llm), first, generate(llm, WANTED)


def once(llm, tell, hear):
    return groups(llm), generate(llm, WANTED)


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("layerwise", [False, pytest.param(True, marks=full)])
def test_blocks_of_all_groups_are_found_and_answers_are_equal(engine, daemon, folder, kind, layerwise):
    daemon.write_yaml("Posix", f"use_layerwise: {str(layerwise).lower()}\n")
    arguments = dict(model=folder(kind), max_num_batched_tokens=600)
    plain, expected = engine(once, **arguments).result()
    assert plain[0] > 1
    own, first, second = engine(twice, daemon, **arguments).result()
    # The manager of groups is on, and keeps as much.
    assert own == plain
    assert difference(first, expected) is None
    assert cached(second) == full_blocks(WANTED)
    assert difference(second, expected) is None
    daemon.restart()
    _, third = engine(once, daemon, **arguments).result()
    assert cached(third) == full_blocks(WANTED)
    assert difference(third, expected) is None


@full
@pytest.mark.parametrize("kind", WINDOWS)
def test_without_the_hybrid_manager_the_same_blocks_are_found(engine, daemon, folder, kind):
    arguments = dict(model=folder(kind))
    _, expected = engine(once, daemon, **arguments).result()
    found, answers = engine(
        once, daemon, disable_hybrid_kv_cache_manager=True, **arguments
    ).result()
    assert found[0] == 1
    assert cached(answers) == full_blocks(WANTED)
    assert difference(answers, expected) is None


def off_by_one(group):
    """The negative control: a group gets the bytes of the block before the right one."""

    def before():
        from ucm.integration.vllm import worker

        parts = worker.WorkerSide._parts

        def wrong(self, copy, layers):
            for number, (wanted, blocks, slots) in enumerate(parts(self, copy, layers)):
                if type(copy).__name__ == "Load" and number == group:
                    slots = [slots[0], *slots[:-1]]
                yield wanted, blocks, slots

        worker.WorkerSide._parts = wrong

    return before


@pytest.mark.parametrize("group", [pytest.param(0, marks=full), 1])
def test_a_block_off_by_one_in_any_group_shows(engine, daemon, folder, group):
    arguments = dict(model=folder("gemma3"))
    _, expected = engine(once, daemon, **arguments).result()
    _, found = engine(once, daemon, before=off_by_one(group), **arguments).result()
    assert cached(found) == full_blocks(WANTED)
    assert difference(found, expected) is not None


def under_pressure(llm, tell, hear):
    """More requests than there is room for, with answers that cross blocks; some are ended early."""
    from vllm import SamplingParams

    choice = random.Random(3)
    heads = [[choice.randrange(10, 1500) for _ in range(500)] for _ in range(3)]
    engine, answers, sent = llm.llm_engine, {}, 0
    parameters = SamplingParams(temperature=0, max_tokens=150, logprobs=1, ignore_eos=True)
    while sent < 30 or engine.has_unfinished_requests():
        if sent < 30:
            head = heads[sent % 3]
            tail = [choice.randrange(10, 1500) for _ in range(choice.randrange(50, 900))]
            engine.add_request(str(sent), {"prompt_token_ids": head + tail}, parameters)
            if sent % 7 == 6:
                engine.abort_request([str(sent - 3)])
            sent += 1
        for output in engine.step():
            if output.finished and output.outputs[0].finish_reason != "abort":
                answers[output.request_id] = vllm_engine.answer(output)
    return answers


@full
def test_preempted_and_aborted_requests_have_right_answers(engine, daemon, folder):
    arguments = dict(
        model=folder("gemma3"),
        num_gpu_blocks_override=110,
        max_num_batched_tokens=700,
        max_model_len=2048,
    )
    expected = engine(under_pressure, **arguments).result()
    for _ in range(2):
        found = engine(under_pressure, daemon, **arguments).result()
        both = sorted(set(found) & set(expected))
        assert len(both) >= 20
        assert difference([found[i] for i in both], [expected[i] for i in both]) is None


def failing_loads():
    from ucm.staging import Staging

    load, calls = Staging.load, []

    def sometimes(self, *arguments):
        calls.append(1)
        if len(calls) % 3 == 0:
            raise OSError("as a test wants it")
        return load(self, *arguments)

    Staging.load = sometimes


@full
def test_a_load_that_fails_is_computed(engine, daemon, folder):
    arguments = dict(model=folder("gemma3"))
    _, expected = engine(once, daemon, **arguments).result()
    transfer = {**daemon.transfer(), "kv_load_failure_policy": "recompute"}
    _, found = engine(once, transfer=transfer, before=failing_loads, **arguments).result()
    assert difference(found, expected) is None


@full
def test_a_model_of_linear_layers_starts_without_ucm_and_says_so(engine, daemon, folder):
    arguments = dict(model=folder("qwen3-next"), dtype="bfloat16", block_size=None)
    try:
        expected = engine(lambda llm, *_: generate(llm, WANTED), **arguments).result()
    except vllm_engine.Broken as reason:
        pytest.skip(f"vLLM itself does not run this model here: {str(reason)[:300]}")
    run = engine(lambda llm, *_: generate(llm, WANTED), daemon, **arguments)
    found = run.result()
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    assert run.log().count("are not supported, so nothing is found or saved") >= 1
