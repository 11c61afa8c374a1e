"""What differs between versions of vLLM, asked of vLLM itself and not of its version number."""

from __future__ import annotations

import inspect
import itertools
import logging
import uuid
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from vllm.distributed.kv_transfer.kv_connector.v1 import base

from ucm.protocol import ALL, CHUNK, LAST, Rule

if TYPE_CHECKING:
    from ucm.layout import KvLayout


def logger() -> logging.Logger:
    """A child of vLLM's own logger, which alone has a handler: its lines have vLLM's form and level."""
    return logging.getLogger("vllm.ucm")


class Features(NamedTuple):
    """What this vLLM can do."""

    takes_kv_cache_config: bool
    deferred_lookup: bool
    load_errors: bool
    keeps_blocks_of_aborted_loads: bool
    fences_preemptions: bool
    failed_requests: bool


def features() -> Features:
    connector = base.KVConnectorBase_V1
    return Features(
        "kv_cache_config" in inspect.signature(connector.__init__).parameters,
        hasattr(connector, "get_kv_connector_stats"),
        hasattr(connector, "get_block_ids_with_load_errors"),
        _keeps_blocks_of_aborted_loads(),
        hasattr(connector, "handle_preemptions"),
        hasattr(connector, "get_transfer_results"),
    )


def hybrid_bases() -> Tuple[Any, ...]:
    """What a connector is beside `KVConnectorBase_V1`.

    With `SupportsHMA` vLLM keeps its manager of KV cache groups on, for any model. Where a load that
    fails ends an engine with several groups, those models are better served without.
    """
    return (base.SupportsHMA,) if features().failed_requests else ()


def _keeps_blocks_of_aborted_loads() -> bool:
    try:
        from vllm.v1.core.sched.scheduler import Scheduler

        return "delay_free_blocks" in inspect.signature(Scheduler._free_request).parameters
    except (ImportError, AttributeError):
        return False


def hit_source() -> Any:
    """What vLLM's metrics call the place where hits come from; None where they have no name for it."""
    try:
        from vllm.v1.metrics.cache_hit_source import CacheHitSource
    except ImportError:
        return None
    # Stored blocks are files; whether the daemon had one in memory is not told apart.
    return CacheHitSource.DISK


# Block ids of a request, in each KV cache group; 0 where the group has let go of a block.
Tables = List[List[int]]


class Scheduled(NamedTuple):
    """A request of a step, whichever list it came in."""

    request_id: str
    computed: int
    new: int
    blocks: Optional[Tables]
    replaces: bool


def tables(blocks: Any) -> Optional[Tables]:
    """Block ids of each KV cache group; None when there are no new ones."""
    if blocks is None:
        return None
    ids = blocks.get_block_ids() if hasattr(blocks, "get_block_ids") else blocks
    if ids is None or len(ids) == 0:
        return None
    if isinstance(ids[0], (list, tuple)):
        return [list(group) for group in ids]
    return [list(ids)]


def scheduled(output: Any, wanted: "set[str]") -> List[Scheduled]:
    """The requests of a step that are wanted."""
    tokens: Dict[str, int] = output.num_scheduled_tokens
    found = [
        Scheduled(
            new.req_id, new.num_computed_tokens, tokens[new.req_id], tables(new.block_ids), True
        )
        for new in output.scheduled_new_reqs
        if new.req_id in wanted
    ]
    cached = output.scheduled_cached_reqs
    if isinstance(cached, list):
        for one in cached:
            if one.req_id in wanted:
                found.append(
                    Scheduled(
                        one.req_id,
                        one.num_computed_tokens,
                        tokens[one.req_id],
                        tables(one.new_block_ids),
                        bool(one.resumed_from_preemption),
                    )
                )
        return found
    if wanted.isdisjoint(cached.req_ids):
        return found
    resumed_ids = getattr(cached, "resumed_req_ids", None)
    for i, request_id in enumerate(cached.req_ids):
        if request_id in wanted:
            resumed = (
                request_id in resumed_ids
                if resumed_ids is not None
                else bool(cached.resumed_from_preemption[i])
            )
            found.append(
                Scheduled(
                    request_id,
                    cached.num_computed_tokens[i],
                    tokens[request_id],
                    tables(cached.new_block_ids[i]),
                    resumed,
                )
            )
    return found


def advanced(output: Any, ends: Dict[str, int]) -> List[Scheduled]:
    """Running requests that got blocks, or whose computed tokens reach the number given for them."""
    tokens: Dict[str, int] = output.num_scheduled_tokens
    cached = output.scheduled_cached_reqs
    found = []
    rows: Iterable[Tuple[str, int, Any]]
    if isinstance(cached, list):
        rows = [(one.req_id, one.num_computed_tokens, one.new_block_ids) for one in cached]
    else:
        rows = zip(cached.req_ids, cached.num_computed_tokens, cached.new_block_ids)
    for request_id, computed, new_blocks in rows:
        end = ends.get(request_id)
        if end is not None and (new_blocks or computed + tokens[request_id] >= end):
            blocks = tables(new_blocks)
            found.append(Scheduled(request_id, computed, tokens[request_id], blocks, False))
    return found


def known_tokens(request: Any) -> int:
    """How many tokens have a value; those computed ahead have none yet."""
    return int(request.num_tokens) - int(getattr(request, "num_output_placeholders", 0) or 0)


def can_be_named(request: Any) -> bool:
    """Whether a request's KV is decided by tokens and names, and may come from a cache."""
    return (
        request.prompt_token_ids is not None
        and getattr(request, "prompt_embeds", None) is None
        and not getattr(request, "skip_reading_prefix_cache", False)
        # Those of each token of the prompt; up to 0.11, the request itself does not say it.
        and getattr(getattr(request, "sampling_params", None), "prompt_logprobs", None) is None
    )


def tp_rank(parallel_config: Any) -> int:
    try:
        from vllm.distributed.parallel_state import get_tp_group

        return int(get_tp_group().rank_in_group)
    except (ImportError, AssertionError, AttributeError):
        return int(parallel_config.rank) % int(parallel_config.tensor_parallel_size)


def stages(parallel_config: Any) -> int:
    """To how many stages the layers of the model are dealt out."""
    return int(getattr(parallel_config, "pipeline_parallel_size", 1) or 1)


def stage(parallel_config: Any) -> int:
    """Which of them this worker is of."""
    try:
        from vllm.distributed.parallel_state import get_pp_group

        return int(get_pp_group().rank_in_group)
    except (ImportError, AssertionError, AttributeError):
        rank = int(parallel_config.rank) // int(parallel_config.tensor_parallel_size)
        return rank % stages(parallel_config)


def is_mla(model_config: Any) -> bool:
    return bool(
        getattr(model_config, "use_mla", False) or getattr(model_config, "is_deepseek_mla", False)
    )


def layout_text(vllm_config: Any, layout: KvLayout, rules: Sequence[Rule] = ()) -> str:
    """The layout's text, with the types of the cache when they are not the model's (such as fp8), and
    what a block of each group is."""
    own = str(vllm_config.model_config.dtype)
    kept = [str(layer.dtype) for layer in layout.layers]
    name = str(getattr(vllm_config.cache_config, "cache_dtype", "auto"))
    text = layout.text
    if kept[0] != own or name not in ("auto", own.replace("torch.", "")):
        # Some layers may be kept in another type; runs of one are counted.
        runs = [f"{len(list(run))}x{dtype}" for dtype, run in itertools.groupby(kept)]
        text += f"|{','.join(runs) if len(runs) > 1 else kept[0]}:{name}"
    for rule, group in zip(rules, layout.groups):
        sizes = [(number, layout.layers[number].block_bytes) for number in group]
        text += f"|group:{rule.block_tokens}:{sizes}"
    if getattr(vllm_config.cache_config, "calculate_kv_scales", False):
        # The scales come from the first tokens that this launch computes.
        text += f"|scales:{getattr(vllm_config, 'instance_id', '') or uuid.uuid4().hex}"
    return text


class NotServed(Exception):
    """An engine that goes on without UCM; says why."""


_PLAIN_SPECS = ("FullAttentionSpec", "MLAAttentionSpec")
# Of these, blocks that no token to come looks at are let go; other kinds of windows have rules of their own.
_WINDOW_SPECS = ("SlidingWindowSpec", "ChunkedLocalAttentionSpec")
# One state stands for all tokens before it.
_STATE_SPECS = ("MambaSpec",)
# Kinds of full attention in which generated tokens are not looked at as those of a prompt are.
_UNLIKE_PROMPTS = ("RSWASpec",)


def refusal(vllm_config: Any, kv_cache_config: Any) -> Optional[str]:
    """Why an engine cannot be served; None when it can."""
    parallel = vllm_config.parallel_config
    for key in ("decode_context_parallel_size", "prefill_context_parallel_size"):
        if getattr(parallel, key, 1) > 1:
            return "context parallelism is not supported"
    reason = _ends_with_its_prompt(vllm_config)
    if reason is not None:
        return reason
    if kv_cache_config is None:
        return None
    for kind, names in _kinds(kv_cache_config):
        is_plain = names.intersection(_PLAIN_SPECS) and not names.intersection(_UNLIKE_PROMPTS)
        if not is_plain and kind not in _WINDOW_SPECS + _STATE_SPECS:
            return f"KV caches of kind {kind} are not supported"
    if not lets_go(kv_cache_config):
        # Windows and chunks are layers that vLLM keeps all blocks of, with this one group.
        return None
    groups = kv_cache_config.kv_cache_groups
    hybrid = "hybrid models (windows, linear layers, or several groups of KV caches)"
    if not features().failed_requests:
        return f"{hybrid} are not supported with this version of vLLM"
    tokens = int(vllm_config.cache_config.block_size)
    if any(int(group.kv_cache_spec.block_size) % tokens for group in groups):
        return f"{hybrid} are not supported when their blocks are no multiples of {tokens} tokens"
    if any(len({_rule(spec) for spec in _specs(group.kv_cache_spec)}) > 1 for group in groups):
        return f"{hybrid} are not supported when layers of one group have windows of several sizes"
    states = [
        spec for group in groups for spec in _specs(group.kv_cache_spec) if _is_state(spec)
    ]
    if states and not _hands_off_states():
        return "states of linear layers are not supported with this version of vLLM"
    for spec in states:
        mode = getattr(spec, "mamba_cache_mode", "none")
        if mode != "align":
            return f"states of linear layers are not supported with mamba_cache_mode {mode}, but with align"
    if getattr(vllm_config, "speculative_config", None) is not None:
        return f"{hybrid} are not supported with speculative decoding"
    if not loads_beside(vllm_config):
        return f"{hybrid} are loaded beside the engine's steps alone, which ucm_async_load turns off"
    return None


def loads_beside(vllm_config: Any) -> bool:
    """Whether requests may be loaded while others are computed."""
    extra = vllm_config.kv_transfer_config.kv_connector_extra_config or {}
    return features().deferred_lookup and bool(extra.get("ucm_async_load", True))


def lets_go(kv_cache_config: Any) -> bool:
    """Whether groups of the KV cache let go of blocks of requests that go on."""
    groups = getattr(kv_cache_config, "kv_cache_groups", None) or ()
    kinds = _kinds(kv_cache_config) if groups else []
    return len(groups) > 1 or any(kind in _WINDOW_SPECS + _STATE_SPECS for kind, _ in kinds)


def rules(kv_cache_config: Any) -> List[Rule]:
    """The rule of each KV cache group; none when there is one, of which a request keeps all blocks."""
    if not lets_go(kv_cache_config):
        return []
    return [_rule(_specs(group.kv_cache_spec)[0]) for group in kv_cache_config.kv_cache_groups]


def _rule(spec: Any) -> Rule:
    kind, tokens = type(spec).__name__, int(spec.block_size)
    if kind == "SlidingWindowSpec":
        # A token looks at itself, too.
        return Rule(LAST, int(spec.sliding_window) - 1, tokens)
    if kind == "ChunkedLocalAttentionSpec":
        return Rule(CHUNK, int(spec.attention_chunk_size), tokens)
    return Rule(LAST, 1, tokens) if _is_state(spec) else Rule(ALL, 0, tokens)


def _is_state(spec: Any) -> bool:
    return type(spec).__name__ in _STATE_SPECS


def states(kv_cache_config: Any) -> Set[int]:
    """The KV cache groups whose blocks are states."""
    groups = getattr(kv_cache_config, "kv_cache_groups", None) or ()
    return {i for i, group in enumerate(groups) if _is_state(_specs(group.kv_cache_spec)[0])}


def _hands_off_states() -> bool:
    """Whether vLLM says in which block the state after so many tokens is."""
    try:
        from vllm.v1.core.sched.output import KVConnectorBlockState  # noqa: F401

        return True
    except ImportError:
        return False


def handed_off(output: Any) -> Dict[Tuple[str, int, int], int]:
    """Blocks that have a state after the step: by request, group, and after how many tokens it is."""
    told = getattr(getattr(output, "kv_connector_block_state", None), "boundary_state_offloads", None)
    return {
        (request_id, group, tokens): block
        for request_id, entries in (told or {}).items()
        if request_id in output.num_scheduled_tokens
        for group, block, tokens in entries
    }


def _kinds(kv_cache_config: Any) -> List[Tuple[str, Set[str]]]:
    """The kind of each layer's KV cache, and the names of all that it is a kind of."""
    return [
        (type(spec).__name__, {kind.__name__ for kind in type(spec).__mro__})
        for group in kv_cache_config.kv_cache_groups
        for spec in _specs(group.kv_cache_spec)
    ]


def _ends_with_its_prompt(vllm_config: Any) -> Optional[str]:
    """Why a prompt of which a part comes from outside cannot be computed; None when it can."""
    model = vllm_config.model_config
    pooler = getattr(model, "pooler_config", None)
    continued = getattr(model, "is_prefix_caching_supported", None)
    kinds = [getattr(pooler, f"{of}pooling_type", None) for of in ("seq_", "tok_", "")]
    if continued is None:
        # vLLM before 0.13 has the rule of its own prefix cache elsewhere.
        last = str(kinds[2]).upper() == "LAST" and getattr(model.hf_config, "is_causal", True)
        continued = last if pooler is not None else not getattr(model, "is_encoder_decoder", False)
    if not continued:
        named = "/".join(str(kind) for kind in kinds if kind is not None)
        what = f"{named} pooling" if named else "this architecture"
        return f"a model whose prompts cannot be continued from a cache ({what}) is not supported"
    if getattr(getattr(vllm_config, "attention_config", None), "use_non_causal", False):
        return "non-causal attention is not supported"
    if is_mla(model) and _is_cpu():
        scheduling = getattr(vllm_config, "scheduler_config", None)
        chunks = getattr(scheduling, "enable_chunked_prefill", False)
        if not chunks and not getattr(vllm_config.cache_config, "enable_prefix_caching", False):
            # vLLM turns both off for a backend that does not read what is in the cache already.
            return "MLA by a CPU backend that ignores cached context is not supported"
    return None


def _is_cpu() -> bool:
    try:
        from vllm.platforms import current_platform

        return bool(current_platform.is_cpu())
    except (ImportError, AttributeError):
        return False


def _specs(spec: Any) -> List[Any]:
    if type(spec).__name__ == "UniformTypeKVCacheSpecs":
        return list(spec.kv_cache_specs.values())
    return [spec]


def by_group(vllm_config: Any, kv_cache_config: Any, kv_caches: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The tensors of each KV cache group; a layer that looks at the KV of another one is in its group."""
    groups = getattr(kv_cache_config, "kv_cache_groups", None) or ()
    if len(groups) <= 1:
        return [kv_caches]
    left = dict(kv_caches)
    found = [
        {name: left.pop(name) for name in group.layer_names if name in left} for group in groups
    ]
    layers = vllm_config.compilation_config.static_forward_context
    for name in list(left):
        of = getattr(layers.get(name), "kv_sharing_target_layer_name", None)
        for group in found:
            if of in group:
                group[name] = left.pop(name)
    if left:
        raise NotServed(f"layers that are in no group of KV caches: {', '.join(sorted(left))}")
    return found


def known_blocks(vllm_config: Any, kv_cache_config: Any) -> Optional[int]:
    """Blocks of the KV cache, as far as vLLM says it."""
    said = getattr(kv_cache_config, "num_blocks", None) or vllm_config.cache_config.num_gpu_blocks
    return int(said) if said else None


def block_count(vllm_config: Any, kv_cache_config: Any, kv_caches: Dict[str, Any]) -> int:
    """Blocks of the KV cache. Before 0.11.1 vLLM does not say it, and the tensors' sizes do.

    Raises NotServed when neither does.
    """
    said = known_blocks(vllm_config, kv_cache_config)
    if said is not None:
        return said
    tokens = int(vllm_config.cache_config.block_size)
    layers = vllm_config.compilation_config.static_forward_context
    for name, tensors in kv_caches.items():
        parts = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        if is_mla(vllm_config.model_config):
            # [blocks, tokens, numbers]; an FP8 cache has more numbers a token than the layer says.
            return int(parts[0].shape[0]) * int(parts[0].shape[1]) // tokens
        layer = layers.get(name)
        heads, size = getattr(layer, "num_kv_heads", None), getattr(layer, "head_size", None)
        numbers = sum(int(part.numel()) for part in parts)
        if heads and size and numbers % (2 * tokens * int(heads) * int(size)) == 0:
            return numbers // (2 * tokens * int(heads) * int(size))
    raise NotServed("the number of blocks of the KV cache is not known")
