"""Engines in processes that are forked from one which has imported them: seconds, not half a minute.

What a scenario does runs in the engine's process; its result comes back through a pipe.
"""

import functools
import gc
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback
from typing import NamedTuple, Optional

# Of an engine that starts, on a machine with other things to do.
BOUND_SECONDS = 600.0
# Answers in float32 differ that much at the most, by the other requests of their steps (1.1e-3 with vLLM
# 0.11.0); those of wrong KV differ by tenths.
LOGPROB = 3e-3


class Answer(NamedTuple):
    """What became of a prompt: generated tokens, logprobs, and prompt tokens that were not computed."""

    tokens: list
    logprobs: list
    cached: Optional[int]


class Broken(AssertionError):
    """An engine that ended otherwise than the scenario wanted."""


@functools.cache
def share():
    """What is imported is nobody's garbage: engines look at all of it again and again, and each would copy
    the memory that they have in common."""
    gc.collect()
    gc.freeze()
    gc.unfreeze = lambda: None


class Forked:
    """An engine in a process of its own, and a scenario there: `scenario(engine, tell, hear)`.

    `tell` sends a message to the test, which `receive`s it; `hear` waits for one that the test `send`s.
    """

    def __init__(self, scenario, log, environment=None, **arguments):
        self.log_path = str(log)
        share()
        self._connection, remote = multiprocessing.Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                self._connection.close()
                os.setpgid(0, 0)
                self._child(scenario, remote, environment or {}, arguments)
                status = 0
            except BaseException:
                traceback.print_exc()
                try:
                    remote.send(("failed", traceback.format_exc()))
                except OSError:
                    pass
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        remote.close()
        self._ended = False

    def _child(self, scenario, remote, environment, arguments):
        out = os.open(self.log_path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        # Not where pytest wants them.
        sys.stdout = open(1, "w", buffering=1, closefd=False)
        sys.stderr = open(2, "w", buffering=1, closefd=False)
        os.environ.update(environment)
        with self.made(**arguments) as engine:
            found = scenario(
                engine, lambda message: remote.send(("told", message)), lambda: remote.recv()
            )
            remote.send(("result", found))

    def made(self, **arguments):
        """The engine, as long as it is wanted; called in its process."""
        raise NotImplementedError

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def _next(self, kind):
        deadline = time.monotonic() + BOUND_SECONDS
        while not self._connection.poll(1.0):
            if time.monotonic() > deadline:
                raise Broken(f"no {kind} within {BOUND_SECONDS:g} s\n{self.log()[-6000:]}")
        try:
            found, value = self._connection.recv()
        except EOFError:
            raise Broken(f"the engine is gone\n{self.log()[-6000:]}") from None
        if found != kind:
            raise Broken(f"{found} instead of {kind}: {value}\n{self.log()[-6000:]}")
        return value

    def receive(self):
        """The scenario's next message."""
        return self._next("told")

    def send(self, message):
        self._connection.send(message)

    def result(self):
        """What the scenario returned, once the engine has ended."""
        found = self._next("result")
        _, status = os.waitpid(self.pid, 0)
        self._ended = True
        assert status == 0, self.log()[-6000:]
        return found

    def kill(self):
        """Ends it, and what it has started, as `kill -9` does."""
        if not self._ended:
            self._ended = True
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def children(self):
        """Its processes, such as workers."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]


def apart(function, *arguments):
    """Calls what uses PyTorch in a process of its own.

    Its threads are not in engines that are forked later, which would wait for them for ever.
    """
    child = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    child.start()
    child.join()
    assert child.exitcode == 0


def prompts(seed=0, count=4, length=1100, shared=550, **more):
    """Token prompts that begin alike."""
    choice = random.Random(seed)

    def tokens(number):
        return [choice.randrange(10, 1500) for _ in range(number)]

    first = tokens(shared)
    return [{"prompt_token_ids": first + tokens(length - shared), **more} for _ in range(count)]


def cached(answers):
    return [one.cached for one in answers]


def difference(found, expected):
    """None when the answers are the same, else what is not."""
    for number, (one, other) in enumerate(zip(found, expected)):
        if one.tokens != other.tokens:
            return f"answer {number}: tokens {one.tokens}, expected {other.tokens}"
        worst = max(abs(a - b) for a, b in zip(one.logprobs, other.logprobs))
        if worst > LOGPROB:
            return f"answer {number}: logprobs differ by {worst}"
    return None if len(found) == len(expected) else "another number of answers"
