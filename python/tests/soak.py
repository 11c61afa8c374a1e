"""Aborts, preemption storms and kills in numbers: no wrong byte, no stuck request, nothing leaked.

UCM_HOME=IMAGE python3 python/tests/soak.py [--aborts 1000] [--storms 200] [--worker-kills 200]
    [--scheduler-kills 200] [--daemon-kills 200] [--seed 1] [--json]

Each engine checks every byte of KV that it uses, and at its end that it leaked no block. Exit code 0
when everything held.
"""

import argparse
import glob
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from conftest import Daemon  # noqa: E402  It sets the paths of the others.
from test_end_to_end import prompts, settle, status, wait_connected  # noqa: E402
from toy_engine import ToyEngine  # noqa: E402

ENGINE = """
import json, sys
from toy_engine import ToyEngine
from test_end_to_end import prompts

if __name__ == "__main__":
    engine = ToyEngine(json.loads(sys.argv[1]), num_blocks=40, budget=48, tp=2, prefix_caching=False)
    print(*[rank.process.pid for rank in engine.ranks], flush=True)
    for round in range(10_000):
        for i, prompt in enumerate(prompts(round % 7, 12)):
            engine.add(f"{round}-{i}", prompt, max_tokens=3)
            engine.step()
        engine.run()
"""


class Soak:
    """Counts what was done; a failure is an exception."""

    def __init__(self, daemon, seed):
        self.daemon = daemon
        self.choice = random.Random(seed)
        self.seed = seed
        self.done = {}

    def count(self, name, wanted):
        self.done[name] = self.done.get(name, 0) + 1
        if sys.stderr.isatty():
            end = "\n" if self.done[name] == wanted else "\r"
            print(f"{name}: {self.done[name]} of {wanted}", end=end, file=sys.stderr)

    def aborts(self, wanted):
        turn = 0
        while self.done.get("aborts", 0) < wanted:
            turn += 1
            engine = ToyEngine(self.daemon.transfer(), num_blocks=40, budget=48)
            live = []
            for i, prompt in enumerate(prompts(self.seed + turn, 200)):
                engine.add(f"r{i}", prompt, max_tokens=3)
                live.append(f"r{i}")
                if self.choice.random() < 0.5:
                    name = live.pop(self.choice.randrange(len(live)))
                    if name in engine.requests:
                        engine.abort(name)
                        self.count("aborts", wanted)
                if self.choice.random() < 0.7:
                    engine.step()
            self.end(engine)

    def storms(self, wanted):
        """The pool has room for little more than one request; several run."""
        engine = None
        for turn in range(wanted):
            if engine is None:
                engine = ToyEngine(
                    self.daemon.transfer(), num_blocks=14, budget=48, prefix_caching=False
                )
            for i, prompt in enumerate(prompts(self.seed + turn % 9, 3, prefixes=2, longest=90)):
                engine.add(f"{turn}-{i}", prompt, max_tokens=24)
            engine.run()
            self.count("storms", wanted)
            if turn % 20 == 19 or turn == wanted - 1:
                self.end(engine)
                engine = None

    def kills(self, name, wanted, whom):
        """Kills a process of an engine while it loads and saves."""
        for _ in range(wanted):
            process = subprocess.Popen(
                [sys.executable, "-c", ENGINE, json.dumps(self.daemon.transfer())],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            ranks = [int(pid) for pid in process.stdout.readline().split()]
            assert len(ranks) == 2, "the engine did not start"
            time.sleep(self.choice.random() * 0.5)
            os.kill(whom(process.pid, ranks), signal.SIGKILL)
            # An engine ends with any of its processes, as vLLM's does.
            process.kill()
            process.wait()
            for pid in ranks:
                _kill(pid)
            deadline = time.monotonic() + 20
            while status(self.daemon):
                assert time.monotonic() < deadline, "the daemon keeps an engine that is gone"
            self.count(name, wanted)
        # What it has stored is right.
        reader = ToyEngine(self.daemon.transfer(), num_blocks=60, tp=2, prefix_caching=False)
        for i, prompt in enumerate(prompts(0, 12)):
            reader.add(f"check-{i}", prompt)
        reader.run()
        assert wanted == 0 or reader.hits > 0, "nothing was stored"
        self.end(reader)

    def daemon_kills(self, wanted):
        engine = ToyEngine(self.daemon.transfer(), num_blocks=40, budget=48, prefix_caching=False)
        for turn in range(wanted):
            for i, prompt in enumerate(prompts(self.seed + turn % 11, 8)):
                engine.add(f"{turn}-{i}", prompt, max_tokens=3)
            for _ in range(self.choice.randrange(12)):
                engine.step()
            self.daemon.kill()
            engine.run()
            self.daemon.start()
            wait_connected(engine)
            self.count("daemon kills", wanted)
        assert len(engine.outputs) == 8 * wanted
        self.end(engine)

    def end(self, engine):
        engine.run()
        settle(self.daemon)
        engine.close()

    def nothing_is_left(self):
        deadline = time.monotonic() + 20
        while status(self.daemon):
            assert time.monotonic() < deadline, status(self.daemon)
        self.daemon.stop()
        name = os.path.basename(self.daemon.socket)
        left = [path for path in glob.glob("/dev/shm/ucm*") if f"-{self.daemon.process.pid}-" in path]
        assert left == [], (name, left)


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (
        ("aborts", 1000),
        ("storms", 200),
        ("worker-kills", 200),
        ("scheduler-kills", 200),
        ("daemon-kills", 200),
        ("seed", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        soak = Soak(Daemon(folder, pipeline="Cache|Posix").start(), asked.seed)
        try:
            soak.aborts(asked.aborts)
            soak.storms(asked.storms)
            soak.kills("worker kills", asked.worker_kills, lambda _, ranks: soak.choice.choice(ranks))
            soak.kills("scheduler kills", asked.scheduler_kills, lambda pid, _: pid)
            soak.daemon_kills(asked.daemon_kills)
            soak.nothing_is_left()
        finally:
            soak.daemon.kill()
    if asked.json:
        print(json.dumps(soak.done))
    else:
        for name, done in soak.done.items():
            print(f"{done:6d} {name}: no wrong byte, no stuck request, nothing leaked")


if __name__ == "__main__":
    main()
