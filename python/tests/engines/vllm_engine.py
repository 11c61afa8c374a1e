"""A real vLLM, in processes that are forked from one which has imported it."""

import contextlib
import functools
import json
import logging
import os
import sys
import time

import forked
from forked import Answer, BOUND_SECONDS, Broken, apart, cached, difference, prompts  # noqa: F401

os.environ.update(
    HF_HUB_OFFLINE="1",
    VLLM_NO_USAGE_STATS="1",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    TORCH_COMPILE_DISABLE="1",
)
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

BLOCK = 128
# Blocks, more than all prompts of a test need: a GiB takes long to fill with zeros at each start.
ROOM = 256
# Of the daemon, in an engine's process.
_socket = None


@functools.cache
def preload():
    """Does once what each engine would do at its start as far as it can be inherited."""
    import vllm  # noqa: F401

    for module in (
        "vllm.v1.engine.llm_engine",
        "vllm.v1.engine.core",
        "vllm.v1.worker.cpu_worker",
        "vllm.v1.worker.cpu_model_runner",
        "vllm.model_executor.models.llama",
        "vllm.v1.executor.uniproc_executor",
        "vllm.entrypoints.serve.utils.api_utils",
        "vllm.entrypoints.launchers.cli_args",
        "compressed_tensors",
        "ucm.integration.vllm.scheduler",
        "ucm.integration.vllm.worker",
    ):
        try:
            __import__(module)
        except ImportError:
            pass
    if (0, 18) <= version() < (0, 26):
        keep_in_one_process()
    try:
        from vllm.model_executor.models import registry

        if hasattr(registry, "_run_in_subprocess"):
            registry._run_in_subprocess = lambda function: function()
    except ImportError:
        pass
    replace_kernels()


def replace_kernels():
    """Of Triton by those for a CPU, which looks at all modules."""
    from vllm.platforms import current_platform

    name = "register_triton_kernel_overrides"
    if hasattr(type(current_platform), name):
        getattr(current_platform, name)()
        setattr(type(current_platform), name, classmethod(lambda cls: None))


def keep_in_one_process():
    """As later versions do without an engine process: what a test changes here is not changed in a worker."""
    from vllm.platforms.cpu import CpuPlatform

    check = CpuPlatform.check_and_update_config
    if check.__name__ != "checked":

        def checked(config):
            check(config)
            if config.parallel_config.world_size == 1:
                config.parallel_config.distributed_executor_backend = "uni"

        CpuPlatform.check_and_update_config = staticmethod(checked)
    import torch

    if hasattr(torch, "accelerator") and not torch.cuda.is_available():
        # vLLM 0.20 waits for a GPU at its end, also where there is none, which forked processes cannot.
        torch.accelerator.synchronize = lambda *_: None


def version():
    """Of vLLM, as numbers."""
    import vllm

    parts = vllm.__version__.split("+")[0].split(".")
    return tuple(int(part) for part in parts[:3] if part.isdigit())


class Forked(forked.Forked):
    """vLLM's class LLM; more arguments are those of it."""

    def __init__(self, scenario, log, transfer=None, environment=None, **arguments):
        preload()
        super().__init__(scenario, log, environment, transfer=transfer, **arguments)

    @contextlib.contextmanager
    def made(self, transfer, **arguments):
        # vLLM's handler has taken pytest's stream when vLLM was imported.
        for handler in logging.getLogger("vllm").handlers:
            handler.setStream(sys.stdout)
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
        scheduler.LOOKUP_SECONDS = scheduler.PLAN_SECONDS = scheduler.HUNG_SECONDS = 60.0
        if options["dtype"] == "float32" and "qwen3-next" in str(options["model"]):
            import linear

            linear.in_float32()
        before = options.pop("before", None)
        if before is not None:
            before()
        if transfer is not None:
            options["kv_transfer_config"] = KVTransferConfig(**transfer)
        global _socket
        _socket = transfer and transfer["kv_connector_extra_config"]["ucm_socket"]
        llm = LLM(**options)
        yield llm
        # As vLLM ends: the connector is shut down with its engine.
        shutdown = getattr(llm.llm_engine.engine_core, "shutdown", None)
        if shutdown is not None:
            shutdown()


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


def forget(llm, settled=True):
    """Empties the engine's own prefix cache, and waits until what the daemon was given is in the store."""
    deadline = time.monotonic() + BOUND_SECONDS
    while llm.reset_prefix_cache() is False or (settled and saves()):
        assert time.monotonic() < deadline, "blocks stay taken, or are not stored"
        # Without an engine process nobody makes another step.
        generate(llm, [{"prompt_token_ids": list(range(20, 30))}], tokens=2)


def preempted():
    """The names of requests that are preempted from now on, in the engine's process."""
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.request import RequestStatus

    seen = set()
    schedule = Scheduler.schedule

    def watched(self, *arguments, **named):
        output = schedule(self, *arguments, **named)
        seen.update(
            one.request_id for one in self.waiting if one.status == RequestStatus.PREEMPTED
        )
        return output

    Scheduler.schedule = watched
    return seen


def saves(socket=None):
    """How many the daemon has not ended, that of this engine unless another is named; none without one."""
    return sum(one or 0 for one in figures("saves", socket))


def figures(key, socket=None):
    """What the daemon says of its engines under a key; nothing without one."""
    from ucm import protocol
    from ucm.client import Connection, Gone

    socket = socket or _socket
    if socket is None:
        return []
    try:
        observer = Connection(socket, protocol.OBSERVER, "test", BOUND_SECONDS)
        try:
            answer = observer.ask(protocol.STATUS, protocol.Writer(), protocol.STATUS_TEXT, BOUND_SECONDS)
        finally:
            observer.close()
    except (OSError, Gone):
        return []
    return [one.get(key) for one in json.loads(protocol.Reader(answer.body).string())["engines"]]


def full_blocks(wanted, block=BLOCK):
    """How many tokens of each prompt can be found at the most: at least one is computed."""
    return [(len(one["prompt_token_ids"]) - 1) // block * block for one in wanted]
