"""The slots that a worker shares with the daemon, and copies between them and the engine's blocks."""

from __future__ import annotations

import ctypes
from typing import Iterator, List, Optional, Sequence, Tuple

import torch

from ucm.device import Copies
from ucm.layout import KvLayout
from ucm.memory import Move, move
from ucm.protocol import Opened
from ucm.segment import Segment

# Pieces on a device are copied one by one from this size on, smaller ones are gathered first.
_SINGLE_COPY_BYTES = 16 << 10


class Staging:
    """A mapped segment: slot i begins at i * stride. With `copies`, the daemon copies as long as it can."""

    def __init__(self, opened: Opened) -> None:
        self.copies: Optional[Copies] = None
        self.generation = opened.generation
        self.segment = Segment(opened)
        count = opened.slots * opened.stride
        # The mapping lives as long as a tensor points into it.
        self._slots = torch.frombuffer(self.segment.buffer(), dtype=torch.uint8, count=count).view(
            opened.slots, opened.stride
        )

    def __len__(self) -> int:
        return self.segment.slots

    def load(self, layout: KvLayout, layers: Sequence[int], slots: List[int], blocks: List[int]) -> None:
        """Copies slots into blocks of the engine, for some of the layers."""
        self._copy(False, layout, layers, self.segment.places(slots), blocks)

    def save(self, layout: KvLayout, layers: Sequence[int], slots: List[int], blocks: List[int]) -> None:
        """Copies blocks of the engine into slots, for some of the layers."""
        self._copy(True, layout, layers, slots, blocks)

    def _copy(
        self, save: bool, layout: KvLayout, layers: Sequence[int], slots: List[int], blocks: List[int]
    ) -> None:
        if self._by_daemon(save, layers, slots, blocks):
            return
        addresses = [self.segment.address(slot) for slot in slots]
        moves: List[Move] = []
        for piece, offset in _pieces(layout, layers):
            if not _on_host(piece):
                self._by_torch(save, piece, offset, slots, blocks)
                continue
            length = piece.shape[1]
            for address, theirs in zip(addresses, _addresses(piece, blocks)):
                ours = address + offset
                moves.append((ours, theirs, length) if save else (theirs, ours, length))
        move(moves)

    def _by_torch(
        self, save: bool, piece: torch.Tensor, offset: int, slots: List[int], blocks: List[int]
    ) -> None:
        if any(slot >= len(self) for slot in slots):
            # In memory of a store: the daemon has failed while it copied from there.
            for slot, block in zip(slots, blocks):
                piece[block].copy_(self._bytes(slot, offset, piece.shape[1]))
            return
        part = self._slots[:, offset : offset + piece.shape[1]]
        to, of = (part, piece) if save else (piece, part)
        targets, sources = (slots, blocks) if save else (blocks, slots)
        if piece.shape[1] >= _SINGLE_COPY_BYTES:
            for target, source in zip(targets, sources):
                to[target].copy_(of[source])
        else:
            gathered = of.index_select(0, torch.tensor(sources, dtype=torch.long, device=of.device))
            rows = torch.tensor(targets, dtype=torch.long, device=to.device)
            to.index_copy_(0, rows, gathered.to(to.device))

    def _bytes(self, slot: int, offset: int, count: int) -> torch.Tensor:
        start = self.segment.address(slot) + offset
        return torch.frombuffer((ctypes.c_ubyte * count).from_address(start), dtype=torch.uint8)

    def _by_daemon(
        self, save: bool, layers: Sequence[int], slots: List[int], blocks: List[int]
    ) -> bool:
        copies = self.copies
        return copies is not None and all(
            copies.copy(save, run, slots, blocks) for run in _runs(layers)
        )


def _runs(numbers: Sequence[int]) -> List[List[int]]:
    """Numbers, cut where one does not follow the other."""
    runs: List[List[int]] = []
    for number in numbers:
        if not runs or runs[-1][-1] + 1 != number:
            runs.append([])
        runs[-1].append(number)
    return runs


def _on_host(piece: torch.Tensor) -> bool:
    """Whether copies need no PyTorch, whose calls cost as much as the copies of small pieces."""
    return bool(piece.device.type == "cpu")


def _addresses(piece: torch.Tensor, blocks: List[int]) -> List[int]:
    """Where blocks of a piece begin."""
    start, stride, count = piece.data_ptr(), int(piece.stride(0)), int(piece.shape[0])
    if blocks and not 0 <= min(blocks) <= max(blocks) < count:
        raise IndexError(f"there are {count} blocks; asked for are {min(blocks)} to {max(blocks)}")
    return [start + block * stride for block in blocks]


def _pieces(layout: KvLayout, layers: Sequence[int]) -> Iterator[Tuple[torch.Tensor, int]]:
    """The pieces of some of a group's layers, and where in a slot, which has those of one, each begins."""
    offset = 0
    for number in next(group for group in layout.groups if layers[0] in group):
        for piece in layout.layers[number].pieces:
            if number in layers:
                yield piece, offset
            offset += int(piece.shape[1])
