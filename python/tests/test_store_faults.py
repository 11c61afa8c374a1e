"""What goes wrong in the store: an engine computes what it does not get, in time, and nothing wrong."""

import os
import time

import pytest
from test_end_to_end import prompts, settle
from toy_engine import ToyEngine

from ucm.integration.vllm import scheduler

pytestmark = pytest.mark.skipif(
    "UCM_PLUGINS" not in os.environ, reason="UCM_PLUGINS names no folder with the stage Faulty"
)

BOUND_SECONDS = 60
# Longer than a daemon may leave a plan unanswered.
LOOKUP_SECONDS = 2 * scheduler.HUNG_SECONDS
FAULTS = ["lookup slow", "lookup hang", "load fail", "load slow", "load hang", "dump fail"]


@pytest.mark.parametrize("fault", FAULTS)
def test_no_request_fails_with_the_store(daemon, fault, monkeypatch):
    monkeypatch.setattr(scheduler, "LOOKUP_SECONDS", LOOKUP_SECONDS)
    switch = os.path.join(daemon.folder, "fault")
    with open(daemon.yaml, "w", encoding="utf-8") as file:
        file.write(
            "ucm_connectors:\n"
            "  - ucm_connector_name: UcmPipelineStore\n"
            "    ucm_connector_config:\n"
            "      store_pipeline: Faulty|Posix\n"
            f"      faulty_file: {switch}\n"
            f"      storage_backends: {daemon.folder}/data\n"
        )
    engine = ToyEngine(daemon.transfer(), num_blocks=60, prefix_caching=False)
    requests = list(prompts(41, 8))
    late = list(prompts(43, 4))

    def run(name, all_of_them):
        for i, prompt in enumerate(all_of_them):
            engine.add(f"{name}{i}", prompt)
        engine.run(BOUND_SECONDS)
        return [engine.outputs[f"{name}{i}"] for i in range(len(all_of_them))]

    right = run("a", requests)
    settle(daemon)
    connections = engine.connector._scheduler._link.epoch
    with open(switch, "w", encoding="utf-8") as file:
        file.write(fault)
    start = time.monotonic()
    assert run("b", requests) == right
    first = run("c", late)
    assert time.monotonic() - start < BOUND_SECONDS
    os.remove(switch)
    # Plans are answered though look-ups are not.
    assert engine.connector._scheduler._link.epoch == connections
    settle(daemon)
    hits = engine.hits
    assert run("d", requests) == right
    assert run("e", late) == first
    assert engine.hits > hits
    settle(daemon)
    engine.close()
