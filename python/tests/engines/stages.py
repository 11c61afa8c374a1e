"""The stages of a pipeline: vLLM's own scheduler and KV cache groups, a worker side of the connector for
each stage, and no model. vLLM's CPU workers do not run stages; its GPU workers call the connector as this
does.

What a position of a layer holds is a function of all tokens up to it. It is written where the scheduler says
that it is computed, and compared wherever attention would look at it.
"""

import threading
import time

import numpy as np
import torch
from ucm.integration.vllm import scheduler as ours
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.utils import KVOutputAggregator
from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import (
    generate_scheduler_kv_cache_config,
    get_kv_cache_configs,
    get_request_block_hasher,
    init_none_hash,
)
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec
from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm_engine import saves

BLOCK, BYTES, WINDOW = 16, 4, 40
BOUND_SECONDS = 120.0


def spec(kind):
    """Of a layer with one head of one number for K and V."""
    common = dict(block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float16)
    return SlidingWindowSpec(sliding_window=WINDOW, **common) if kind == "w" else FullAttentionSpec(**common)


def digests(tokens, layer):
    """For each position, BYTES that depend on the tokens up to it and the layer."""
    value, found = 77 + layer, np.empty(len(tokens), np.uint32)
    for i, token in enumerate(tokens):
        value = (value * 1664525 + token + 1013904223) & 0xFFFFFFFF
        found[i] = value ^ (value >> 15)
    return found.view(np.uint8).reshape(len(tokens), BYTES)


class Stage:
    """A worker of one stage."""

    def __init__(self, config, kv_cache_config):
        self.groups = kv_cache_config.kv_cache_groups
        self.connector = KVConnectorFactory.create_connector(config, KVConnectorRole.WORKER, kv_cache_config)
        self.caches = {
            name: torch.zeros((kv_cache_config.num_blocks, BLOCK, 1, BYTES), dtype=torch.uint8)
            for group in self.groups
            for name in group.layer_names
        }

    def register(self):
        self.connector.register_kv_caches(self.caches)

    def execute(self, output, works):
        connector = self.connector
        connector.handle_preemptions(output.kv_connector_metadata)
        connector.bind_connector_metadata(output.kv_connector_metadata)
        if output.has_sync_kv_loads:
            connector.start_load_kv(None)
        for tokens, tables, computed, new in works:
            for number, group in enumerate(self.groups):
                for name in group.layer_names:
                    self._run(name, group.kv_cache_spec, tokens, tables[number], computed, new)
        if not output.has_sync_kv_loads:
            connector.start_load_kv(None)
        connector.wait_for_save()
        results = connector.get_transfer_results(output.finished_req_ids)
        invalid = connector.get_block_ids_with_load_errors()
        connector.clear_connector_metadata()
        return KVConnectorOutput(
            finished_sending=results.finished_sending,
            finished_recving=results.finished_recving,
            failed_recving=results.failed_recving,
            invalid_block_ids=invalid,
        )

    def _run(self, name, kind, tokens, table, computed, new):
        right = torch.from_numpy(digests(tokens, int(name.split(".")[2])))
        cache = self.caches[name]
        begin = max(0, computed + 1 - kind.sliding_window) if isinstance(kind, SlidingWindowSpec) else 0
        for position in range(begin, computed + new):
            block, offset = table[position // BLOCK], position % BLOCK
            if position >= computed:
                cache[block, offset, 0] = right[position]
            else:
                assert block != 0, f"{name}: no block for position {position}"
                same = torch.equal(cache[block, offset, 0], right[position])
                assert same, f"{name}: position {position} of {computed} holds wrong bytes"


class Pipeline:
    """An engine whose stages have a letter for each layer: `f` of full attention, or `w` with a window."""

    def __init__(self, model, transfer, stages, blocks=400):
        config = EngineArgs(
            model=model,
            dtype="float16",
            block_size=BLOCK,
            max_model_len=2048,
            max_num_batched_tokens=200,
            enable_prefix_caching=True,
            kv_transfer_config=transfer,
        ).create_engine_config()
        # After vLLM has made the configuration, as it would start processes for stages otherwise.
        config.parallel_config.pipeline_parallel_size = len(stages)
        config.cache_config.num_gpu_blocks_override = blocks
        # As the engine would, when its workers have said what they support.
        config.cache_config.kv_cache_layout = "LBHNC"
        self._socket = transfer.kv_connector_extra_config["ucm_socket"]
        # A busy machine is no daemon that hangs.
        ours.LOOKUP_SECONDS = ours.PLAN_SECONDS = ours.HUNG_SECONDS = 60.0
        number, specs = 0, []
        for layers in stages:
            specs.append({})
            for kind in layers:
                specs[-1][f"model.layers.{number}.self_attn.attn"] = spec(kind)
                number += 1
        configs = get_kv_cache_configs(config, specs, [1 << 30] * len(stages))
        for_scheduler = generate_scheduler_kv_cache_config(configs)
        config.cache_config.num_gpu_blocks = for_scheduler.num_blocks
        init_none_hash(sha256)
        self.hasher = get_request_block_hasher(BLOCK, sha256)
        self.scheduler = Scheduler(config, for_scheduler, StructuredOutputManager(config), BLOCK)
        self.stages = []
        for rank, kv_cache_config in enumerate(configs):
            config.parallel_config.rank = rank
            self.stages.append(Stage(config, kv_cache_config))
        # Each waits for the others, as workers in processes do.
        threads = [threading.Thread(target=stage.register) for stage in self.stages]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.aggregator = KVOutputAggregator(len(stages))
        self.cached = {}
        self.groups = len(for_scheduler.kv_cache_groups)

    def run(self, prompts):
        """Computes prompts and some tokens after each; how many tokens of each were not computed."""
        parameters = SamplingParams(temperature=0, max_tokens=3, ignore_eos=True)
        parameters.update_from_generation_config({}, 1)
        requests = {}
        for number, tokens in enumerate(prompts):
            name = f"{number}-{time.monotonic_ns()}"
            requests[name] = Request(name, list(tokens), parameters, None, block_hasher=self.hasher)
            self.scheduler.add_request(requests[name])
        until = time.monotonic() + BOUND_SECONDS
        while self.scheduler.has_requests():
            assert time.monotonic() < until, "requests have no end"
            self._step(requests)
        return [self.cached[name] for name in requests]

    def _step(self, requests):
        output = self.scheduler.schedule()
        works, ids = [], list(output.num_scheduled_tokens)
        computed = {one.req_id: one.num_computed_tokens for one in output.scheduled_new_reqs}
        self.cached.update(computed)
        cached = output.scheduled_cached_reqs
        computed.update(zip(cached.req_ids, cached.num_computed_tokens))
        for name in ids:
            tables = self.scheduler.kv_cache_manager.get_block_ids(name)
            new = output.num_scheduled_tokens[name]
            works.append((list(requests[name].all_token_ids), tables, computed[name], new))
        results = [
            ModelRunnerOutput(ids, {}, kv_connector_output=stage.execute(output, works))
            for stage in self.stages
        ]
        made = self.aggregator.aggregate(results)
        made.req_id_to_index = {name: i for i, name in enumerate(ids)}
        made.sampled_token_ids = [
            [sum(tokens) % 997] if at + new >= len(tokens) else [] for tokens, _, at, new in works
        ]
        self.scheduler.update_from_output(output, made)

    def forget(self):
        until = time.monotonic() + BOUND_SECONDS
        while not self.scheduler.reset_prefix_cache() or saves(self._socket):
            assert time.monotonic() < until, "blocks stay taken, or are not stored"
            self._step({})

    def close(self):
        self.scheduler.shutdown()
        for stage in self.stages:
            stage.connector.shutdown()
