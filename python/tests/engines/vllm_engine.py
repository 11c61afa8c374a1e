"""A real vLLM in processes that are forked from one which has imported it: seconds, not half a minute.

What a scenario does runs in the engine's process; its result comes back through a pipe.
"""

import logging
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback
from typing import NamedTuple, Optional

os.environ.update(
    HF_HUB_OFFLINE="1",
    VLLM_NO_USAGE_STATS="1",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    TORCH_COMPILE_DISABLE="1",
)
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

BLOCK = 128
# Of an engine that starts, on a machine with other things to do.
BOUND_SECONDS = 600.0
# Answers in float32 differ that much at the most; those of wrong KV differ by tenths.
LOGPROB = 1e-3


def preload():
    """Imports what each engine needs, once."""
    import vllm  # noqa: F401

    for module in (
        "vllm.v1.engine.llm_engine",
        "vllm.v1.engine.core",
        "vllm.v1.worker.cpu_worker",
        "vllm.v1.worker.cpu_model_runner",
        "vllm.model_executor.models.llama",
        "vllm.v1.executor.uniproc_executor",
    ):
        try:
            __import__(module)
        except ImportError:
            pass
    try:
        from vllm.model_executor.models import registry

        if hasattr(registry, "_run_in_subprocess"):
            registry._run_in_subprocess = lambda function: function()
    except ImportError:
        pass


def version():
    """Of vLLM, as numbers."""
    import vllm

    parts = vllm.__version__.split("+")[0].split(".")
    return tuple(int(part) for part in parts[:3] if part.isdigit())


class Answer(NamedTuple):
    """What became of a prompt: generated tokens, logprobs, and prompt tokens that were not computed."""

    tokens: list
    logprobs: list
    cached: Optional[int]


class Broken(AssertionError):
    """An engine that ended otherwise than the scenario wanted."""


class Forked:
    """An engine in a process of its own, and a scenario there: `scenario(llm, tell, hear)`.

    `tell` sends a message to the test, which `receive`s it; `hear` waits for one that the test `send`s.
    """

    def __init__(self, scenario, log, transfer=None, environment=None, **arguments):
        preload()
        self.log_path = str(log)
        self._connection, remote = multiprocessing.Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                self._connection.close()
                os.setpgid(0, 0)
                self._child(scenario, remote, transfer, environment or {}, arguments)
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

    def _child(self, scenario, remote, transfer, environment, arguments):
        out = os.open(self.log_path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        # Not where pytest wants them: vLLM's handler has taken that when vLLM was imported.
        sys.stdout = open(1, "w", buffering=1, closefd=False)
        sys.stderr = open(2, "w", buffering=1, closefd=False)
        for handler in logging.getLogger("vllm").handlers:
            handler.setStream(sys.stdout)
        os.environ.update(environment)
        from vllm import LLM
        from vllm.config import KVTransferConfig

        options = dict(
            dtype="float32",
            block_size=BLOCK,
            max_model_len=8192,
            enable_prefix_caching=True,
            seed=0,
            max_num_seqs=16,
            enforce_eager=True,
        )
        options.update(arguments)
        from ucm.integration.vllm import scheduler

        # A busy machine is no daemon that hangs; what a late answer costs has tests of its own.
        scheduler.LOOKUP_SECONDS = scheduler.HUNG_SECONDS = 60.0
        before = options.pop("before", None)
        if before is not None:
            before()
        if transfer is not None:
            options["kv_transfer_config"] = KVTransferConfig(**transfer)
        llm = LLM(**options)
        found = scenario(
            llm, lambda message: remote.send(("told", message)), lambda: remote.recv()
        )
        remote.send(("result", found))
        # As vLLM ends: the connector is shut down with its engine.
        shutdown = getattr(llm.llm_engine.engine_core, "shutdown", None)
        if shutdown is not None:
            shutdown()

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


def generate(llm, wanted, tokens=12, adapter=None, **more):
    """Answers of prompts, greedily, by the model with an adapter."""
    from vllm import SamplingParams

    parameters = SamplingParams(temperature=0, max_tokens=tokens, logprobs=1, ignore_eos=True, **more)
    found = llm.generate(wanted, parameters, use_tqdm=False, lora_request=adapter)
    return [answer(one) for one in found]


def answer(output):
    first = output.outputs[0]
    return Answer(
        list(first.token_ids),
        [next(iter(each.values())).logprob for each in first.logprobs],
        output.num_cached_tokens,
    )


def forget(llm):
    """Empties the engine's own prefix cache."""
    deadline = time.monotonic() + BOUND_SECONDS
    while llm.reset_prefix_cache() is False:
        assert time.monotonic() < deadline, "blocks stay taken"
        # Without an engine process nobody makes another step.
        generate(llm, [{"prompt_token_ids": list(range(20, 30))}], tokens=2)


def cached(answers):
    return [one.cached for one in answers]


def full_blocks(wanted, block=BLOCK):
    """How many tokens of each prompt can be found at the most: at least one is computed."""
    return [(len(one["prompt_token_ids"]) - 1) // block * block for one in wanted]


def difference(found, expected):
    """None when the answers are the same, else what is not."""
    for number, (one, other) in enumerate(zip(found, expected)):
        if one.tokens != other.tokens:
            return f"answer {number}: tokens {one.tokens}, expected {other.tokens}"
        worst = max(abs(a - b) for a, b in zip(one.logprobs, other.logprobs))
        if worst > LOGPROB:
            return f"answer {number}: logprobs differ by {worst}"
    return None if len(found) == len(expected) else "another number of answers"
