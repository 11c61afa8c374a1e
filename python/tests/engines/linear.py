"""Linear layers of Qwen3-Next in float32 on a CPU, for which vLLM has kernels for bfloat16 only.

In float32 an answer does not depend on the other requests of a step, so answers can be compared as those
of other models are. The sums alone are replaced, by those of transformers: where states lie, and when
they are kept and read, stays vLLM's.
"""

import inspect
import types

import torch


def in_float32():
    """Replaces the kernels in this process, before a model is made."""
    from vllm.forward_context import get_forward_context
    from vllm.model_executor.layers.mamba.ops.cpu import gdn_attention as gdn

    def core(mixed_qkv, b, a, core_attn_out, layer_name):
        context = get_forward_context()
        if context.attn_metadata is not None:
            layer = context.no_compile_layers[gdn._resolve_layer_name(layer_name)]
            about = context.attn_metadata[layer.prefix]
            if about.num_actual_tokens:
                gdn._cpu_gdn_attention_nonspec(layer, about, mixed_qkv, b, a, core_attn_out)

    # Its types, which are names in vLLM's module, say what the operation looks like.
    core.__signature__ = inspect.signature(gdn.cpu_gdn_attention_core, eval_str=True)
    gdn.cpu_gdn_attention_core = core
    gdn.ops = types.SimpleNamespace(
        fused_gdn_gating_cpu=gating,
        chunk_gated_delta_rule_cpu=prefill,
        fused_sigmoid_gating_delta_rule_update_cpu=decode,
    )
    # Else the convolution before them has a kernel for bfloat16 as well.
    torch.cpu._is_avx512_bf16_supported = lambda: False


def gating(A_log, a, b, dt_bias):
    gate = -A_log.exp() * torch.nn.functional.softplus(a + dt_bias)
    return gate.unsqueeze(0), b.sigmoid().unsqueeze(0)


def prefill(query, key, value, g, beta, initial_state, cu_seqlens, initial_state_indices, **_):
    """Of requests one behind the other, each from its state, which is replaced by the one at its end."""
    found = torch.empty_like(value)
    bounds = cu_seqlens.tolist()
    for begin, end, slot in zip(bounds, bounds[1:], initial_state_indices.tolist()):
        one = [each[:, begin:end] for each in (query, key, value, g, beta)]
        found[:, begin:end], initial_state[slot] = rule(*one, initial_state[slot])
    return found, initial_state


def decode(A_log, dt_bias, q, k, v, a, b, initial_state_source, initial_state_indices, cu_seqlens, **_):
    return prefill(
        q, k, v, *gating(A_log, a, b, dt_bias), initial_state_source, cu_seqlens, initial_state_indices
    )[0].transpose(0, 1)


def rule(query, key, value, g, beta, state):
    from transformers.models.qwen3_next import modeling_qwen3_next

    calculate = modeling_qwen3_next.torch_chunk_gated_delta_rule
    calculate = getattr(calculate, "__wrapped__", calculate)
    times = value.shape[2] // key.shape[2]
    query, key = (each.repeat_interleave(times, dim=2) for each in (query, key))
    found, states = calculate(
        query,
        key,
        value,
        g,
        beta,
        initial_state=state.unsqueeze(0),
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
    )
    return found, states[0]
