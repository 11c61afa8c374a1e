"""What an engine says of itself to the daemon."""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping, Tuple

from ucm.integration import stores
from ucm.integration.vllm import compat
from ucm.protocol import Engine

_OWN_KEYS = ("ucm_socket", "ucm_async_load", "ucm_start_daemon", "ucm_data_plane")
_ROLES = {"kv_producer": 1, "kv_consumer": 2, "kv_both": 3}
_LAYERWISE = re.compile(r"^use_layerwise\s*:\s*(\S+)", re.MULTILINE)


@contextmanager
def goes_on(log: logging.Logger) -> Iterator[None]:
    """Whatever goes wrong inside, the engine goes on without UCM, and its log says why."""
    try:
        yield
    except (stores.ConfigurationError, compat.NotServed) as error:
        log.warning("UCM: %s, so nothing is found or saved", error)
    except Exception as error:
        log.exception(
            "UCM: %s: %s, so nothing is found or saved; please report this",
            type(error).__name__,
            error,
        )


def extra_config(vllm_config: Any) -> Dict[str, Any]:
    """The connector's own dictionary of the launch line."""
    return dict(vllm_config.kv_transfer_config.kv_connector_extra_config or {})


def store_config(extra: Mapping[str, Any]) -> Tuple[str, str]:
    """The configuration of the stores: its name for messages, and its YAML text."""
    inline = {key: value for key, value in extra.items() if key not in _OWN_KEYS}
    return stores.configuration(extra, inline, "kv_connector_extra_config")


def is_layerwise(extra: Mapping[str, Any]) -> bool:
    """Whether loads and saves go layer by layer; true when the file cannot be read, which is safe."""
    try:
        name, text = store_config(extra)
    except stores.ConfigurationError:
        return True
    if name == "kv_connector_extra_config":
        return bool(extra.get("use_layerwise", False))
    found = _LAYERWISE.search(text)
    return found is not None and found.group(1).strip("\"'").lower() in ("true", "yes", "on")


def describe(vllm_config: Any) -> Engine:
    """The engine, as each of its connections says it."""
    transfer = vllm_config.kv_transfer_config
    parallel = vllm_config.parallel_config
    name, text = store_config(extra_config(vllm_config))
    return Engine(
        str(transfer.engine_id),
        int(getattr(parallel, "data_parallel_rank", 0) or 0),
        str(vllm_config.model_config.model),
        str(vllm_config.model_config.dtype),
        int(parallel.tensor_parallel_size),
        compat.is_mla(vllm_config.model_config),
        int(vllm_config.cache_config.block_size),
        _ROLES.get(transfer.kv_role, 3),
        name,
        text,
    )
