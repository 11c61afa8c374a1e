"""A transformer with random weights in a paged KV cache, driven by the toy engine's scheduler.

The shape is QwQ-32B's: 64 layers, hidden 5120, 40 query and 8 key/value heads of 128, MLP 27648, bf16.
Layers may share weights (`distinct`): the work and the KV cache are those of all layers, and the
memory is that of some.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from toy_engine.engine import Request, ToyEngine
from toy_engine.worker import Rank, Work


@dataclass(frozen=True)
class Shape:
    """Sizes of a model."""

    name: str = "QwQ-32B"
    layers: int = 64
    hidden: int = 5120
    heads: int = 40
    kv_heads: int = 8
    head: int = 128
    mlp: int = 27648
    vocabulary: int = 152064
    distinct: int = 8
    block_tokens: int = 128
    dtype: torch.dtype = torch.bfloat16

    @property
    def token_bytes(self):
        """Bytes of a token's keys and values in all layers."""
        return self.layers * 2 * self.kv_heads * self.head * self.element_bytes

    @property
    def element_bytes(self):
        return torch.empty(0, dtype=self.dtype).element_size()

    @property
    def weight_bytes(self):
        """What the weights take."""
        attention = self.hidden * self.head * 2 * (self.heads + self.kv_heads)
        layer = attention + 3 * self.hidden * self.mlp
        elements = layer * min(self.distinct, self.layers) + self.hidden * self.vocabulary
        return elements * self.element_bytes


QWQ_32B = Shape()
# For machines without a GPU: the same structure, in milliseconds.
TINY = Shape("tiny", 4, 64, 4, 2, 16, 128, 500, 2, 16, torch.float32)


def fitting(shape, free_bytes, tokens):
    """The shape with as many distinct layers as memory allows beside a KV cache of so many tokens."""
    for distinct in (64, 32, 16, 8, 4, 2):
        made = replace(shape, distinct=min(distinct, shape.layers))
        if made.weight_bytes + tokens * made.token_bytes < 0.85 * free_bytes:
            return made
    raise SystemExit(
        f"{shape.name} with {tokens} tokens of KV cache needs"
        f" {(made.weight_bytes + tokens * made.token_bytes) / 1e9:.0f} GB; the GPU has"
        f" {free_bytes / 1e9:.0f} GB free: ask for shorter prompts (--lengths)"
    )


class Layer:
    """One layer's weights; random, and small enough that activations stay finite."""

    def __init__(self, shape, device, seed):
        generator = torch.Generator(device=device).manual_seed(seed)

        def weight(rows, columns):
            made = torch.randn(rows, columns, generator=generator, device=device, dtype=torch.float32)
            return made.mul_(1 / math.sqrt(columns)).to(shape.dtype)

        width = shape.head
        self.qkv = weight((shape.heads + 2 * shape.kv_heads) * width, shape.hidden)
        self.out = weight(shape.hidden, shape.heads * width)
        self.gate_up = weight(2 * shape.mlp, shape.hidden)
        self.down = weight(shape.hidden, shape.mlp)


class Model:
    """The weights and the forward pass of one layer over a paged KV cache."""

    def __init__(self, shape, device):
        self.shape, self.device = shape, device
        distinct = [Layer(shape, device, seed) for seed in range(min(shape.distinct, shape.layers))]
        self.layers = [distinct[i % len(distinct)] for i in range(shape.layers)]
        generator = torch.Generator(device=device).manual_seed(99)
        size = (shape.vocabulary, shape.hidden)
        made = torch.randn(size, generator=generator, device=device, dtype=torch.float32)
        self.embedding = made.to(shape.dtype)
        powers = torch.arange(0, shape.head, 2, device=device, dtype=torch.float32) / shape.head
        self.frequencies = 1.0 / 1_000_000.0**powers

    def embed(self, tokens):
        return self.embedding[torch.tensor(tokens, device=self.device)]

    def rotations(self, positions):
        angles = positions[:, None].to(torch.float32) * self.frequencies[None]
        return torch.cat((angles.cos(), angles.cos()), -1), torch.cat((angles.sin(), angles.sin()), -1)

    def project(self, layer, x, rotations):
        """Queries, keys and values of tokens: [tokens, heads, head]."""
        shape, weights = self.shape, self.layers[layer]
        qkv = F.linear(_norm(x), weights.qkv).view(len(x), -1, shape.head)
        q, k, v = qkv.split((shape.heads, shape.kv_heads, shape.kv_heads), 1)
        return _rotate(q, rotations), _rotate(k, rotations), v

    def finish(self, layer, x, attended):
        weights = self.layers[layer]
        x = x + F.linear(attended, weights.out)
        gate, up = F.linear(_norm(x), weights.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, weights.down)

    def next_tokens(self, x):
        """The greedy choice after each of some positions."""
        return F.linear(_norm(x), self.embedding).argmax(-1).tolist()


def _norm(x):
    wide = x.to(torch.float32)
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def _rotate(x, rotations):
    cos, sin = (part[:, None].to(x.dtype) for part in rotations)
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def attend(q, k, v):
    """Attention of the last n positions of a context to all m of it.

    q is [n, heads, head]; k and v are [m, kv heads, head].
    """
    n, m, group = len(q), len(k), q.shape[1] // k.shape[1]
    q, k, v = (part.transpose(0, 1)[None] for part in (q, k, v))
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    if hasattr(F, "scaled_dot_product_attention"):
        if n == 1:
            out = F.scaled_dot_product_attention(q, k, v)
        elif n == m:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            from torch.nn.attention.bias import causal_lower_right

            out = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(n, m))
    else:
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        seen = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
        out = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
    return out[0].transpose(0, 1).reshape(n, -1)


class ModelRequest(Request):
    """What is computed follows from the tokens; nothing is hashed."""

    def _hash(self):
        return None


class ModelRank(Rank):
    """Runs the model instead of checking bytes."""

    def _allocate(self, layout, blocks, gpu):
        model = ModelEngine.model
        shape = (2, blocks, self.tokens, model.shape.kv_heads, model.shape.head)
        if gpu is None:
            base = torch.zeros(shape, dtype=model.shape.dtype, device=model.device)
        else:
            base = gpu.zeros(shape, model.shape.dtype)
        return base, base.view(2, -1, *shape[3:])

    def _begin(self, works):
        model = ModelEngine.model
        device = model.device
        self.x = model.embed([token for work in works for token in work.hashes])
        positions, self.read, written = [], [], []
        for work in works:
            end = work.computed + work.new
            at = torch.arange(end, device=device)
            blocks = torch.tensor(work.table, device=device)[at // self.tokens]
            slots = blocks * self.tokens + at % self.tokens
            positions.append(at[work.computed :])
            written.append(slots[work.computed :])
            self.read.append(slots)
        self.written = torch.cat(written)
        self.rotations = model.rotations(torch.cat(positions))

    def _run_layer(self, layer, works, wrong):
        model, cache = ModelEngine.model, self.views[layer]
        q, k, v = model.project(layer, self.x, self.rotations)
        cache[0][self.written] = k
        cache[1][self.written] = v
        parts = q.split([work.new for work in works])
        attended = [attend(p, cache[0][slots], cache[1][slots]) for p, slots in zip(parts, self.read)]
        self.x = model.finish(layer, self.x, torch.cat(attended))

    def _end(self, works, result):
        last = torch.tensor([work.new for work in works], device=self.x.device).cumsum(0) - 1
        tokens = ModelEngine.model.next_tokens(self.x[last])
        result.tokens = {work.request_id: token for work, token in zip(works, tokens)}


class ModelEngine(ToyEngine):
    """The toy engine's scheduler over a model on one device."""

    request_type = ModelRequest
    rank_type = ModelRank
    model = None

    def __init__(self, transfer, num_blocks, budget=8192, max_num_seqs=16):
        super().__init__(
            transfer,
            block_size=self.model.shape.block_tokens,
            num_blocks=num_blocks,
            budget=budget,
            max_num_seqs=max_num_seqs,
            prefix_caching=False,
        )

    def _shape(self):
        return self.model.shape.layers, self.model.shape.token_bytes // self.model.shape.layers

    def _work(self, request, computed, new):
        tokens = request.all_token_ids[computed : computed + new]
        return Work(request.request_id, tokens, list(request.table), computed, new)

    def _update(self, scheduled, results):
        self.sampled = results[0].tokens
        super()._update(scheduled, results)

    def _sample(self, request):
        request.append(self.sampled[request.request_id])
        if len(request.output_token_ids) >= request.max_tokens:
            self._finish(request)
