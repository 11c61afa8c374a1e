"""Engines whose workers are processes: two ranks, and one that is killed."""

import os
import signal

import pytest
import vllm_engine
from vllm_engine import Broken, cached, difference, figures, forget, full_blocks, generate, prompts

pytestmark = pytest.mark.started
WANTED = prompts(seed=21, count=2)
TWO = {
    "tensor_parallel_size": 2,
    "distributed_executor_backend": "mp",
    # Older versions bind ranks to processors and want to be told which.
    "environment": {"VLLM_CPU_OMP_THREADS_BIND": "0|1"},
}


def twice(llm, tell, hear):
    first = generate(llm, WANTED)
    forget(llm)
    return first, generate(llm, WANTED), figures("reads_in_place")


def once(llm, tell, hear):
    return generate(llm, WANTED)


def stores(llm, tell, hear):
    tell("begins")
    return generate(llm, WANTED)


@pytest.mark.skipif(vllm_engine.version() < (0, 11), reason="its CPU workers answer for the first rank alone")
@pytest.mark.parametrize(
    "pipeline, layerwise",
    [
        pytest.param("Posix", "false", marks=pytest.mark.full),
        pytest.param("Posix", "true", marks=pytest.mark.full),
        # Each rank reads its part in the daemon's memory.
        pytest.param("Cache|Posix", "false", marks=pytest.mark.newest),
        pytest.param("Cache|Posix", "true", marks=[pytest.mark.newest, pytest.mark.full]),
    ],
)
def test_two_ranks_and_one_that_is_killed(engine, daemon, pipeline, layerwise):
    daemon.write_yaml(pipeline, f"use_layerwise: {layerwise}\n")
    # Sums of two ranks differ from those of one by less than what is compared.
    expected = engine(once).result()
    killed = engine(stores, daemon, **TWO)
    killed.receive()
    os.kill(killed.children()[-1], signal.SIGKILL)
    with pytest.raises(Broken):
        killed.result()
    killed.kill()
    first, second, in_place = engine(twice, daemon, **TWO).result()
    assert in_place == ["Cache" in pipeline]
    assert difference(first, expected) is None
    assert difference(second, expected) is None
    assert cached(second) == full_blocks(WANTED)
    # The blocks of two ranks are none of one rank's: the request that is answered first finds nothing.
    assert min(cached(engine(once, daemon).result())) == 0
