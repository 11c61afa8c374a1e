"""Models of several KV cache groups: vLLM's hybrid manager stays on, and blocks of all groups come back."""

import math
import os
import pathlib
import random
from typing import NamedTuple

import pytest
import vllm_engine
from ucm import protocol
from vllm_engine import cached, difference, forget, full_blocks, generate, prompts

if vllm_engine.version() < (0, 31):
    pytest.skip("vLLM before 0.31 cannot be told of loads that failed in one group", allow_module_level=True)

# Longer than the models' windows, so that blocks are let go and parts of a hit are not loaded.
WANTED = prompts(count=3, length=1500, shared=700)
full = pytest.mark.full
OTHERS = ["gpt-oss", "gemma3n", "gemma4", "llama4"]
WINDOWS = ["gemma3", *(pytest.param(kind, marks=full) for kind in OTHERS)]
has_states = pytest.mark.skipif(vllm_engine.version() < (0, 32), reason="has no states with UCM")
# Linear layers as well, in float32.
KINDS = [*WINDOWS, pytest.param("qwen3-next", marks=[full, has_states])]


class Groups(NamedTuple):
    """How many groups of KV caches there are, where hits end, and for how many tokens there is room."""

    count: int
    step: int
    tokens: int


def groups(llm):
    from vllm.v1.core.kv_cache_utils import get_kv_cache_capacity

    core = llm.llm_engine.engine_core.engine_core
    config = core.scheduler.kv_cache_config
    step = math.lcm(*(group.kv_cache_spec.block_size for group in config.kv_cache_groups))
    return Groups(len(config.kv_cache_groups), step, get_kv_cache_capacity(core.vllm_config, config)[0])


def twice(llm, tell, hear):
    first = generate(llm, WANTED)
    forget(llm)
    return groups(llm), first, generate(llm, WANTED)


def once(llm, tell, hear):
    return groups(llm), generate(llm, WANTED)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layerwise", [False, pytest.param(True, marks=full)])
def test_blocks_of_all_groups_are_found_and_answers_are_equal(engine, daemon, folder, kind, layerwise):
    daemon.write_yaml("Posix", f"use_layerwise: {str(layerwise).lower()}\n")
    arguments = dict(model=folder(kind), max_num_batched_tokens=600)
    plain, expected = engine(once, **arguments).result()
    assert plain.count > 1
    found = full_blocks(WANTED, plain.step)
    own, first, second = engine(twice, daemon, **arguments).result()
    # The manager of groups is on, and keeps as much.
    assert own == plain
    assert difference(first, expected) is None
    assert cached(second) == found
    assert difference(second, expected) is None
    daemon.restart()
    _, third = engine(once, daemon, **arguments).result()
    assert cached(third) == found
    assert difference(third, expected) is None


def room(llm, tell, hear):
    return groups(llm)


@full
def test_there_is_room_for_as_many_tokens_as_without_ucm(engine, daemon, folder):
    """In 1 GiB; without the manager of groups there is a quarter of that."""
    arguments = dict(model=folder("gemma3"), max_model_len=32768, max_num_batched_tokens=2048)
    plain = engine(room, **arguments).result()
    assert (plain.count, plain.tokens) == (6, 743_588)
    assert engine(room, daemon, **arguments).result() == plain
    off = engine(room, daemon, disable_hybrid_kv_cache_manager=True, **arguments).result()
    assert (off.count, off.tokens) == (1, 174_720)


@full
@pytest.mark.parametrize("kind", WINDOWS)
def test_without_the_hybrid_manager_blocks_have_other_names(engine, daemon, folder, kind):
    arguments = dict(model=folder(kind))
    _, expected = engine(once, daemon, **arguments).result()
    arguments["disable_hybrid_kv_cache_manager"] = True
    for wanted in ([0, 0, 0], full_blocks(WANTED)):
        found, answers = engine(once, daemon, **arguments).result()
        assert found.count == 1
        # What the prompts of a step have in common is vLLM's own.
        most = [max(one, 640) for one in wanted]
        assert all(a <= b <= c for a, b, c in zip(wanted, cached(answers), most))
        assert difference(answers, expected) is None


def stored_bytes(daemon):
    """How large the files of blocks are."""
    files = pathlib.Path(daemon.folder, "data").rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


# Ten times the window of 512, so that one more window than that at the end is saved on the way.
LONG = prompts(seed=9, count=1, length=5400)


def test_of_windows_only_what_a_hit_wants_is_stored(engine, daemon, folder):
    """Five of six layers have windows; all layers of all blocks is what is kept without groups."""

    def long(llm, tell, hear):
        first = generate(llm, LONG)
        forget(llm)
        return first, generate(llm, LONG)

    first, second = engine(long, daemon, model=folder("gemma3")).result()
    assert cached(second) == full_blocks(LONG)
    assert difference(second, first) is None
    # Tokens, 2 heads of 64 numbers for K and V, in float32, in 6 layers.
    everything = full_blocks(LONG)[0] * 2 * 64 * 2 * 4 * 6
    daemon.stop()
    assert everything / 6 < stored_bytes(daemon) <= everything / 3


def test_prompts_that_part_find_what_they_have_in_common(engine, daemon, folder):
    """The second one tells where they part, the third one finds it; each in an engine's empty cache."""

    def alone(llm, tell, hear):
        found = []
        for one in WANTED:
            forget(llm)
            found += generate(llm, [one])
        return found

    expected = engine(alone, model=folder("gemma3")).result()
    found = engine(alone, daemon, model=folder("gemma3")).result()
    assert difference(found, expected) is None
    # 700 tokens in common.
    assert cached(found) == [0, 0, 640]


@full
@pytest.mark.parametrize("kind", KINDS)
def test_the_next_turn_of_a_chat_finds_what_was_said(engine, daemon, folder, kind):
    daemon.write_yaml("Posix", "use_layerwise: false\nsave_decode_blocks: true\n")

    def chat(llm, tell, hear):
        said = generate(llm, WANTED[:1], tokens=300)[0].tokens
        forget(llm)
        again = [{"prompt_token_ids": WANTED[0]["prompt_token_ids"] + said + [11, 12, 13]}]
        return groups(llm).step, again, generate(llm, again)

    step, again, found = engine(chat, daemon, model=folder(kind)).result()
    expected = engine(lambda llm, *_: generate(llm, again), model=folder(kind)).result()
    assert difference(found, expected) is None
    (asked,), (whole,) = full_blocks(WANTED[:1], step), full_blocks(again, step)
    if kind == "qwen3-next":
        # vLLM hands off no state behind generated tokens.
        assert cached(found) == [asked]
    else:
        # The last tokens of the answer may not have been computed.
        assert cached(found)[0] >= max(asked + 1, whole - step)


def off_by_one(kind):
    """The negative control: groups with a rule get the bytes of the block before the right one."""

    def before():
        from ucm.integration.vllm import worker

        parts = worker.WorkerSide._parts

        def wrong(self, copy, layers):
            for wanted, blocks, slots in parts(self, copy, layers):
                rule = self._rules[self._layout.groups.index(wanted)]
                if type(copy).__name__ == "Load" and rule.kind == kind:
                    assert len(slots) > 1
                    slots = [slots[0], *slots[:-1]]
                yield wanted, blocks, slots

        worker.WorkerSide._parts = wrong

    return before


@pytest.mark.parametrize(
    "model, kind",
    [
        ("gemma3", protocol.LAST),
        *(
            pytest.param(model, kind, marks=full)
            for model in ["gemma3", *OTHERS]
            for kind in (protocol.ALL, protocol.CHUNK if model == "llama4" else protocol.LAST)
            if (model, kind) != ("gemma3", protocol.LAST)
        ),
        # A hit has one state of it, whose controls are below.
        pytest.param("qwen3-next", protocol.ALL, marks=[full, has_states]),
    ],
)
def test_a_block_off_by_one_in_any_group_shows(engine, daemon, folder, model, kind):
    # So small that the shortest window, of 128 tokens, is several of them.
    arguments = dict(model=folder(model), block_size=32)
    plain, expected = engine(once, daemon, **arguments).result()
    _, found = engine(once, daemon, before=off_by_one(kind), **arguments).result()
    assert cached(found) == full_blocks(WANTED, plain.step)
    assert difference(found, expected) is not None


def under_pressure(llm, tell, hear):
    """More requests than there is room for, with answers that cross blocks; some are ended early."""
    from vllm import SamplingParams

    choice = random.Random(3)
    heads = [[choice.randrange(10, 1500) for _ in range(500)] for _ in range(3)]
    engine, answers, sent, preempted = llm.llm_engine, {}, 0, vllm_engine.preempted()
    parameters = SamplingParams(temperature=0, max_tokens=200, logprobs=1, ignore_eos=True)
    while sent < 30 or engine.has_unfinished_requests():
        if sent < 30:
            tail = [choice.randrange(10, 1500) for _ in range(600)]
            prompt = (heads[sent % 3] + tail)[: choice.randrange(140, 1100)]
            engine.add_request(str(sent), {"prompt_token_ids": prompt}, parameters)
            if sent % 7 == 6:
                engine.abort_request([str(sent - 3)])
            sent += 1
        for output in engine.step():
            if output.finished and output.outputs[0].finish_reason != "abort":
                answers[output.request_id] = vllm_engine.answer(output)
    return len(preempted), answers


# Blocks, fewer than those of the requests that run at once.
SMALL = {"gemma3": 110, "gpt-oss": 60, "gemma3n": 90, "gemma4": 90, "llama4": 90, "qwen3-next": 45}


@full
@pytest.mark.parametrize("kind", KINDS)
def test_preempted_and_aborted_requests_have_right_answers(engine, daemon, folder, kind):
    arguments = dict(
        model=folder(kind),
        num_gpu_blocks_override=SMALL[kind],
        max_num_batched_tokens=700,
        max_model_len=1536,
    )
    _, expected = engine(under_pressure, **arguments).result()
    for _ in range(2):
        count, found = engine(under_pressure, daemon, **arguments).result()
        assert count > 0
        both = sorted(set(found) & set(expected))
        assert len(both) >= 20
        assert sum(cached(found.values())) > sum(cached(expected.values()))
        assert difference([found[i] for i in both], [expected[i] for i in both]) is None


def failing_loads(every):
    from ucm.staging import Staging

    load, calls = Staging.load, []

    def sometimes(self, *arguments):
        calls.append(1)
        if len(calls) % every == 0:
            raise OSError("as a test wants it")
        return load(self, *arguments)

    Staging.load = sometimes


@full
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("kind", ["llama", *KINDS])
def test_a_load_that_fails_is_computed(engine, daemon, folder, kind, every):
    arguments = dict(model=folder(kind))
    _, expected = engine(once, daemon, **arguments).result()
    transfer = {**daemon.transfer(), "kv_load_failure_policy": "recompute"}
    run = engine(once, transfer=transfer, before=lambda: failing_loads(every), **arguments)
    _, found = run.result()
    assert "could not be loaded" in run.log()
    assert difference(found, expected) is None


# Of each the answer is compared.
REQUESTS = int(os.environ.get("UCM_RANDOM_REQUESTS", "2000"))


def random_prompts(count):
    """Each begins with a part of one before it, as long as it may be."""
    choice, made = random.Random(17), []
    for _ in range(count):
        begun = choice.choice(made[-40:]) if made and choice.random() < 0.8 else []
        kept = begun[: choice.randrange(len(begun) + 1)]
        made.append((kept + [choice.randrange(10, 1500) for _ in range(choice.randrange(1, 500))])[:1600])
    return [{"prompt_token_ids": one} for one in made]


def many(llm, tell, hear, count=REQUESTS):
    """Answers of all of them, some at a time; vLLM's own cache is emptied again and again."""
    choice, wanted, answers = random.Random(5), random_prompts(count), []
    while len(answers) < len(wanted):
        some = wanted[len(answers) : len(answers) + choice.randrange(1, 12)]
        answers += generate(llm, some, tokens=2)
        if choice.random() < 0.4:
            forget(llm)
        if len(answers) > len(wanted) // 2 and hear is not None:
            tell("half")
            hear()
            hear = None
    return answers


# Of the engine that answers many requests.
MANY = dict(block_size=32, max_num_batched_tokens=600)


@full
@pytest.mark.parametrize("kind", KINDS)
def test_each_of_many_requests_has_the_right_answer_also_when_the_daemon_is_killed(
    engine, daemon, folder, kind
):
    def run(*more):
        running = engine(many, *more, model=folder(kind), **MANY)
        running.receive()
        if more:
            daemon.kill()
            daemon.start()
        running.send("go on")
        return running.result()

    expected = run()
    found = run(daemon)
    assert difference(found, expected) is None
    assert sum(cached(found)) > sum(cached(expected)) * 1.2


def of_another_boundary():
    """The negative control: a request's first state is stored in place of those after it."""
    from ucm.integration.vllm import groups

    right, kept = groups.saved_states, {}

    def wrong(rule, states, request_id, planned):
        for (request, group, _), block in states.items():
            kept.setdefault((request, group), block)
        found = right(rule, states, request_id, planned)
        return [(kept[request_id, planned.group], slot) for _, slot in found]

    groups.saved_states = wrong


def of_another_prompt():
    """Another one: each state is stored in place of the group's next one."""
    from ucm.integration.vllm import groups

    right, last = groups.saved_states, {}

    def wrong(rule, states, request_id, planned):
        found = []
        for block, slot in right(rule, states, request_id, planned):
            found.append((last.get(planned.group, block), slot))
            last[planned.group] = block
        return found

    groups.saved_states = wrong


@full
@has_states
@pytest.mark.parametrize("wrong", [of_another_boundary, of_another_prompt])
def test_wrong_states_show_among_many_requests(engine, daemon, folder, wrong):
    def some(llm, tell, hear):
        return many(llm, tell, None, count=200)

    arguments = dict(model=folder("qwen3-next"), **MANY)
    expected = engine(some, **arguments).result()
    found = engine(some, daemon, before=wrong, **arguments).result()
    assert sum(cached(found)) > sum(cached(expected)) * 1.2
    assert difference(found, expected) is not None


LINEAR = dict(dtype="bfloat16", block_size=None, max_num_batched_tokens=600)
# Alone in its step, an answer in bfloat16 is the same each time; a wrong state changed it by 0.0002.
NOISE = 1e-5


def linear(llm, tell, hear, wanted=WANTED):
    """Tokens of a block, and answers one by one, without vLLM's own cache and then again."""
    block = llm.llm_engine.vllm_config.cache_config.block_size
    rounds = []
    for _ in range(2):
        forget(llm)
        rounds.append([answer for one in wanted for answer in generate(llm, [one], tokens=1)])
    return block, *rounds


def gap(found, expected):
    """By how much the first logprobs differ at the most."""
    return max(abs(a.logprobs[0] - b.logprobs[0]) for a, b in zip(found, expected))


def linear_engine(engine, folder, *more, scenario=linear, **arguments):
    try:
        return engine(scenario, *more, model=folder("qwen3-next"), **LINEAR, **arguments).result()
    except vllm_engine.Broken as reason:
        if more:
            raise
        pytest.skip(f"vLLM itself does not run this model here: {str(reason)[:300]}")


@full
@has_states
def test_states_of_linear_layers_are_found_where_prompts_end(engine, daemon, folder):
    block, expected, _ = linear_engine(engine, folder)
    _, first, second = linear_engine(engine, folder, daemon)
    assert cached(second) == full_blocks(WANTED, block)
    assert gap(first, expected) < NOISE
    assert gap(second, expected) < NOISE
    daemon.restart()
    _, third, _ = linear_engine(engine, folder, daemon)
    assert cached(third) == full_blocks(WANTED, block)
    assert gap(third, expected) < NOISE


@full
@has_states
def test_a_state_of_another_boundary_shows(engine, daemon, folder):
    block, expected, _ = linear_engine(engine, folder)
    _, first, second = linear_engine(engine, folder, daemon, before=of_another_boundary)
    assert gap(first, expected) < NOISE
    assert cached(second) == full_blocks(WANTED, block)
    assert gap(second, expected) > NOISE


def linear_behind(llm, tell, hear):
    return linear(llm, tell, hear, prompts(seed=8, count=3, length=1027, shared=0))


@full
@has_states
def test_a_state_of_another_prompt_shows(engine, daemon, folder):
    """Far above what a step with other requests changes, as the prompt ends right behind the state."""
    _, expected, _ = linear_engine(engine, folder, scenario=linear_behind)
    _, _, found = linear_engine(engine, folder, daemon, scenario=linear_behind, before=of_another_prompt)
    assert min(cached(found)) == 1024
    # There is none before the first one.
    assert gap(found[:1], expected[:1]) < NOISE
    assert all(gap([one], [other]) > 0.1 for one, other in zip(found[1:], expected[1:]))


@full
def test_linear_layers_without_states_at_boundaries_run_without_ucm(engine, daemon, folder):
    """Without vLLM's prefix cache there are none; the log says it once."""
    run = engine(once, daemon, model=folder("qwen3-next"), enable_prefix_caching=False, **LINEAR)
    try:
        run.result()
    except vllm_engine.Broken as reason:
        pytest.skip(f"vLLM itself does not run this model here: {str(reason)[:300]}")
    assert run.log().count("so nothing is found or saved") == 1
