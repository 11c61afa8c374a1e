"""The interface of a connector, with the methods that the profile has and no other."""

import enum
from abc import ABC, abstractmethod

from vllm import PROFILE


class KVConnectorRole(enum.Enum):
    SCHEDULER = 0
    WORKER = 1


if PROFILE < (0, 10):

    class KVConnectorMetadata:
        def __init__(self):
            pass

else:

    class KVConnectorMetadata(ABC):  # noqa: B024
        pass


class KVConnectorBase_V1(ABC):
    if PROFILE >= (0, 12):

        def __init__(self, vllm_config, role, kv_cache_config=None):
            self._start(vllm_config, role)
            if vllm_config.kv_transfer_config is None:
                raise ValueError("kv_transfer_config must be set for KVConnectorBase_V1")
            self._kv_transfer_config = vllm_config.kv_transfer_config
            self._kv_cache_config = kv_cache_config

    else:

        def __init__(self, vllm_config, role):
            self._start(vllm_config, role)

    def _start(self, vllm_config, role):
        self._connector_metadata = KVConnectorMetadata() if PROFILE < (0, 10) else None
        self._vllm_config = vllm_config
        self._role = role

    @property
    def role(self):
        return self._role

    def bind_connector_metadata(self, connector_metadata):
        self._connector_metadata = connector_metadata

    def clear_connector_metadata(self):
        self._connector_metadata = KVConnectorMetadata() if PROFILE < (0, 10) else None

    def _get_connector_metadata(self):
        assert self._connector_metadata is not None
        return self._connector_metadata

    def has_connector_metadata(self):
        return self._connector_metadata is not None

    def register_kv_caches(self, kv_caches):
        return

    def register_cross_layers_kv_cache(self, kv_cache, attn_backend):
        return

    @property
    def prefer_cross_layer_blocks(self):
        return False

    def set_host_xfer_buffer_ops(self, copy_operation):
        return

    def handle_preemptions(self, preempted):
        return

    @abstractmethod
    def start_load_kv(self, forward_context, **kwargs): ...

    @abstractmethod
    def wait_for_layer_load(self, layer_name): ...

    @abstractmethod
    def save_kv_layer(self, layer_name, kv_layer, attn_metadata, **kwargs): ...

    @abstractmethod
    def wait_for_save(self): ...

    def get_finished(self, finished_req_ids):
        return None, None

    def get_block_ids_with_load_errors(self):
        return set()

    def get_kv_connector_stats(self):
        return None

    def get_kv_connector_kv_cache_events(self):
        return None

    def build_connector_worker_meta(self):
        return None

    def get_handshake_metadata(self):
        return None

    def shutdown(self):
        return

    @abstractmethod
    def get_num_new_matched_tokens(self, request, num_computed_tokens): ...

    @abstractmethod
    def update_state_after_alloc(self, request, blocks, num_external_tokens): ...

    @abstractmethod
    def build_connector_meta(self, scheduler_output): ...

    def request_finished(self, request, block_ids):
        return False, None

    def update_connector_output(self, connector_output):
        return

    def take_events(self):
        return ()

    def get_finished_count(self):
        return None

    def set_xfer_handshake_metadata(self, metadata):
        return

    def set_xfer_handshake_metadata_pp_aware(self, metadata):
        return

    def reset_cache(self):
        return None

    def bind_gpu_block_pool(self, gpu_block_pool):
        return

    def on_new_request(self, request):
        return

    def has_pending_push_work(self):
        return False

    @property
    def requires_kv_delivery(self):
        return self._vllm_config.kv_transfer_config.kv_role != "kv_consumer"

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config):
        return None

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config):
        return False

    @classmethod
    def build_kv_connector_stats(cls, data=None):
        return None

    @classmethod
    def build_prom_metrics(cls, vllm_config, metric_types, labelnames, per_engine_labelvalues):
        return None


_SINCE = {
    (0, 11): """set_host_xfer_buffer_ops get_kv_connector_stats shutdown update_connector_output
        take_events get_finished_count get_required_kvcache_layout build_kv_connector_stats""",
    (0, 12): """has_connector_metadata register_cross_layers_kv_cache get_block_ids_with_load_errors
        get_handshake_metadata set_xfer_handshake_metadata build_prom_metrics""",
    (0, 15): """prefer_cross_layer_blocks handle_preemptions get_kv_connector_kv_cache_events
        reset_cache""",
    (0, 18): "build_connector_worker_meta requires_piecewise_for_cudagraph",
    (0, 24): """set_xfer_handshake_metadata_pp_aware bind_gpu_block_pool on_new_request
        has_pending_push_work""",
    (0, 28): "requires_kv_delivery",
}
for _since, _names in _SINCE.items():
    if PROFILE < _since:
        for _name in _names.split():
            delattr(KVConnectorBase_V1, _name)
