"""Hits in vLLM's own log and its Prometheus series, where this vLLM has them."""

from __future__ import annotations

from typing import Any, Dict

_NAMES = {
    "prompt_blocks": "Full blocks of prompts looked up",
    "external_hit_blocks": "Blocks of prompts found by UCM",
    "loaded_blocks": "Blocks loaded",
    "saved_blocks": "Blocks handed over to be stored",
    "unsaved_blocks": "Blocks that requests lost before the daemon had a place for them",
}


try:
    from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorStats
except ImportError:  # Before 0.11.1.
    KVConnectorStats = None

if KVConnectorStats is not None:

    # Workers that are processes send it pickled, so it has a name in this module.
    class UCMStats(KVConnectorStats):  # type: ignore[misc]
        def reset(self) -> None:
            self.data: Dict[str, Any] = {}

        def aggregate(self, other: Any) -> Any:
            for name, value in other.data.items():
                self.data[name] = self.data.get(name, 0) + value
            return self

        def reduce(self) -> Dict[str, Any]:
            return {name: self.data.get(name, 0) for name in _NAMES}

        def is_empty(self) -> bool:
            return not any(self.data.values())


def make(data: Dict[str, Any]) -> Any:
    """Counters since they were taken last; None where this vLLM has no statistics."""
    return None if KVConnectorStats is None else UCMStats(data=dict(data))


def prometheus(config: Any, types: Any, labels: Any, values: Any) -> Any:
    """Counters for Prometheus; None where this vLLM has none."""
    try:
        from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics
        from prometheus_client import Counter
    except ImportError:
        return None

    class UCMPromMetrics(KVConnectorPromMetrics):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(config, types, labels, values)
            kind = types.get(Counter, Counter)
            self._counters = {
                name: kind(f"vllm:ucm_{name}", text, labelnames=labels)
                for name, text in _NAMES.items()
            }

        def observe(self, transfer_stats_data: Dict[str, Any], engine_idx: int = 0) -> None:
            for name, counter in self._counters.items():
                counter.labels(*values[engine_idx]).inc(transfer_stats_data.get(name, 0))

    return UCMPromMetrics()
