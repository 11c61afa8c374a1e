"""A real SGLang, in processes that are forked from one which has imported it."""

import contextlib
import importlib
import json
import multiprocessing
import os
import re
import time

import forked
from forked import BOUND_SECONDS, Answer, prompts

os.environ.update(HF_HUB_OFFLINE="1")

PAGE = 64
OPTIONS = dict(
    device="cpu",
    dtype="float32",
    attention_backend="torch_native",
    sampling_backend="pytorch",
    disable_cuda_graph=True,
    disable_overlap_schedule=True,
    page_size=PAGE,
    context_length=4096,
    max_total_tokens=8192,
    max_running_requests=8,
    chunked_prefill_size=2048,
    random_seed=0,
    skip_server_warmup=True,
    enable_cache_report=True,
    log_level="info",
    # Else it asks for work all the time, on processors that tests share.
    sleep_on_idle=True,
    watchdog_timeout=BOUND_SECONDS,
)
HIERARCHY = dict(
    enable_hierarchical_cache=True,
    hicache_ratio=2,
    hicache_mem_layout="page_first",
    hicache_io_backend="kernel",
    hicache_write_policy="write_through",
    # So that a page which is stored is found, however long that takes.
    hicache_storage_prefetch_policy="wait_complete",
    hicache_storage_backend="dynamic",
)


def preload():
    """Imports what each engine needs, once."""
    for module in (
        "sglang.srt.entrypoints.engine",
        "sglang.srt.managers.scheduler",
        "sglang.srt.managers.detokenizer_manager",
        "sglang.srt.models.registry",
        "sglang.srt.mem_cache.unified_radix_cache",
    ):
        importlib.import_module(module)


def storage(daemon, **more):
    """The extra configuration of a daemon's storage."""
    return {
        "backend_name": "ucm",
        "module_path": "ucm.integration.sglang.hicache",
        "class_name": "UcmHiCache",
        "interface_v1": 1,
        "UCM_CONFIG_FILE": daemon.yaml,
        "ucm_socket": daemon.socket,
        "ucm_start_daemon": False,
        **more,
    }


class Forked(forked.Forked):
    """SGLang's class Engine; more arguments are those of it."""

    def __init__(self, scenario, log, extra=None, environment=None, **arguments):
        preload()
        super().__init__(scenario, log, environment, extra=extra, **arguments)

    @contextlib.contextmanager
    def made(self, extra, before=None, **arguments):
        from sglang.srt.entrypoints import engine

        # Its other processes have imported everything, too, and what `before` changed.
        multiprocessing.set_start_method("fork", force=True)
        engine.mp.set_start_method = lambda *_, **__: None
        from ucm import pages

        # A busy machine is no daemon that hangs; what a late answer costs has tests of its own.
        pages.LOOKUP_SECONDS = pages.RESERVE_SECONDS = pages.SILENT_SECONDS = 60.0
        if before is not None:
            before()
        options = dict(OPTIONS)
        if extra is not None:
            options.update(HIERARCHY, hicache_storage_backend_extra_config=json.dumps(extra))
        options.update(arguments)
        made = engine.Engine(**options)
        try:
            yield made
        finally:
            made.shutdown()


def generate(engine, wanted, tokens=12):
    """Answers of prompts, greedily, one after the other."""
    return [_answer(engine, prompt, tokens) for prompt in wanted]


def _answer(engine, prompt, tokens):
    found = engine.generate(
        input_ids=prompt["prompt_token_ids"],
        sampling_params=dict(temperature=0, max_new_tokens=tokens, ignore_eos=True),
        return_logprob=True,
    )
    about = found["meta_info"]
    return Answer(
        list(found["output_ids"]),
        [each[0] for each in about["output_token_logprobs"]],
        about["cached_tokens"],
    )


def forget(engine):
    """Empties the engine's own caches, of the device and of the host."""
    deadline = time.monotonic() + BOUND_SECONDS
    while not engine.flush_cache().success:
        assert time.monotonic() < deadline, "the engine's own cache stays"
        time.sleep(0.1)


def full_pages(wanted, page=PAGE):
    """How many tokens of each prompt can be found at the most: at least one is computed."""
    return [(len(one["prompt_token_ids"]) - 1) // page * page for one in wanted]


# They share nothing, so that the engine finds no pages of its own.
WANTED = prompts(count=2, shared=0)
PAGES = sum(full_pages(WANTED)) // PAGE
# Tokens that are found of each.
NOTHING = [0] * len(WANTED)


def once(engine, tell, hear):
    return generate(engine, WANTED)


def stored(engine, tell, hear):
    """Answers, when the test has seen their pages; and again, when the engine has forgotten them."""
    first = generate(engine, WANTED)
    tell(first)
    hear()
    forget(engine)
    return generate(engine, WANTED)


def files(daemon):
    """The blocks that are stored."""
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(os.path.join(daemon.folder, "data"))
        for name in names
        if re.fullmatch("[0-9a-f]{32}", name)
    ]


def until(held, what):
    deadline = time.monotonic() + BOUND_SECONDS
    while not held():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.05)
