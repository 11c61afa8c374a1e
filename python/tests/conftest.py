"""The simulated engines and the package come first; tests that need a daemon start one."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
STANDINS = [os.path.join(HERE, "vllm_standin"), os.path.join(HERE, "sglang_standin")]
PATHS = [*STANDINS, os.path.join(HERE, ".."), HERE]
sys.path[:0] = PATHS
# For the processes of ranks.
os.environ["PYTHONPATH"] = os.pathsep.join(PATHS + [os.environ.get("PYTHONPATH", "")])

from daemons import Daemon, private  # noqa: E402

# Real engines have a configuration of their own: see engines/README.md.
collect_ignore = ["engines"]


@pytest.fixture(scope="session")
def shared_daemon(tmp_path_factory):
    found = Daemon(private(tmp_path_factory.mktemp("s") / "d")).start()
    yield found
    found.stop()


@pytest.fixture
def daemon(shared_daemon, tmp_path):
    """A daemon that all tests share, with blocks of this test alone."""
    return Daemon(private(tmp_path / "d"), shared_daemon.socket)


@pytest.fixture
def own_daemon(tmp_path):
    """A daemon that the test may kill."""
    found = Daemon(private(tmp_path / "d")).start()
    yield found
    found.stop()


@pytest.fixture
def patient(monkeypatch):
    """A busy machine is no slow daemon: a late look-up is no miss, and a late plan loses no block.

    What a late answer costs has tests of its own.
    """
    from ucm.integration.vllm import scheduler

    monkeypatch.setattr(scheduler, "LOOKUP_SECONDS", 60.0)
    monkeypatch.setattr(scheduler, "PLAN_SECONDS", 60.0)
