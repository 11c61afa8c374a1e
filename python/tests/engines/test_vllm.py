"""KV blocks that leave a real vLLM and come back: the answers are those of an engine without UCM."""

import pytest
import vllm_engine
from vllm_engine import cached, difference, forget, full_blocks, generate, prompts

WANTED = prompts()
_references = {}


def newest(mode):
    return pytest.param(mode, marks=pytest.mark.newest)


# Since vLLM 0.15 both modes save alike.
DIRECT_FIRST = pytest.mark.parametrize(
    "mode", ["direct", pytest.param("layerwise", marks=pytest.mark.full)], indirect=True
)


def twice(llm, tell, hear):
    """Answers, and answers again without the engine's own cache."""
    first = generate(llm, WANTED)
    forget(llm)
    return first, generate(llm, WANTED)


def once(llm, tell, hear):
    return generate(llm, WANTED)


@pytest.fixture
def reference(engine):
    """Answers without UCM, of the same engine otherwise."""

    def find(scenario=once, **arguments):
        key = (scenario.__name__, repr(sorted(arguments.items())))
        if key not in _references:
            _references[key] = engine(scenario, **arguments).result()
        return _references[key]

    return find


def shift():
    """The negative control: each block that is loaded gets the bytes of the one before it.

    Blocks that only change places would not show: attention does not ask for the order of keys, and
    their positions are in them.
    """
    from ucm.staging import Staging

    load = Staging.load

    def shifted(self, layout, layers, slots, blocks):
        return load(self, layout, layers, [*slots[:1], *slots[:-1]], blocks)

    Staging.load = shifted


@pytest.mark.short
def test_blocks_are_found_after_restarts_and_answers_are_equal(engine, daemon, mode, reference):
    expected = reference()
    first, second = engine(twice, daemon).result()
    # Prompts of one step share no blocks that are stored yet, but those of the engine's own cache.
    assert difference(first, expected) is None
    assert cached(second) == full_blocks(WANTED)
    assert difference(second, expected) is None
    wrong = engine(once, daemon, before=shift).result()
    assert cached(wrong) == full_blocks(WANTED)
    assert difference(wrong, expected) is not None
    daemon.restart()
    third = engine(once, daemon).result()
    assert cached(third) == full_blocks(WANTED)
    assert difference(third, expected) is None


def test_prompts_that_are_computed_in_parts(engine, daemon, mode, reference):
    parts = {"max_num_batched_tokens": 256, "enable_chunked_prefill": True}
    expected = reference(**parts)
    first, second = engine(twice, daemon, **parts).result()
    assert difference(first, expected) is None
    assert difference(second, expected) is None
    assert cached(second) == full_blocks(WANTED)


def preempted(llm, tell, hear):
    """Long answers in a KV cache that is too small for all of them, twice."""
    seen = vllm_engine.preempted()
    first = generate(llm, WANTED, tokens=200)
    forget(llm)
    return len(seen), first, generate(llm, WANTED, tokens=200)


@pytest.mark.parametrize(
    "mode",
    ["direct", *(pytest.param(mode, marks=pytest.mark.full) for mode in ("layerwise", "in place"))],
    indirect=True,
)
def test_preempted_requests(engine, daemon, mode, reference):
    small = {"num_gpu_blocks_override": 32, "max_model_len": 2048}
    expected = reference(preempted, **small)
    count, first, second = engine(preempted, daemon, **small).result()
    assert count > 0
    assert difference(first, expected[1]) is None
    assert difference(second, expected[1]) is None


def crowded(llm, tell, hear):
    """All prompts again at once: blocks of the KV cache; of each that can be loaded, whether it has room."""
    from ucm.integration.vllm.scheduler import SchedulerSide

    generate(llm, WANTED)
    forget(llm)
    rooms, has_room = [], SchedulerSide._has_room

    def noted(self, request):
        rooms.append((self._blocks, has_room(self, request)))
        return rooms[-1][1]

    SchedulerSide._has_room = noted
    return rooms, generate(llm, WANTED)


@pytest.mark.skipif(vllm_engine.version() < (0, 11), reason="loads within a step")
def test_no_more_is_loaded_at_once_than_can_run(engine, daemon, reference):
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    small = {"num_gpu_blocks_override": 20, "max_model_len": 2048}
    rooms, found = engine(crowded, daemon, **small).result()
    assert {blocks for blocks, _ in rooms} == {20}
    assert {has_room for _, has_room in rooms} == {True, False}
    assert difference(found, reference(**small)) is None


def aborted(llm, tell, hear):
    """Some requests are given up in the middle, in each state; the answers of the others."""
    from vllm import SamplingParams

    engine = llm.llm_engine
    parameters = SamplingParams(temperature=0, max_tokens=12, logprobs=1, ignore_eos=True)
    found = {}
    for turn in range(3):
        for number, prompt in enumerate(WANTED):
            engine.add_request(f"{turn}-{number}", prompt, parameters)
        for step in range(1000):
            if step == turn:
                # In 0.26 and later a request has another name inside.
                engine.abort_request([f"{turn}-1", f"{turn}-2"])
            for output in engine.step():
                if output.finished:
                    found[output.request_id] = output
            if not engine.has_unfinished_requests():
                break
        forget(llm)
    kept = [found[f"{turn}-{number}"] for turn in range(3) for number in (0, 3)]
    return [vllm_engine.answer(one) for one in kept]


@DIRECT_FIRST
def test_requests_that_are_given_up(engine, daemon, mode, reference):
    expected = reference()
    found = engine(aborted, daemon).result()
    assert difference(found, [expected[0], expected[3]] * 3) is None


@pytest.mark.short
@pytest.mark.parametrize("mode", ["direct", newest("layerwise"), newest("in place")], indirect=True)
def test_the_daemon_is_killed_under_load(engine, daemon, mode, reference):
    def killed(llm, tell, hear):
        rounds = [generate(llm, WANTED)]
        tell("stored")
        hear()
        forget(llm)
        rounds.append(generate(llm, WANTED))
        tell("without a daemon")
        hear()
        for _ in range(200):
            forget(llm)
            rounds.append(generate(llm, WANTED))
            if cached(rounds[-1]) == full_blocks(WANTED):
                break
        return rounds

    expected = reference()
    running = engine(killed, daemon)
    assert running.receive() == "stored"
    daemon.kill()
    running.send("killed")
    assert running.receive() == "without a daemon"
    daemon.start()
    running.send("started")
    rounds = running.result()
    assert [difference(one, expected) for one in rounds] == [None] * len(rounds)
    assert cached(rounds[-1]) == full_blocks(WANTED)


@DIRECT_FIRST
def test_the_engine_is_killed_while_it_stores(engine, daemon, mode, reference):
    expected = reference()

    def stores(llm, tell, hear):
        tell("begins")
        return generate(llm, WANTED)

    for _ in range(2):
        running = engine(stores, daemon)
        running.receive()
        running.kill()
    first, second = engine(twice, daemon).result()
    assert difference(first, expected) is None
    assert difference(second, expected) is None
    assert cached(second) == full_blocks(WANTED)


def test_generated_blocks_of_a_chat(engine, daemon, reference):
    daemon.write_yaml("Posix", "use_layerwise: false\nsave_decode_blocks: true\n")

    def chat(llm, tell, hear):
        said = generate(llm, WANTED[:1], tokens=300)[0].tokens
        forget(llm)
        again = [{"prompt_token_ids": WANTED[0]["prompt_token_ids"] + said + [11, 12, 13]}]
        return again, generate(llm, again)

    again, found = engine(chat, daemon).result()
    expected = engine(lambda llm, *_: generate(llm, again)).result()
    assert difference(found, expected) is None
    # The last tokens of the answer may not have been computed.
    assert cached(found)[0] >= full_blocks(again)[0] - vllm_engine.BLOCK
    assert cached(found)[0] > full_blocks(WANTED)[0]


@pytest.mark.skipif(vllm_engine.version() < (0, 9, 0), reason="has no salts")
def test_an_empty_store_has_nothing_and_another_salts_blocks_are_not_found(engine, daemon):
    def salted(llm, tell, hear):
        found = []
        for salt in "aba":
            found += generate(llm, prompts(count=1, cache_salt=salt))
            forget(llm)
        return found

    assert cached(engine(salted, daemon).result()) == [0, 0, full_blocks(WANTED)[0]]


def steps_beside_a_copy(llm, tell, hear):
    """Whether the engine steps while a copy is under way, and what a reset right after a request says."""
    import threading

    from ucm.staging import Staging
    from vllm import SamplingParams

    stepped, waited = threading.Event(), []
    save = Staging.save

    def held(self, *arguments):
        waited.append(stepped.wait(60))
        return save(self, *arguments)

    Staging.save = held
    engine = llm.llm_engine
    engine.add_request("a", WANTED[0], SamplingParams(temperature=0, max_tokens=40, ignore_eos=True))
    count = 0
    while engine.has_unfinished_requests():
        engine.step()
        count += 1
        if count == 20:
            stepped.set()
    return waited, llm.reset_prefix_cache()


@pytest.mark.skipif(vllm_engine.version() < (0, 15, 0), reason="saves end with their step")
def test_no_step_waits_for_a_copy_and_a_reset_succeeds_after_it(engine, daemon):
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    waited, reset = engine(steps_beside_a_copy, daemon).result()
    assert waited and all(waited)
    assert reset is not False


def asked_for_logprobs(llm, tell, hear):
    """Of a prompt: answers to it before, and when they are asked for."""
    found = []
    for more in ({}, {}, {"prompt_logprobs": 1}):
        found += generate(llm, WANTED[:1], **more)
        forget(llm)
    return found


@pytest.mark.short
def test_logprobs_of_a_prompt_are_computed(engine, daemon):
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    assert cached(engine(asked_for_logprobs, daemon).result()) == [0, full_blocks(WANTED)[0], 0]
