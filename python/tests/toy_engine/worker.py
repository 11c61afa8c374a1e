"""A rank: holds the KV tensors, and calls the worker side of the connector in vLLM's order."""

import multiprocessing
import os
import pickle
import traceback
from dataclasses import dataclass, field
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, Dict, List, Optional, Set

import torch

from . import gpus, kv


@dataclass
class RankResult:
    """What a rank reports of a step."""

    sent: Optional[Set[str]] = None
    received: Optional[Set[str]] = None
    invalid: Set[int] = field(default_factory=set)
    tokens: Dict[str, int] = field(default_factory=dict)


@dataclass
class Work:
    """A request's part in a step, as the runner needs it."""

    request_id: str
    hashes: Any
    table: List[int]
    computed: int
    new: int


class Rank:
    """The runner of one rank, in this process."""

    def __init__(self, config, rank, layout, kv_cache_config):
        from vllm import PROFILE
        from vllm.distributed import parallel_state
        from vllm.distributed.kv_transfer.kv_connector.factory import create_connector
        from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole

        self.profile = PROFILE
        tp = config.parallel_config.tensor_parallel_size
        self.content_rank = 0 if layout == "mla" else rank % tp
        self.tokens = config.cache_config.block_size
        parallel_state.set_tp_group(rank % tp, tp)
        config.parallel_config.rank = rank
        self.connector = create_connector(config, KVConnectorRole.WORKER, kv_cache_config)
        self.names = kv_cache_config.kv_cache_groups[0].layer_names
        self.first_layer = int(self.names[0].split(".")[2])
        self.tensors, self.views = {}, []
        gpu = gpus.of_environment()
        for name in self.names:
            tensor, view = self._allocate(layout, config.cache_config.num_gpu_blocks, gpu)
            self.tensors[name] = tensor
            self.views.append(view)
        if gpu is not None:
            from ucm import device

            device.new_probe = lambda _: gpu.zeros((device.PROBE_BYTES,), torch.uint8)
        if self.profile < (0, 12):
            # Warm-up: the hooks may come before any metadata is bound.
            for name in self.names:
                self.connector.wait_for_layer_load(name)
                self.connector.save_kv_layer(name, self.tensors[name], None)
        self.connector.register_kv_caches(self.tensors)
        if self.profile >= (0, 11):
            self.connector.set_host_xfer_buffer_ops(None)

    def _allocate(self, layout, blocks, gpu):
        return kv.allocate(layout, blocks, self.tokens, gpu)

    def execute(self, meta, works: List[Work], finished: Set[str], preempted: Set[str]):
        connector = self.connector
        assert meta is not None, "build_connector_meta returned nothing"
        if self.profile >= (0, 18):
            connector.handle_preemptions(meta)
        elif self.profile >= (0, 15) and preempted:
            connector.handle_preemptions(preempted)
        connector.bind_connector_metadata(meta)
        connector.start_load_kv(object())
        result = RankResult()
        wrong: Dict[int, str] = {}
        if works:
            self._begin(works)
            for layer, name in enumerate(self.names):
                hooked = self.profile < (0, 12) or connector.has_connector_metadata()
                if hooked:
                    connector.wait_for_layer_load(name)
                self._run_layer(layer, works, wrong)
                if hooked:
                    connector.save_kv_layer(name, self.tensors[name], object())
            connector.wait_for_save()
            self._end(works, result)
        result.sent, result.received = connector.get_finished(finished)
        if self.profile >= (0, 12):
            result.invalid = connector.get_block_ids_with_load_errors()
            assert isinstance(result.invalid, set)
        connector.clear_connector_metadata()
        for block, what in wrong.items():
            assert block in result.invalid, what
        return result

    def _begin(self, works):
        """Before the first layer of a step."""

    def _run_layer(self, layer, works, wrong):
        """Checks what the layer reads of its KV cache, and computes; notes blocks with wrong bytes."""
        for work in works:
            self._check(layer, work, wrong)
            self._compute(layer, work)

    def _end(self, works, result):
        """After the last layer: a runner with a model says which tokens come next."""

    def _slots(self, work, start, end):
        positions = range(start, end)
        return (
            [work.table[p // self.tokens] for p in positions],
            [p % self.tokens for p in positions],
        )

    def _check(self, layer, work, wrong):
        if work.computed == 0:
            return
        blocks, offsets = self._slots(work, 0, work.computed)
        assert 0 not in blocks, "the null block is used"
        found = self.views[layer][blocks, offsets]
        right = kv.expected(work.hashes[: work.computed], self.first_layer + layer, self.content_rank)
        same = (found == right.to(found.device)).flatten(1).all(1)
        if not bool(same.all()):
            position = int((~same).nonzero()[0])
            wrong.setdefault(
                blocks[position],
                f"request {work.request_id}, layer {layer}, block {blocks[position]}: position"
                f" {position} of {work.computed} holds wrong bytes",
            )

    def _compute(self, layer, work):
        end = work.computed + work.new
        blocks, offsets = self._slots(work, work.computed, end)
        right = kv.expected(work.hashes[work.computed : end], self.first_layer + layer, self.content_rank)
        view = self.views[layer]
        view[blocks, offsets] = right.to(view.device)

    def close(self):
        if self.profile >= (0, 11):
            self.connector.shutdown()


def _serve(pipe, config, rank, layout, kv_cache_config):
    # What it says comes where the test reads it.
    error = recv_handle(pipe)
    os.dup2(error, 2)
    os.close(error)
    try:
        runner = Rank(config, rank, layout, kv_cache_config)
        pipe.send(None)
        while True:
            message = pickle.loads(pipe.recv_bytes())
            if message is None:
                runner.close()
                pipe.send(None)
                return
            pipe.send(runner.execute(*message))
    except BaseException:
        pipe.send(traceback.format_exc())


class RankProcess:
    """A rank in a process of its own, which gets pickled copies of the metadata.

    It is forked from one that has imported PyTorch, the connector and nothing else of the tests.
    """

    def __init__(self, config, rank, layout, kv_cache_config):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, "ucm.integration.vllm.ucm_connector"])
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, config, rank, layout, kv_cache_config), daemon=True
        )
        self.process.start()
        theirs.close()
        send_handle(self.pipe, 2, self.process.pid)

    def ready(self):
        self._receive()

    def begin(self, *message):
        self.pipe.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def end(self):
        return self._receive()

    def _receive(self):
        answer = self.pipe.recv()
        if isinstance(answer, str):
            raise AssertionError(answer)
        return answer

    def close(self):
        self.pipe.send_bytes(pickle.dumps(None))
        self._receive()
        self.process.join(10)
