"""vLLM's own TieringOffloadingManager and its memory, called as its connector's scheduler calls it.

That scheduler needs a GPU; the manager and its tiers do not. The worker's copies between GPU and memory
are writes and comparisons here.
"""

import dataclasses
import itertools
import time

import numpy as np
import vllm.v1.kv_offload.base as base
from vllm.v1.kv_offload import config as configs
from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec

from ucm.integration.vllm import plugin

plugin.register()

BOUND_SECONDS = 120.0
_requests = itertools.count()


def _make(kind, **values):
    """A dataclass of vLLM, whose fields differ by version."""
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in known})


def key(number, group=0):
    """The name of a chunk."""
    return base.make_offload_key(number.to_bytes(32, "big"), group)


class Offloading:
    """A manager with one secondary tier, and room for `count` chunks of `size` bytes before it."""

    def __init__(self, tier, size, count, model="model"):
        self.size = size
        self.manager = TieringOffloadingSpec(
            _make(
                configs.OffloadingConfig,
                groups=(
                    _make(
                        configs.OffloadingGroupConfig,
                        tokens_per_block=16,
                        layer_names=("l0", "l1"),
                        group_id=0,
                    ),
                ),
                worker_kv_bytes_per_block=size,
                enable_kv_cache_events=False,
                extra_config={"cpu_bytes_to_use": size * count, "secondary_tiers": [tier]},
                engine_id=f"engine-{time.time_ns()}",
                model=configs.OffloadingModelConfig(model, "float16"),
                cache=configs.OffloadingCacheConfig(16, 1),
                parallel=_make(
                    configs.OffloadingParallelConfig,
                    rank=0,
                    world_size=1,
                    tp_size=1,
                    pp_size=1,
                    pcp_size=1,
                    dcp_size=1,
                    data_parallel_index=0,
                    data_parallel_size=1,
                    data_parallel_rank_local=None,
                    is_parallelism_agnostic=True,
                ),
            )
        ).get_manager()
        self.tier = self.manager.secondary_tiers[0]
        view = self.manager.primary_tier.get_kv_memoryview()
        self.memory = np.asarray(view).view(np.uint8)

    def content(self, of):
        """What the chunk of a name has to hold."""
        seed = int.from_bytes(bytes(of)[:32], "big")
        return np.random.default_rng(seed).integers(0, 256, self.size, dtype=np.uint8)

    def request(self):
        context = base.ReqContext(req_id=f"r{next(_requests)}")
        self.manager.on_new_request(context)
        return context

    def step(self):
        """The end of a step, in which results of the tier are taken and its jobs are handed out."""
        self.manager.on_schedule_end(base.ScheduleEndContext((), ()))

    def store(self, keys):
        """What a request has computed; False when there is no room at the moment."""
        request = self.request()
        found = self.manager.prepare_store(keys, request)
        if found is not None and found.keys_to_store:
            for name, number in zip(found.keys_to_store, _numbers(found.store_spec)):
                self.memory[number] = self.content(name)
            self.manager.complete_store(found.keys_to_store, request)
        self.manager.on_request_finished(request)
        self.step()
        return found is not None

    def load(self, keys):
        """Which of the chunks a new request is given; each one's bytes have been compared."""
        request = self.request()
        open_keys, hits = list(keys), []
        until = time.monotonic() + BOUND_SECONDS
        while open_keys:
            assert time.monotonic() < until, f"{len(open_keys)} look-ups have no end"
            waiting = []
            for name in open_keys:
                result = self.manager.lookup(name, request)
                if result is base.LookupResult.HIT:
                    spec = self.manager.prepare_load([name], request)
                    (number,) = _numbers(spec)
                    assert (self.memory[number] == self.content(name)).all(), "a wrong chunk"
                    self.manager.complete_load([name], request)
                    hits.append(name)
                elif result is not base.LookupResult.MISS:
                    waiting.append(name)
            open_keys = waiting
            self.step()
            time.sleep(0.0005)
        self.manager.on_request_finished(request)
        return hits

    def settle(self):
        """Takes steps until no job is open."""
        until = time.monotonic() + BOUND_SECONDS
        while self.manager.has_pending_work():
            assert time.monotonic() < until, "jobs have no end"
            self.step()
            time.sleep(0.0005)

    def close(self):
        self.manager.shutdown()


def _numbers(spec):
    return [int(i) for i in (spec.chunk_ids if hasattr(spec, "chunk_ids") else spec.block_ids)]
