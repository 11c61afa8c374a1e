"""What tells an engine's KV cache from any other: its model, a request's adapter, images and salt.

docs/vllm.md lists what is part of it, as a promise.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from ucm import fingerprint
from ucm.fingerprint import Unreadable
from ucm.integration.vllm import compat
from ucm.protocol import Identity, Input

_OF_MODEL = (
    "revision", "code_revision", "quantization", "quantization_config", "dtype", "model_impl", "runner",
    "convert", "disable_sliding_window", "model_class_overrides",
)  # fmt: skip
# Kinds of rope whose factors depend on the longest sequence of the engine.
_LENGTH_MATTERS = ("longrope", "su", "dynamic")


def launch(vllm_config: Any) -> str:
    """The same for all processes of an engine, and another one for each engine."""
    return str(getattr(vllm_config, "instance_id", "") or "")


def of_engine(vllm_config: Any, log: logging.Logger) -> Identity:
    """What a worker says of its model; to be made when the model was loaded, as its files may change."""
    model = vllm_config.model_config
    parts = [_configuration(vllm_config, model)]
    weights = _weights(vllm_config, model, log)
    draft = getattr(getattr(vllm_config, "speculative_config", None), "draft_model_config", None)
    if draft is not None and draft is not model:
        # Layers of a draft model lie in the same KV cache.
        parts.append(_configuration(vllm_config, draft))
        weights = weights and fingerprint.digest(weights, _weights(vllm_config, draft, log))
    return Identity(launch(vllm_config), fingerprint.digest(*parts), weights)


def _configuration(vllm_config: Any, model: Any) -> Any:
    config = fingerprint.plain(getattr(model, "hf_config", None))
    found: Dict[str, Any] = {name: fingerprint.plain(getattr(model, name, None)) for name in _OF_MODEL}
    found["config"] = _without_origin(config)
    found["mla"] = compat.is_mla(model)
    if any(f'"{kind}"' in json.dumps(found) for kind in _LENGTH_MATTERS):
        found["max_model_len"] = fingerprint.plain(getattr(model, "max_model_len", None))
    load = getattr(vllm_config, "load_config", None)
    found["load"] = fingerprint.plain(
        [getattr(load, name, None) for name in ("load_format", "model_loader_extra_config")]
    )
    return found


def _without_origin(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_origin(one) for key, one in value.items() if key not in fingerprint.ORIGIN}
    if isinstance(value, list):
        return [_without_origin(one) for one in value]
    return value


def _weights(vllm_config: Any, model: Any, log: logging.Logger) -> str:
    """The fingerprint of a model's weights; empty when it cannot be had, and then that is said."""
    load = getattr(vllm_config, "load_config", None)
    if str(getattr(load, "load_format", "")).endswith("dummy"):
        return fingerprint.digest("dummy", getattr(model, "seed", None))
    name = str(getattr(model, "model_weights", "") or model.model)
    path = fingerprint.snapshot(
        name, getattr(model, "revision", None), getattr(load, "download_dir", None)
    )
    try:
        return fingerprint.of_files(path)
    except Unreadable as error:
        log.warning(
            "UCM: the weights of %s cannot be told from others by their files (%s): blocks are named by the"
            " model's name and configuration, so remove them when the weights change",
            name,
            error,
        )
        return ""


class Named(NamedTuple):
    """What besides its tokens names the blocks of a request."""

    variants: List[str]
    inputs: List[Input]


class Adapters:
    """Fingerprints of LoRA adapters by their files. One that cannot be read has none, which is said once.

    An adapter is taken for the one that was loaded as long as its id and its files are the same. When files
    are replaced under an id that was used already, it is not known which ones the engine has in memory.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._known: Dict[Tuple[str, int], Tuple[Any, str]] = {}
        self._said: Set[str] = set()

    def of(self, lora: Any) -> Optional[str]:
        path = str(getattr(lora, "lora_path", None) or getattr(lora, "lora_local_path", None) or "")
        key = path, int(getattr(lora, "lora_int_id", 0))
        try:
            if not path:
                raise Unreadable("vLLM does not say where its files are")
            folder = fingerprint.snapshot(path)
            now = fingerprint.stamp(folder)
            known = self._known.get(key)
            if known is None or (known[0] != now and getattr(lora, "load_inplace", False)):
                known = self._known[key] = now, fingerprint.of_files(folder)
            if known[0] != now:
                raise Unreadable(f"{folder} has changed since it was loaded, under the same id")
            return known[1]
        except Unreadable as error:
            line = (
                f"UCM: requests for the LoRA adapter {lora.lora_name} are neither found nor saved, as it"
                f" cannot be told from others: {error}"
            )
            if line not in self._said:
                self._said.add(line)
                self._log.warning("%s", line)
            return None


def of_request(request: Any, adapters: Adapters) -> Optional[Named]:
    """What names a request's blocks; None when that cannot be told."""
    variants = []
    lora = getattr(request, "lora_request", None)
    if lora is not None:
        adapter = adapters.of(lora)
        if adapter is None:
            return None
        variants.append(f"lora:{adapter}")
    salt = getattr(request, "cache_salt", None)
    if salt:
        variants.append(f"salt:{salt}")
    inputs = _inputs(request)
    return None if inputs is None else Named(variants, inputs)


def _inputs(request: Any) -> Optional[List[Input]]:
    features = getattr(request, "mm_features", None)
    if features is not None:
        placed = [(feature.identifier, feature.mm_position) for feature in features]
    else:
        positions = list(getattr(request, "mm_positions", None) or ())
        hashes = list(getattr(request, "mm_hashes", None) or ())
        if len(positions) != len(hashes):
            return None
        placed = list(zip(hashes, positions))
    inputs = []
    for identifier, position in placed:
        if not identifier:
            return None
        if isinstance(position, dict):  # In the oldest versions.
            first, length = int(position["offset"]), int(position["length"])
        else:
            first, length = int(position.offset), int(position.length)
        if length > 0:
            inputs.append(Input(str(identifier), first, first + length))
    return sorted(inputs, key=lambda one: one.first)
