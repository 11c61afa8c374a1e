"""Statistics of a connector."""

from dataclasses import dataclass, field

from vllm import PROFILE

if PROFILE >= (0, 11):

    @dataclass
    class KVConnectorStats:
        data: dict = field(default_factory=dict)

        def reset(self):
            raise NotImplementedError

        def aggregate(self, other):
            raise NotImplementedError

        def reduce(self):
            raise NotImplementedError

        def is_empty(self):
            raise NotImplementedError


if PROFILE >= (0, 12):

    class KVConnectorPromMetrics:
        def __init__(self, vllm_config, metric_types, labelnames, per_engine_labelvalues):
            self._kv_transfer_config = vllm_config.kv_transfer_config
            self.per_engine_labelvalues = per_engine_labelvalues

        def observe(self, transfer_stats_data, engine_idx=0):
            raise NotImplementedError
