"""KV tensors in every layout, and what each position must hold.

The KV of a position is a function of all tokens up to it, the layer and the rank, so that any wrong,
late, foreign or torn block differs from what is expected.
"""

import numpy as np
import torch

HEADS, DIM, LAYERS = 3, 8, 3
_MULTIPLY, _ADD, _MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1


def prefix_hashes(tokens, salt=0):
    """A number for each position that depends on all tokens up to it."""
    hashes = np.empty(len(tokens), np.uint64)
    value = 88172645463325252 + salt
    for i, token in enumerate(tokens):
        value = (value * _MULTIPLY + (token + 1) * _ADD) & _MASK
        value ^= value >> 29
        hashes[i] = value
    return hashes


def expected(hashes, layer, rank):
    """The KV of positions: [positions, 2, heads, dim] of int16."""
    elements = np.arange(2 * HEADS * DIM, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    seed = np.uint64(((layer + 1) * 0xD6E8FEB86659FD93 + rank * 0xA0761D6478BD642F) & _MASK)
    with np.errstate(over="ignore"):
        mixed = (hashes[:, None] ^ seed) + elements[None, :]
        mixed ^= mixed >> np.uint64(31)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    words = (mixed >> np.uint64(48)).astype(np.uint16).view(np.int16)
    return torch.from_numpy(words.reshape(len(hashes), 2, HEADS, DIM))


def allocate(layout, blocks, tokens, gpu=None):
    """A layer's tensor as the engine registers it, and a view [blocks, tokens, 2, heads, dim] of it.

    With a simulated GPU, in its memory.
    """

    def zeros(*shape):
        if gpu is None:
            return torch.zeros(shape, dtype=torch.int16)
        return gpu.zeros(shape, torch.int16)

    if layout == "2BNHD":
        base = zeros(2, blocks, tokens, HEADS, DIM)
        return base, base.permute(1, 2, 0, 3, 4)
    if layout == "B2NHD":
        base = zeros(blocks, 2, tokens, HEADS, DIM)
        return base, base.permute(0, 2, 1, 3, 4)
    if layout == "HND":
        base = zeros(2, blocks, HEADS, tokens, DIM)
        return base.permute(0, 1, 3, 2, 4), base.permute(1, 3, 0, 2, 4)
    if layout == "packed":
        base = zeros(blocks, tokens, HEADS, 2 * DIM)
        view = base.view(blocks, tokens, HEADS, 2, DIM).permute(0, 1, 3, 2, 4)
        return base.permute(0, 2, 1, 3), view
    if layout == "mla":
        base = zeros(blocks, tokens, 2 * HEADS * DIM)
        return base, base.view(blocks, tokens, 2, HEADS, DIM)
    if layout == "tuple":
        base = zeros(2, blocks, tokens, HEADS, DIM)
        return (base[0], base[1]), base.permute(1, 2, 0, 3, 4)
    if layout == "kernel":
        base = zeros(2, 2 * blocks, tokens // 2, HEADS, DIM)
        return base, base.view(2, blocks, tokens, HEADS, DIM).permute(1, 2, 0, 3, 4)
    if layout == "scattered":
        base = zeros(HEADS, blocks, tokens, 2, DIM)
        return base, base.permute(1, 2, 3, 0, 4)
    raise ValueError(layout)


LAYOUTS = ("2BNHD", "B2NHD", "HND", "packed", "mla", "tuple", "kernel", "scattered")
