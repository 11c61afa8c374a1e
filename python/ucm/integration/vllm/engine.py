"""What an engine says of itself to the daemon."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping, Tuple

from ucm import protocol, settings
from ucm.client import Gone
from ucm.integration import stores
from ucm.integration.vllm import compat
from ucm.protocol import Engine

_OWN_KEYS = ("ucm_socket", "ucm_async_load", "ucm_start_daemon", "ucm_data_plane")
_ROLES = {"kv_producer": 1, "kv_consumer": 2, "kv_both": 3}
_NO_ANSWER = (OSError, Gone, protocol.ProtocolError, protocol.Refused)


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
    """Whether loads and saves go layer by layer, as the daemon reads the configuration.

    True when no daemon answers: that is right for both ways.
    """
    try:
        name, text = store_config(extra)
        return bool(settings.ask(extra, name, text) & protocol.LAYERWISE)
    except _NO_ANSWER:
        return True


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
