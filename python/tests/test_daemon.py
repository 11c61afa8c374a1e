"""A daemon that an engine starts: what it gets from the engine, and what it does not."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import private
from ucm import daemon, launch

# Bits of the signals 32 and 33, which the C library keeps for itself and no program may set.
C_LIBRARY = 3 << 31

# An engine as vLLM's on a CPU: on one processor, of low rank, with variables and descriptors of its own.
ENGINE = """
import os, signal, sys
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
os.nice(5)
with open("/proc/self/oom_score_adj", "w") as file:
    file.write("500")
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.set_inheritable(os.open(sys.argv[2], os.O_RDONLY), True)
from ucm import daemon
print(daemon.start(sys.argv[1], 60), flush=True)
sys.stdin.read()
"""
OF_ENGINE = {"OMP_NUM_THREADS": "1", "VLLM_USE_V1": "1", "CUDA_VISIBLE_DEVICES": "7", "HF_TOKEN": "x"}


class Engine:
    """A process that has started a daemon."""

    def __init__(self, folder):
        self.socket = os.path.join(folder, "ucm.sock")
        self.secret = os.path.join(folder, "secret")
        open(self.secret, "w").close()
        self.process = subprocess.Popen(
            [sys.executable, "-c", ENGINE, self.socket, self.secret],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **OF_ENGINE, "AWS_PROFILE": "kept"},
            text=True,
        )
        assert self.process.stdout.readline() == "None\n"
        self.daemon = next(pid for pid in pids() if serves(pid, self.socket))

    def end(self):
        self.process.kill()
        self.process.communicate()


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def serves(pid, socket):
    words = read(pid, "cmdline").split(b"\0")
    return socket.encode() in words and b"serve" in words


def status(pid):
    return dict(line.split(":\t", 1) for line in read(pid, "status").decode().splitlines())


def descendants(pid):
    """As engines look for what they kill at their end: by the parents that processes have."""
    parents = {one: int(status(one).get("PPid", 0)) for one in pids()}
    found = [pid]
    for parent in found:
        found += [one for one, of in parents.items() if of == parent]
    return found[1:]


def allowed():
    """Processors that the machine allows a process."""
    code = "import os; os.sched_setaffinity(0, range(8192)); print(*os.sched_getaffinity(0))"
    return set(map(int, subprocess.check_output([sys.executable, "-c", code]).split()))


@pytest.fixture
def engine(tmp_path):
    made = Engine(private(tmp_path / "d"))
    yield made
    made.end()
    try:
        os.kill(made.daemon, signal.SIGKILL)
    except ProcessLookupError:
        pass


def test_the_daemon_has_all_processors_and_nothing_of_the_engine(engine):
    pid = engine.daemon
    assert os.sched_getaffinity(pid) == allowed()
    if os.geteuid() == 0:
        assert os.getpriority(os.PRIO_PROCESS, pid) == 0
    assert read(pid, "oom_score_adj") <= read("self", "oom_score_adj")
    assert int(status(pid)["SigIgn"], 16) & ~C_LIBRARY == 0
    assert int(status(pid)["SigBlk"], 16) & ~C_LIBRARY == 0
    names = {one.split(b"=")[0].decode() for one in read(pid, "environ").split(b"\0")}
    assert not names & {*OF_ENGINE, "PYTHONPATH"} and {"PATH", "AWS_PROFILE"} <= names
    opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert engine.secret not in opened


def test_the_daemon_outlives_an_engine_that_kills_its_descendants_and_ends(engine):
    child = subprocess.Popen(["sleep", "60"])
    assert child.pid in descendants(os.getpid()) and engine.process.pid in descendants(os.getpid())
    child.kill()
    child.wait()
    for pid in descendants(engine.process.pid):
        os.kill(pid, signal.SIGKILL)
    engine.end()
    assert engine.daemon not in descendants(os.getpid())
    assert os.getsid(engine.daemon) != os.getsid(0)
    assert daemon._answers(engine.socket)
    # The engine ignored this signal, and had it blocked.
    os.kill(engine.daemon, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while daemon._runs(engine.daemon):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_daemon_that_ends_at_once_is_said_with_its_last_line(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "ucm"
    program.write_text("#!/bin/sh\necho starting\necho ucm: no room here >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("UCM_HOME", str(home))
    socket = str(tmp_path / "d" / "ucm.sock")
    assert daemon.start(socket, 60) == f"ucm serve ended at once (ucm: no room here): see {socket}.log"
    program.write_text("#!/none/such\n")
    assert f"({program}: No such file or directory): see" in daemon.start(socket, 60)


def test_without_the_program_what_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("UCM_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "or set UCM_HOME to the unpacked image" in daemon.start(str(tmp_path / "ucm.sock"), 60)


def test_the_launcher_needs_nothing_but_the_standard_library():
    code = "import runpy, sys; runpy.run_path(sys.argv[1]); print('torch' in sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", code, launch.__file__]
    assert subprocess.check_output(command) == b"False\n"
