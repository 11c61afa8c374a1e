"""How a layer's KV tensors lie in memory, and the pieces that make a block of them.

Nothing here knows an attention backend: the block axis is found from sizes and strides. Blocks of
the classic layouts (K plane and V plane apart, tokens before heads; MLA) have the same bytes whether
K and V of a block lie side by side or not. Any other layout gets a text that says what its bytes are
like, which becomes part of the blocks' names: how the axes of a block are nested in a slot, the
outermost first. Axes of size 1 do not count, as they change no byte.
"""

from __future__ import annotations

import math
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
    """All layers of a rank, in the order of the model; of layers that share memory, the first.

    ``shared`` says for each of the others which layer has its memory. ``groups`` has the numbers of
    the layers of each KV cache group, in which a request has blocks of its own.
    """

    layers: List[Layer]
    text: str
    shared: Dict[str, str]
    groups: List[List[int]]

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
    first_of: Dict[Tuple[Any, ...], str] = {}
    shared: Dict[str, str] = {}
    for name in sorted(kv_caches, key=layer_number):
        first = first_of.setdefault(_memory(kv_caches[name]), name)
        if first != name:
            shared[name] = first
    layers = [_layer(name, kv_caches[name], blocks, mla) for name in first_of.values()]
    return _layout(layers, shared, [[layer.name for layer in layers]])


def find_groups(groups: Sequence[Dict[str, Tensors]], blocks: int, mla: bool) -> KvLayout:
    """The same for several KV cache groups, whose layers may have the same memory in other blocks."""
    if not any(groups):
        raise LayoutError("the engine registers no KV tensors")
    # Of some groups, another stage of a pipeline has all layers.
    found = [find(group, blocks, mla) if group else _layout([], {}, [[]]) for group in groups]
    layers = sorted((layer for one in found for layer in one.layers), key=lambda one: layer_number(one.name))
    shared = {name: of for one in found for name, of in one.shared.items()}
    return _layout(layers, shared, [[layer.name for layer in one.layers] for one in found])


def _layout(layers: List[Layer], shared: Dict[str, str], groups: List[List[str]]) -> KvLayout:
    texts = sorted({layer.text for layer in layers})
    numbers = {layer.name: i for i, layer in enumerate(layers)}
    return KvLayout(
        layers,
        "" if texts == [""] else ";".join(texts),
        shared,
        [[numbers[name] for name in group] for group in groups],
    )


def _parts(tensors: Tensors) -> List[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _memory(tensors: Tensors) -> Tuple[Any, ...]:
    """What layers have in common that share their memory."""
    return tuple(
        (str(part.device), part.data_ptr(), tuple(part.shape), part.stride(), part.dtype)
        for part in _parts(tensors)
    )


def _layer(name: str, tensors: Tensors, blocks: int, mla: bool) -> Layer:
    parts = _parts(tensors)
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
    inner = _dense(tensor, others, block_stride)
    outer = others[: len(others) - inner]
    length = math.prod(tensor.shape[a] for a in others[len(others) - inner :])
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


def _dense(tensor: torch.Tensor, others: Sequence[int], block_stride: int) -> int:
    """How many of the last axes make up the dense part of a piece."""
    length = 1
    for count, a in enumerate(reversed(others)):
        if tensor.stride(a) != length or length * tensor.shape[a] > block_stride:
            return count
        length *= tensor.shape[a]
    return len(others)


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
    kv = _kv_axis(tensor, axis)
    nested = _by_stride(tensor, (a for a in range(tensor.dim()) if a != axis))
    # The kernel's blocks of a block follow one another around the dense part of a piece.
    at = len(nested) - _dense(tensor, nested, tensor.stride(axis))
    before, after = nested[:at], nested[at:]
    inside = [a for a in nested if a != kv]
    tokens_in_order = ratio == 1 or before in ([], [kv]) and kv not in after
    if inside == sorted(inside) and (kv < 0 or nested[:1] == [kv]) and tokens_in_order:
        latent = mla and kv < 0 and len(nested) <= 2
        separate = parts == 2 and tensor.dim() == 4
        if kv >= 0 or latent or separate:
            return ""
    # Numbered without the axis of blocks, so that it does not matter where that one is.
    names = {a: "kv" if a == kv else str(a - (a > axis)) for a in nested}
    sizes = [f"{names[a]}:{tensor.shape[a]}" for a in nested]
    if ratio > 1:
        sizes.insert(at, f"blocks:{ratio}")
    return f"{tensor.dim()}d({','.join(sizes)}){str(tensor.dtype).replace('torch.', '')}"
