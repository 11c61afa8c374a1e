"""Look-ups that the daemon does not answer: the engine waits, but not long, and rests meanwhile."""

import signal
import time

import pytest
import vllm_engine
from vllm_engine import cached, difference, forget, full_blocks, generate, prompts

WANTED = prompts(seed=37, count=1)
STEPS = 100


def waits(llm, tell, hear):
    """Seconds of steps of which none can compute anything, then an answer, and one without the daemon."""
    from ucm.integration.vllm import scheduler
    from vllm import SamplingParams

    answers = generate(llm, WANTED)
    forget(llm)
    tell("stored")
    hear()
    engine = llm.llm_engine
    parameters = SamplingParams(temperature=0, max_tokens=12, logprobs=1, ignore_eos=True)
    engine.add_request("waits", WANTED[0], parameters)
    engine.step()
    begin = time.monotonic()
    for _ in range(STEPS):
        assert not engine.step()
    tell(time.monotonic() - begin)
    hear()
    finished = []
    while engine.has_unfinished_requests():
        finished += [one for one in engine.step() if one.finished]
    answers += [vllm_engine.answer(one) for one in finished]
    forget(llm)
    tell("stops")
    hear()
    scheduler.LOOKUP_SECONDS, scheduler.PLAN_SECONDS = 1.0, 0.2
    answers += generate(llm, WANTED)
    tell("late")
    hear()
    while not answers[-1].cached:
        forget(llm)
        answers[3:] = generate(llm, WANTED)
    return answers


@pytest.mark.skipif(vllm_engine.version() < (0, 11, 1), reason="asks once, and waits in that step")
def test_an_open_lookup(engine, daemon):
    expected = engine(lambda llm, *_: generate(llm, WANTED)).result()
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    running = engine(waits, daemon)
    assert running.receive() == "stored"
    daemon.freeze()
    running.send("paused")
    took = running.receive()
    daemon.process.send_signal(signal.SIGCONT)
    running.send("resumed")
    assert running.receive() == "stops"
    daemon.freeze()
    running.send("paused")
    assert running.receive() == "late"
    daemon.process.send_signal(signal.SIGCONT)
    running.send("resumed")
    answers = running.result()
    # A step that spins takes 0.1 ms.
    assert took > STEPS * 0.002
    assert [difference([one], expected) for one in answers] == [None] * 4
    assert cached(answers) == [0, full_blocks(WANTED)[0], 0, full_blocks(WANTED)[0]]
