"""What tells SGLang's pages from any other: the model, the type of the cache, and the shape of a page.

docs/sglang.md lists what is part of it, as a promise.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from typing import Any, Dict, List, Mapping, Optional

from ucm import fingerprint
from ucm.fingerprint import Unreadable

DTYPE_KEY = "ucm_kv_cache_dtype"
# Where SGLang keeps its arguments, the newest version first.
_ARGUMENTS = (
    ("sglang.srt.runtime_context", "get_server_args"),
    ("sglang.srt.server_args", "get_global_server_args"),
    ("sglang.srt.managers.schedule_batch", "global_server_args_dict"),
)
_OF_MODEL = (
    "revision", "quantization", "quantization_param_path", "json_model_override_args", "load_format",
    "model_loader_extra_config", "dtype", "model_impl", "modelopt_quant", "torchao_config",
    "speculative_algorithm", "speculative_draft_model_revision", "speculative_draft_model_quantization",
    "enable_multimodal",
)  # fmt: skip
_SHAPE = (
    "layer_num", "start_layer", "end_layer", "target_layer_num", "head_num", "head_dim", "v_head_dim",
    "kv_lora_rank", "qk_rope_head_dim", "kv_cache_dim",
)  # fmt: skip
# Of the pools beside that of the KV cache.
_SHAPE_BESIDE = (
    *_SHAPE, "index_head_dim", "item_bytes", "slot_page_size", "state_page_bytes", "ring_size",
    "num_mamba_layers", "conv_state_shapes", "temporal_state_shape", "conv_dtype", "temporal_dtype",
)  # fmt: skip
# Pools that are alike on all ranks of a model whose KV cache is: latents, and what finds their tokens.
# Heads and states are of a rank.
_ALIKE = ("MLATokenTo", "DSAIndexer", "NSAIndexer", "DeepSeekV4")


class Refused(Exception):
    """Pages that could not be told from others; says why, and what to do."""


def arguments() -> Mapping[str, Any]:
    """SGLang's own arguments; empty when this version does not say them."""
    for module, name in _ARGUMENTS:
        try:
            found = getattr(importlib.import_module(module), name)
            found = found() if callable(found) else found
            if found is not None:
                return found if isinstance(found, Mapping) else _fields(found)
        except Exception:  # Not in this version, or not set yet.
            continue
    return {}


def _fields(found: Any) -> Dict[str, Any]:
    """Of an object; newer versions have one without a dictionary of its own."""
    names = getattr(found, "__struct_fields__", None) or vars(found)
    return {name: getattr(found, name, None) for name in names}


def _resolved(name: str) -> Any:
    """What became of an argument, in versions that keep it apart from what was said."""
    try:
        context = importlib.import_module("sglang.srt.runtime_context").get_context()
        return context.resolved_server_args_dict().get(name)
    except Exception:  # Not in this version, or not set yet.
        return None


def dtype(pool: Any, extra: Mapping[str, Any]) -> str:
    """The type of the cache to the last letter; the host pool has that of its bytes, uint8 for all of fp8."""
    own = str(pool.dtype)
    if not own.endswith(("int8", "uint8")):
        return own
    said = extra.get(DTYPE_KEY)
    device = [getattr(pool, name, None) for name in ("device_pool", "buffer_info", "device_pool_info")]
    argued = [_resolved("kv_cache_dtype"), arguments().get("kv_cache_dtype")]
    for found in [said, *(getattr(one, "dtype", None) for one in device), *argued]:
        if found is not None and not str(found).endswith(("int8", "uint8", "auto")):
            return str(found).replace("torch.", "")
    raise Refused(
        f"the host pool has {own}, which several types of a KV cache are kept in, and SGLang does not say"
        f" which one it is: set {DTYPE_KEY} in --hicache-storage-backend-extra-config, for example to"
        " fp8_e4m3, and to another text for each --kv-cache-dtype"
    )


def shape(pool: Any) -> Dict[str, int]:
    """How a page is made up; equal numbers of bytes do not make equal pages."""
    found = {name: getattr(pool, name, None) for name in _SHAPE}
    return {name: int(value) for name, value in found.items() if isinstance(value, int)}


def shape_beside(pool: Any) -> Dict[str, str]:
    """The same of a pool beside that of the KV cache, with the types in it."""
    found = {name: getattr(pool, name, None) for name in ("dtype", *_SHAPE_BESIDE)}
    return {name: str(value) for name, value in found.items() if value is not None}


def is_alike_on_all_ranks(pool: Any) -> bool:
    """Whether a pool beside a latent KV cache has the same bytes on all ranks; SGLang stores those of one."""
    return any(kind.__name__.startswith(_ALIKE) for kind in type(pool).__mro__)


class Model:
    """Fingerprints of configuration and weights; to be made when the model was loaded."""

    def __init__(self, extra: Mapping[str, Any], name: str, log: logging.Logger) -> None:
        self.config = self.weights = ""
        found = arguments()
        if found.get("enable_lora") or found.get("lora_paths"):
            raise Refused(
                "SGLang names pages by their tokens and not by the LoRA adapter, so pages of one would be"
                " taken for those of another: start it without adapters, or without this storage"
            )
        path = str(found.get("model_path") or "")
        if not path:
            log.warning(
                "UCM: SGLang does not say where the files of %s are: its pages are named by the model's"
                " name, so give other weights another --served-model-name",
                name,
            )
            return
        draft = found.get("speculative_draft_model_path")
        parts: List[Any] = [{key: found.get(key) for key in _OF_MODEL}]
        weights: List[Optional[str]] = []
        for one, revision in ((path, "revision"), (draft, "speculative_draft_model_revision")):
            if one:
                folder = fingerprint.snapshot(str(one), found.get(revision), found.get("download_dir"))
                parts.append(_config_file(folder))
                weights.append(self._weights(folder, found, log))
        self.config = fingerprint.digest(*parts)
        if all(weights):
            self.weights = fingerprint.digest(*weights)

    def _weights(self, folder: str, found: Mapping[str, Any], log: logging.Logger) -> str:
        if str(found.get("load_format")) == "dummy":
            return fingerprint.digest("dummy", found.get("random_seed"))
        try:
            return fingerprint.of_files(folder)
        except Unreadable as error:
            log.warning(
                "UCM: the weights of %s cannot be told from others by their files (%s): its pages are named"
                " by the model's name and configuration, so remove them when the weights change",
                folder,
                error,
            )
            return ""


def _config_file(folder: str) -> Any:
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            found = json.load(file)
        return {key: one for key, one in found.items() if key not in fingerprint.ORIGIN}
    except (OSError, ValueError, AttributeError):
        return None
