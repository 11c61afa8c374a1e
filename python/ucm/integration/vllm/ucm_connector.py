"""``UCMConnector``: vLLM's side of UCM, through the daemon ``ucm serve``.

``--kv-transfer-config '{"kv_connector": "UCMConnector", "kv_connector_module_path":
"ucm.integration.vllm.ucm_connector", "kv_role": "kv_both", "kv_connector_extra_config":
{"UCM_CONFIG_FILE": "ucm.yaml"}}'``
"""

from __future__ import annotations

import inspect
import os
import weakref
from typing import Any, Dict, Iterable, MutableMapping, Optional, Set, Tuple

from vllm.distributed.kv_transfer.kv_connector.v1 import base
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
)

from ucm.integration.vllm import compat
from ucm.integration.vllm.metadata import IDLE


# Worker sides of this process, by process and engine.
_workers: MutableMapping[Tuple[int, str], Any] = weakref.WeakValueDictionary()


class UCMConnector(KVConnectorBase_V1, *compat.hybrid_bases()):  # type: ignore[misc]
    """Every optional method of every version is there; a version calls those that it knows."""

    _cache_hit_source = compat.hit_source()

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any = None) -> None:
        takes = inspect.signature(KVConnectorBase_V1.__init__).parameters
        if "kv_cache_config" in takes:
            super().__init__(vllm_config, role, kv_cache_config)
        else:
            super().__init__(vllm_config, role)
        self._scheduler: Any = None
        self._worker: Any = None
        self._key = (os.getpid(), str(vllm_config.kv_transfer_config.engine_id))
        if role == KVConnectorRole.SCHEDULER:
            from ucm.integration.vllm.scheduler import SchedulerSide

            self._scheduler = SchedulerSide(vllm_config, kv_cache_config)
        else:
            from ucm.integration.vllm.worker import WorkerSide

            self._worker = _workers[self._key] = WorkerSide(vllm_config, kv_cache_config)

    # -- scheduler side ----------------------------------------------------------------------------

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> Tuple[Optional[int], bool]:
        return self._scheduler.matched_tokens(request, num_computed_tokens)  # type: ignore[no-any-return]

    def update_state_after_alloc(
        self, request: Any, blocks: Any, num_external_tokens: int
    ) -> None:
        self._scheduler.allocated(request, blocks, num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        return self._scheduler.build_meta(scheduler_output)

    def update_connector_output(self, connector_output: Any) -> None:
        self._scheduler.worker_output(connector_output)

    def request_finished(
        self, request: Any, block_ids: Any
    ) -> Tuple[bool, Optional[Dict[str, Any]]]:
        beside = _workers.get(self._key)
        await_saves = None if beside is None else beside.await_saves
        return self._scheduler.finished(request, await_saves), None

    def request_finished_all_groups(
        self, request: Any, block_ids: Any
    ) -> Tuple[bool, Optional[Dict[str, Any]]]:
        return self.request_finished(request, block_ids)

    def take_events(self) -> Iterable[Any]:
        return self._scheduler.take_events()  # type: ignore[no-any-return]

    def get_finished_count(self) -> Optional[int]:
        return None

    def reset_cache(self) -> Optional[bool]:
        return self._scheduler.reset()  # type: ignore[no-any-return]

    def on_new_request(self, request: Any) -> None:
        """The look-up is sent when the request is asked for, with what the device has."""

    def has_pending_push_work(self) -> bool:
        return self._scheduler.keeps_blocks  # type: ignore[no-any-return]

    def has_pending_block_frees(self) -> bool:
        return self._scheduler.keeps_blocks  # type: ignore[no-any-return]

    def bind_gpu_block_pool(self, gpu_block_pool: Any) -> None:
        """Not needed."""

    def set_xfer_handshake_metadata(self, metadata: Any) -> None:
        """Not needed."""

    def set_xfer_handshake_metadata_pp_aware(self, metadata: Any) -> None:
        """Not needed."""

    @property
    def requires_kv_delivery(self) -> bool:
        return False

    # -- worker side -------------------------------------------------------------------------------

    def register_kv_caches(self, kv_caches: Dict[str, Any]) -> None:
        self._worker.register(kv_caches)

    @property
    def prefer_cross_layer_blocks(self) -> bool:
        return False

    def set_host_xfer_buffer_ops(self, copy_operation: Any) -> None:
        """Not needed."""

    def handle_preemptions(self, preempted: Any) -> None:
        """Up to 0.18 called with preempted requests alone, since then in each step with its metadata."""
        if preempted is not IDLE and (not _is_ours(preempted) or preempted.fences):
            self._worker.await_saves()

    def start_load_kv(self, forward_context: Any, **_: Any) -> None:
        meta = self._connector_metadata
        if meta is IDLE and not self._worker.deferred:
            # `step` stays None, and by it each of the calls to come knows that it has nothing to do.
            return
        if _is_ours(meta):
            self._worker.start_load(meta)

    def has_connector_metadata(self) -> bool:
        """Asked for each layer: whether its two calls have something to do."""
        worker = self._worker
        return worker is not None and worker.step is not None and worker.layerwise

    def wait_for_layer_load(self, layer_name: str) -> None:
        if self._worker.step is not None:
            self._worker.wait_for_layer_load(layer_name)

    def save_kv_layer(
        self, layer_name: str, kv_layer: Any, attn_metadata: Any, **_: Any
    ) -> None:
        if self._worker.step is not None:
            self._worker.save_layer(layer_name)

    def wait_for_save(self) -> None:
        if self._worker.step is not None:
            self._worker.wait_for_save()

    def clear_connector_metadata(self) -> None:
        if self._worker is not None and self._worker.step is not None:
            self._worker.end_step()
        super().clear_connector_metadata()

    def get_finished(
        self, finished_req_ids: Set[str]
    ) -> Tuple[Optional[Set[str]], Optional[Set[str]]]:
        return self._worker.take_finished()  # type: ignore[no-any-return]

    def get_transfer_results(self, finished_req_ids: Set[str]) -> Any:
        sent, received = self._worker.take_finished()
        return base.KVConnectorTransferResults(
            sent or set(), received or set(), self._worker.take_failed()
        )

    def get_block_ids_with_load_errors(self) -> Set[int]:
        return self._worker.take_errors()  # type: ignore[no-any-return]

    def get_kv_connector_stats(self) -> Any:
        # vLLM 0.11.0 asks workers alone, and up to 0.23 the scheduler only when a worker had some.
        if self._worker is None or not self._worker.counts:
            return None
        from ucm.integration.vllm import stats

        return stats.make(self._worker.take_counts())

    def get_kv_connector_kv_cache_events(self) -> Any:
        return self._worker.take_events()

    def build_connector_worker_meta(self) -> Any:
        return None

    def get_handshake_metadata(self) -> Any:
        return None

    def shutdown(self) -> None:
        # What is saved last is dropped when the scheduler's side ends before.
        if self._worker is not None:
            self._worker.close()
        if self._scheduler is not None:
            self._scheduler.close()

    # -- the class alone ---------------------------------------------------------------------------

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config: Any) -> Optional[str]:
        return None

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config: Dict[str, Any]) -> bool:
        from ucm.integration.vllm import engine

        return engine.is_layerwise(extra_config)

    @classmethod
    def build_kv_connector_stats(cls, data: Optional[Dict[str, Any]] = None) -> Any:
        from ucm.integration.vllm import stats

        return stats.make(data or {})

    @classmethod
    def build_prom_metrics(
        cls, vllm_config: Any, metric_types: Any, labelnames: Any, per_engine_labelvalues: Any
    ) -> Any:
        from ucm.integration.vllm import stats

        return stats.prometheus(vllm_config, metric_types, labelnames, per_engine_labelvalues)


def _is_ours(meta: Any) -> bool:
    return meta is not None and hasattr(meta, "loads")
