"""What the scheduler side knows of a request."""

from __future__ import annotations

from typing import Any, Iterable, Optional, Tuple

from ucm.integration.vllm.compat import Scheduled, Tables
from ucm.integration.vllm.metadata import pack
from ucm.protocol import Found


class Request:
    """What is known of a request that has not ended."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.epoch = 0
        self.sent_tokens = 0
        self.asked: Optional[int] = None
        self.asked_tokens = 0
        self.asked_at = 0.0
        # When what was found for it was last known to be kept.
        self.kept_at = 0.0
        self.sequence = 0
        self.found: Optional[Found] = None
        # Whatever is found: a load of it has failed.
        self.is_computed = False
        self.tables: Tables = []
        self.full_blocks = 0
        # With generated tokens saved, or events: vLLM's own, where its tokens and hashes are.
        self.request: Any = None
        # Blocks of it may still be on their way into slots.
        self.saved = False
        # How often it has lost its blocks.
        self.stay = 0

    def extend(self, one: Scheduled) -> None:
        """It has got blocks."""
        if one.blocks is None:
            return
        if one.replaces or not self.tables:
            self.tables = one.blocks
        else:
            self.tables = [old + new for old, new in zip(self.tables, one.blocks)]


def packed(pairs: Iterable[Tuple[int, int]]) -> Tuple[bytes, bytes]:
    """Blocks and their slots."""
    listed = list(pairs)
    return pack([block for block, _ in listed]), pack([slot for _, slot in listed])
