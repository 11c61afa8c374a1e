"""An engine that starts with UCM: its log, its statistics, and what it does when UCM cannot be had."""

import os
import re

import daemons
import pytest
import vllm_engine
from vllm_engine import cached, full_blocks, generate, prompts

WANTED = prompts(seed=11, count=1)


# vLLM 0.11 asserts that what counts is a process of its own.
COUNTED = vllm_engine.version() >= (0, 12)


def once(llm, tell, hear):
    return generate(llm, WANTED)


def counted(llm, tell, hear):
    """What the workers have counted for a prompt, as it comes from workers that are processes."""
    import pickle

    from ucm.integration.vllm import stats

    seen = []
    make = stats.make
    stats.make = lambda data: seen.append(dict(data)) or pickle.loads(pickle.dumps(make(data)))
    generate(llm, WANTED)
    return seen


@pytest.mark.short
def test_our_lines_have_the_form_of_the_engines_own_and_statistics_leave_the_workers(engine, daemon):
    made = engine(counted, daemon, disable_log_stats=False) if COUNTED else engine(once, daemon)
    seen = made.result()
    lines = [line for line in made.log().splitlines() if "UCM: connected" in line]
    # One of each side.
    assert len(lines) == 2 and all(re.search(r"INFO \d\d-\d\d .*\[.*client\.py:\d+\]", one) for one in lines)
    length = len(WANTED[0]["prompt_token_ids"])
    found = re.findall(r"INFO \d\d-\d\d .*request_id: \S+, (total_blocks_num.*)", made.log())
    blocks = length // vllm_engine.BLOCK
    assert found == [
        f"total_blocks_num: {blocks}, hit hbm: 0, hit external: 0, total tokens: {length}"
    ]
    if COUNTED:
        for name in ("prompt_blocks", "saved_blocks"):
            assert sum(one.get(name, 0) for one in seen) >= blocks


@pytest.mark.short
@pytest.mark.parametrize("extra", [{"UCM_CONFIG_FILE": "/none.yaml"}, {"UCM_CONFIG_FIEL": "x"}])
def test_an_engine_runs_without_us_and_says_why(engine, daemon, extra):
    more = {"UCM_CONFIG_FILE": "", **extra}
    made = engine(once, daemon, extra=more)
    assert len(made.result()) == 1
    assert "so nothing is found or saved" in made.log() and "Traceback" not in made.log()
    missing = "UCM_CONFIG_FILE" in extra
    said = "/none.yaml, which cannot be read" if missing else "did you mean UCM_CONFIG_FILE"
    assert said in made.log()


@pytest.mark.short
def test_the_daemon_that_an_engine_starts_outlives_it(engine, daemon):
    daemon.stop()
    made = engine(once, daemon, extra={"ucm_start_daemon": True})
    made.result()
    from ucm.daemon import _answers

    assert _answers(daemon.socket)
    again = engine(once, daemon)
    assert cached(again.result()) == full_blocks(WANTED)
    (process,) = daemons.processes_of(daemon.socket)
    assert os.sched_getaffinity(process) == os.sched_getaffinity(0)
    daemons.end(daemon.socket)
