"""The slots that a worker shares with the daemon, and copies between them and the engine's blocks."""

from __future__ import annotations

from typing import List, Optional, Sequence

import torch

from ucm.device import Copies
from ucm.layout import KvLayout, Layer
from ucm.protocol import Opened
from ucm.segment import Segment

# Pieces from this size on are copied one by one, smaller ones are gathered first.
_SINGLE_COPY_BYTES = 16 << 10


class Staging:
    """A mapped segment: slot i begins at i * stride. With `copies`, the daemon copies as long as it can."""

    def __init__(self, opened: Opened) -> None:
        self.copies: Optional[Copies] = None
        self.generation = opened.generation
        count = opened.slots * opened.stride
        # The mapping lives as long as a tensor points into it.
        self._slots = torch.frombuffer(Segment(opened).map, dtype=torch.uint8, count=count).view(
            opened.slots, opened.stride
        )

    def __len__(self) -> int:
        return int(self._slots.shape[0])

    def load(self, layout: KvLayout, layers: Sequence[int], slots: List[int], blocks: List[int]) -> None:
        """Copies slots into blocks of the engine, for some of the layers."""
        if self._by_daemon(False, layers, slots, blocks):
            return
        from_slots = torch.tensor(slots, dtype=torch.long)
        for number, layer, offset in _offsets(layout):
            if number in layers:
                to_blocks = torch.tensor(blocks, dtype=torch.long, device=layer.pieces[0].device)
                for piece in layer.pieces:
                    length = piece.shape[1]
                    part = self._slots[:, offset : offset + length]
                    if length >= _SINGLE_COPY_BYTES:
                        for slot, block in zip(slots, blocks):
                            piece[block].copy_(part[slot])
                    else:
                        piece.index_copy_(0, to_blocks, part.index_select(0, from_slots).to(piece.device))
                    offset += length

    def save(self, layout: KvLayout, layers: Sequence[int], slots: List[int], blocks: List[int]) -> None:
        """Copies blocks of the engine into slots, for some of the layers."""
        if self._by_daemon(True, layers, slots, blocks):
            return
        to_slots = torch.tensor(slots, dtype=torch.long)
        for number, layer, offset in _offsets(layout):
            if number in layers:
                from_blocks = torch.tensor(blocks, dtype=torch.long, device=layer.pieces[0].device)
                for piece in layer.pieces:
                    length = piece.shape[1]
                    part = self._slots[:, offset : offset + length]
                    if length >= _SINGLE_COPY_BYTES:
                        for slot, block in zip(slots, blocks):
                            part[slot].copy_(piece[block])
                    else:
                        part.index_copy_(0, to_slots, piece.index_select(0, from_blocks).cpu())
                    offset += length

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


def _offsets(layout: KvLayout) -> List["tuple[int, Layer, int]"]:
    found = []
    offset = 0
    for number, layer in enumerate(layout.layers):
        found.append((number, layer, offset))
        offset += layer.block_bytes
    return found
