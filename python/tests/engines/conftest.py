"""Tests with a real engine. Run by the Python of an environment that `tools/engines/venv` makes.

    tools/engines/test vllm 0.32.0 [pytest's arguments]
"""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "..", "..", "tools", "engines", "models")
PATHS = [os.path.join(HERE, "..", ".."), HERE]
sys.path[:0] = PATHS
sys.path.append(os.path.join(HERE, ".."))
# For processes of the engine.
os.environ["PYTHONPATH"] = os.pathsep.join(PATHS + [os.environ.get("PYTHONPATH", "")])

from daemons import Daemon, private  # noqa: E402


@pytest.fixture(scope="session")
def model():
    """The folder of the tiny model, as `tools/engines/test` made it."""
    return os.environ["UCM_ENGINE_MODEL"]


@pytest.fixture(scope="session")
def folder():
    """Where a tiny model is: `folder("gemma3")`."""
    found = {}

    def make(name):
        if name not in found:
            whose = ["--engine", os.environ["UCM_ENGINE"]] if "sglang" in os.environ["UCM_ENGINE"] else []
            ended = subprocess.run(
                [sys.executable, MODELS, *whose, name], stdout=subprocess.PIPE, text=True, check=True
            )
            found[name] = ended.stdout.split()[-1]
        return found[name]

    return make


@pytest.fixture
def daemon(tmp_path):
    """`ucm serve` and a configuration of this test alone."""
    found = Daemon(private(tmp_path / "d"), staging="256MiB")
    found.start()
    yield found
    found.stop()


@pytest.fixture(params=["direct", "layerwise", pytest.param("in place", marks=pytest.mark.newest)])
def mode(request, daemon):
    """All ways to load and save; in place, what is in the daemon's memory is read there."""
    pipeline = "Cache|Posix" if request.param == "in place" else "Posix"
    daemon.write_yaml(pipeline, f"use_layerwise: {str(request.param == 'layerwise').lower()}\n")
    return request.param


@pytest.fixture
def engine(tmp_path, model):
    """Makes engines: `engine(scenario, daemon)`; see `vllm_engine.Forked`."""
    from vllm_engine import ROOM, Forked

    made = []

    def make(scenario, daemon=None, **more):
        extra = more.pop("extra", {})
        transfer = more.pop("transfer", None)
        if daemon is not None:
            transfer = daemon.transfer(**extra)
        log = tmp_path / f"engine-{len(made)}.log"
        own = {} if "model" in more else {"model": model, "num_gpu_blocks_override": ROOM}
        made.append(Forked(scenario, log, transfer, **{**own, **more}))
        return made[-1]

    yield make
    for one in made:
        one.kill()
