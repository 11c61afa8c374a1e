"""vLLM's KV events for what UCM holds: routers that read them see which prompts come back from storage.

The blocks' names are vLLM's own hashes, and the medium is ``STORAGE``. They are stored when a look-up has
found them, or when all ranks have handed them to the daemon; they are removed when a look-up does not find
them any more, or the engine disowns them. Off unless ``kv_events_config`` turns events on.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Tuple

try:
    from vllm.distributed.kv_events import BlockRemoved, BlockStored, KVConnectorKVEvents
    from vllm.v1.core.kv_cache_utils import maybe_convert_block_hash
except ImportError:  # An older vLLM: there are no events of connectors.
    KVConnectorKVEvents = object
    BlockStored = None

MEDIUM = "STORAGE"
# What was announced and is not known any more is not announced as removed.
MOST_BLOCKS = 1 << 20
# Saves whose ranks have not all reported.
_MOST_SAVES = 4096


def are_on(vllm_config: Any) -> bool:
    """Whether this engine publishes events, and its version takes those of connectors."""
    config = getattr(vllm_config, "kv_events_config", None)
    return BlockStored is not None and bool(getattr(config, "enable_kv_cache_events", False))


class HandedOver(KVConnectorKVEvents):  # type: ignore[misc]
    """Saves that workers have handed to the daemon, by generation and number, for the scheduler."""

    def __init__(self, saves: Sequence[Tuple[int, int]]) -> None:
        self._saves = list(saves)
        self._workers = 1

    def add_events(self, events: Any) -> None:
        self._saves += events

    def aggregate(self) -> "HandedOver":
        return self

    def increment_workers(self, count: int = 1) -> None:
        self._workers += count

    def get_number_of_workers(self) -> int:
        return self._workers

    def get_all_events(self) -> Any:
        return list(self._saves)

    def clear_events(self) -> None:
        self._saves.clear()


class Run:
    """Blocks of a request, one after the other; their tokens do not change, also when it has ended."""

    def __init__(self, request: Any, first: int, last: int) -> None:
        self._request = request
        self._first = first
        # With the one before the first, if there is one.
        before = [maybe_convert_block_hash(one) for one in request.block_hashes[max(0, first - 1) : last]]
        self._parent = before.pop(0) if first else None
        self.hashes = before

    def stored(self, begin: int, end: int, block_tokens: int) -> Any:
        """The event for some of them."""
        adapter = getattr(self._request, "lora_request", None)
        first, last = (self._first + begin) * block_tokens, (self._first + end) * block_tokens
        fields = {
            "block_hashes": self.hashes[begin:end],
            "parent_block_hash": self.hashes[begin - 1] if begin else self._parent,
            "token_ids": list(self._request.all_token_ids[first:last]),
            "block_size": block_tokens,
            "lora_id": getattr(adapter, "adapter_id", None),
            "lora_name": getattr(adapter, "name", None),
            "medium": MEDIUM,
        }
        known = BlockStored.__struct_fields__
        return BlockStored(**{name: value for name, value in fields.items() if name in known})


class Events:
    """Those of one engine; used by its thread alone."""

    def __init__(self, block_tokens: int, ranks: int) -> None:
        self._block_tokens = block_tokens
        self._ranks = ranks
        self._events: List[Any] = []
        # In the order in which they were announced.
        self._held: Dict[Any, None] = {}
        self._saves: Dict[Tuple[int, int], Run] = {}
        self._reported: "Counter[Tuple[int, int]]" = Counter()
        # Prompts that are not shorter than this one are looked up, whatever persist_token_threshold is.
        self._shortest = sys.maxsize

    def _run(self, request: Any, first: int, last: int) -> Optional[Run]:
        if len(request.block_hashes) < last or len(request.block_hashes) > (
            request.num_tokens // self._block_tokens
        ):
            # vLLM hashes blocks of other sizes.
            return None
        return Run(request, first, last)

    def found(self, request: Any, first: int, count: int) -> None:
        """A look-up from the block ``first`` on has found so many, and no more."""
        run = self._run(request, first, request.num_tokens // self._block_tokens)
        if run is None:
            return
        if count:
            self._shortest = min(self._shortest, request.num_tokens)
        self._announce(run, count)
        if request.num_tokens >= self._shortest:
            self._remove([one for one in run.hashes[count:] if one in self._held])

    def planned(self, request: Any, generation: int, save: int, first: int, count: int) -> None:
        """The workers are to save blocks."""
        run = self._run(request, first, first + count)
        if run is None:
            return
        self._shortest = min(self._shortest, request.num_tokens)
        self._saves[generation, save] = run
        while len(self._saves) > _MOST_SAVES:
            oldest = next(iter(self._saves))
            del self._saves[oldest]
            self._reported.pop(oldest, None)

    def handed_over(self, reports: Any) -> None:
        """What the workers say with a step's output; None when nothing."""
        if not isinstance(reports, HandedOver):
            return
        for save in reports.get_all_events():
            if save not in self._saves:
                continue
            self._reported[save] += 1
            if self._reported[save] == self._ranks:
                del self._reported[save]
                run = self._saves.pop(save)
                self._announce(run, len(run.hashes))

    def _announce(self, run: Run, count: int) -> None:
        begin = 0
        while begin < count:
            end = begin
            while end < count and run.hashes[end] not in self._held:
                self._held[run.hashes[end]] = None
                end += 1
            if end > begin:
                self._events.append(run.stored(begin, end, self._block_tokens))
            begin = end + 1
        while len(self._held) > MOST_BLOCKS:
            del self._held[next(iter(self._held))]

    def cleared(self) -> None:
        """The engine has disowned what was stored."""
        self._remove(list(self._held))
        self._saves.clear()
        self._reported.clear()

    def _remove(self, hashes: List[Any]) -> None:
        if hashes:
            for one in hashes:
                del self._held[one]
            self._events.append(BlockRemoved(block_hashes=hashes, medium=MEDIUM))

    def take(self) -> List[Any]:
        """Events since the last call."""
        events, self._events = self._events, []
        return events
