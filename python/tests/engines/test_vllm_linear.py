"""The sums of linear layers that take the place of vLLM's kernels in tests are the same sums."""

import linear
import pytest
import torch
import vllm_engine

pytest.importorskip("vllm.model_executor.layers.mamba.ops.cpu.gdn_attention")


def compared():
    import vllm._custom_ops as kernels

    torch.manual_seed(1)
    tokens, heads, slots = 90, 4, [5, 2]

    def some(*shape):
        return torch.randn(shape).to(torch.bfloat16)

    def close(ours, theirs):
        return (ours - theirs.float()).abs().max() < 0.02 * theirs.abs().max()

    # Two requests, of 60 and 30 tokens, each with a state; then one more token of each.
    bounds = torch.tensor([0, 60, tokens], dtype=torch.int32)
    query, key, value = some(1, tokens, 2, 64), some(1, tokens, 2, 64), some(1, tokens, heads, 64)
    a, b, bias, log = some(tokens, heads), some(tokens, heads), some(heads), torch.rand(heads).log()
    about = dict(
        cu_seqlens=bounds,
        initial_state_indices=torch.tensor(slots, dtype=torch.int32),
        output_final_state=True,
        head_first=False,
        use_qk_l2norm_in_kernel=True,
    )
    states = torch.randn(8, heads, 64, 64) / 4
    theirs, ours = states.clone(), states.clone()
    gates = kernels.fused_gdn_gating_cpu(A_log=log, a=a, b=b, dt_bias=bias)
    own = linear.gating(log, a.float(), b.float(), bias.float())
    assert all(close(one, other) for one, other in zip(own, gates))

    found, _ = kernels.chunk_gated_delta_rule_cpu(
        query=query, key=key, value=value, g=gates[0], beta=gates[1], initial_state=theirs, **about
    )
    prompt = (query.float(), key.float(), value.float(), *own)
    assert close(linear.prefill(*prompt, initial_state=ours, **about)[0], found)
    assert close(ours, theirs)
    # Only states of these requests are written.
    others = [slot for slot in range(8) if slot not in slots]
    assert torch.equal(ours[others], states[others])
    # The control: from each other's states they differ.
    about["initial_state_indices"] = about["initial_state_indices"].flip(0)
    assert not close(linear.prefill(*prompt, initial_state=states.clone(), **about)[0], found)

    about = dict(
        cu_seqlens=torch.tensor([0, 1, 2], dtype=torch.int32),
        initial_state_indices=torch.tensor(slots, dtype=torch.int32),
        use_qk_l2norm_in_kernel=True,
    )
    # A request each, of one token.
    query, key, value = (one[:, :2] for one in (query, key, value))
    found = kernels.fused_sigmoid_gating_delta_rule_update_cpu(
        log, bias, query, key, value, a[:2], b[:2], initial_state_source=theirs, **about
    )
    numbers = [one.float() for one in (query, key, value, a[:2], b[:2])]
    own = linear.decode(log, bias.float(), *numbers, initial_state_source=ours, **about)
    assert own.shape == found.shape
    assert close(own, found)
    assert close(ours, theirs)


def test_sums_in_float32_are_those_of_vllms_kernels():
    vllm_engine.apart(compared)
