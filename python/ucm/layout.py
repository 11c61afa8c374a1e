"""How a layer's KV tensors lie in memory, and the pieces that make a block of them.

Nothing here knows an attention backend: the block axis is found from sizes and strides. Blocks of
the classic layouts (K plane and V plane apart, tokens before heads; MLA) have the same bytes whether
K and V of a block lie side by side or not. Any other layout gets a text that says what its bytes are
like, which becomes part of the blocks' names.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

import torch

MOST_PIECES = 1024
Tensors = Union[torch.Tensor, Sequence[torch.Tensor]]


class LayoutError(Exception):
    """KV tensors that cannot be cut into blocks; says why."""


class Layer(NamedTuple):
    """One layer: views of shape [blocks, bytes], in the order of a slot, and how the bytes are named."""

    name: str
    pieces: List[torch.Tensor]
    tensor_bytes: List[int]
    text: str
    dtype: torch.dtype

    @property
    def block_bytes(self) -> int:
        return sum(self.tensor_bytes)


class KvLayout(NamedTuple):
    """All layers of a rank, in the order of the model."""

    layers: List[Layer]
    text: str

    @property
    def tensor_bytes(self) -> List[List[int]]:
        return [layer.tensor_bytes for layer in self.layers]


def layer_number(name: str) -> int:
    """The last number between the dots of a layer's name; -1 without one."""
    numbers = re.findall(r"(?:^|\.)(\d+)(?=\.|$)", name)
    return int(numbers[-1]) if numbers else -1


def find(kv_caches: Dict[str, Tensors], blocks: int, mla: bool) -> KvLayout:
    """Cuts the tensors that an engine registers.

    ``blocks`` is the number of blocks of the engine's own KV cache manager; a tensor may have a
    multiple of it, when the attention kernel uses smaller blocks.
    """
    if not kv_caches:
        raise LayoutError("the engine registers no KV tensors")
    names = sorted(kv_caches, key=layer_number)
    layers = [_layer(name, kv_caches[name], blocks, mla) for name in names]
    texts = sorted({layer.text for layer in layers})
    return KvLayout(layers, "" if texts == [""] else ";".join(texts))


def _layer(name: str, tensors: Tensors, blocks: int, mla: bool) -> Layer:
    parts = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    pieces: List[torch.Tensor] = []
    bytes_of: List[int] = []
    texts: List[str] = []
    for tensor in parts:
        axis, ratio = _block_axis(name, tensor, blocks)
        found = _pieces(name, tensor, axis, ratio, blocks)
        pieces += found
        size = sum(piece.shape[1] for piece in found)
        halves = _is_kv_pair(tensor, axis)
        bytes_of += [size // 2, size // 2] if halves else [size]
        texts.append(_text(tensor, axis, ratio, mla, len(parts)))
    text = "" if all(not text for text in texts) else "+".join(texts)
    return Layer(name, pieces, bytes_of, text, parts[0].dtype)


def _block_axis(name: str, tensor: torch.Tensor, blocks: int) -> Tuple[int, int]:
    candidates = [
        axis
        for axis in _by_stride(tensor, range(tensor.dim()))
        if tensor.shape[axis] % blocks == 0
    ]
    if tensor.dim() == 5 and tensor.shape[0] == 2 and 1 in candidates:
        axis = 1
    elif candidates:
        axis = candidates[0]
    else:
        raise LayoutError(
            f"layer {name}: none of the sizes {tuple(tensor.shape)} is a multiple of the {blocks} blocks"
        )
    return axis, tensor.shape[axis] // blocks


def _by_stride(tensor: torch.Tensor, axes: Any) -> List[int]:
    """Axes, the slowest first."""
    return sorted(
        (axis for axis in axes if tensor.shape[axis] > 1), key=lambda axis: -int(tensor.stride(axis))
    )


def _pieces(
    name: str, tensor: torch.Tensor, axis: int, ratio: int, blocks: int
) -> List[torch.Tensor]:
    block_stride = tensor.stride(axis)
    nested = _by_stride(tensor, range(tensor.dim()))
    for outer_axis, inner_axis in zip(nested, nested[1:]):
        if tensor.stride(outer_axis) < tensor.stride(inner_axis) * tensor.shape[inner_axis]:
            raise LayoutError(
                f"layer {name}: blocks of {tuple(tensor.shape)} with strides {tensor.stride()} overlap"
            )
    others = _by_stride(tensor, (a for a in range(tensor.dim()) if a != axis))
    # From the inside: axes that continue the dense part of a piece.
    length = 1
    inner = 0
    for a in reversed(others):
        if tensor.stride(a) != length or length * tensor.shape[a] > block_stride:
            break
        length *= tensor.shape[a]
        inner += 1
    outer = others[: len(others) - inner]
    offsets = [0]
    for a in outer:
        offsets = [at + i * tensor.stride(a) for at in offsets for i in range(tensor.shape[a])]
    if ratio > 1 and length == block_stride:
        length *= ratio
        steps = [0]
    else:
        steps = [j * block_stride for j in range(ratio)]
    if len(offsets) * len(steps) > MOST_PIECES:
        raise LayoutError(
            f"layer {name}: a block of {tuple(tensor.shape)} with strides {tensor.stride()} lies in"
            f" {len(offsets) * len(steps)} pieces of memory; at most {MOST_PIECES} are copied"
        )
    base = tensor.storage_offset()
    views = []
    for offset in offsets:
        for step in steps:
            view = torch.as_strided(
                tensor, (blocks, length), (ratio * block_stride, 1), base + offset + step
            )
            views.append(view.view(torch.uint8))
    return views


def _kv_axis(tensor: torch.Tensor, axis: int) -> int:
    """The axis that tells K and V apart; -1 without one."""
    if tensor.dim() == 5:
        for kv in (0, 1):
            if kv != axis and tensor.shape[kv] == 2:
                return kv
    return -1


def _is_kv_pair(tensor: torch.Tensor, axis: int) -> bool:
    return _kv_axis(tensor, axis) >= 0


def _text(tensor: torch.Tensor, axis: int, ratio: int, mla: bool, parts: int) -> str:
    """Empty for a classic layout, else what the bytes of a block are like."""
    order = _by_stride(tensor, (a for a in range(tensor.dim()) if a != axis))
    kv = _kv_axis(tensor, axis)
    inside = [a for a in order if a != kv]
    in_order = inside == sorted(inside) and (kv < 0 or order[:1] == [kv])
    pair = kv >= 0 and tensor.dim() == 5
    latent = mla and tensor.dim() == 3
    separate = parts == 2 and tensor.dim() == 4
    # With smaller kernel blocks, K and V of a plane still lie apart, but not in a block of [B, 2, ...].
    split = ratio == 1 or kv == 0 or kv < 0
    if in_order and split and (pair or latent or separate):
        return ""
    sizes = ",".join(f"{a}:{tensor.shape[a]}" for a in order)
    return f"{tensor.dim()}d/{axis}x{ratio}({sizes}){str(tensor.dtype).replace('torch.', '')}"
