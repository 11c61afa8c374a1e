"""Plans of steps that the daemon has not answered in time: what they were for is saved in a later step."""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from ucm import protocol

Entry = Tuple[str, int, int]
"""A request's id, its tokens computed before a step, and its new tokens in it."""


class Owner(NamedTuple):
    """A request that a plan names, and which of its stays on the device it was in."""

    request_id: str
    state: Any
    stay: int


class Answer(NamedTuple):
    """What a late answer has for one request; its owner may have lost the blocks meanwhile."""

    owner: Owner
    planned: protocol.Planned
    generation: int
    since: float


class LatePlans:
    """Of one connection. While an answer is out, nothing more is planned, so that no step waits again."""

    def __init__(self, log: logging.Logger, count: Callable[[str, int], None]) -> None:
        self.epoch = 0
        self.block_tokens = 1
        self._log = log
        self._count = count
        self._said = False
        self._sent: Dict[int, Tuple[float, List[Entry], Dict[int, Owner]]] = {}
        self._answers: List[Answer] = []
        # Tokens of requests whose blocks no plan has named: first and last, exclusive.
        self._owed: Dict[str, Tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._sent)

    @property
    def has_work(self) -> bool:
        """Whether a step has something to do with them."""
        return bool(self._sent or self._answers or self._owed)

    @property
    def age(self) -> float:
        """Seconds since the oldest one was sent."""
        oldest = min((when for when, _, _ in self._sent.values()), default=None)
        return 0.0 if oldest is None else time.monotonic() - oldest

    def add(self, sequence: int, since: float, entries: List[Entry], owners: Dict[int, Owner]) -> None:
        """A plan was sent at some time, and its step does not wait any longer."""
        self._sent[sequence] = (since, entries, owners)

    def answered(self, frame: protocol.Frame) -> bool:
        """Keeps what a frame has for requests; False when it answers no late plan."""
        sent = self._sent.pop(frame.sequence, None)
        if sent is None or frame.kind != protocol.PLANNED:
            return False
        generation, saves = protocol.read_planned(frame.body)
        since, _, owners = sent
        self._answers += [Answer(owners[one.handle], one, generation, since) for one in saves]
        return True

    def answers(self) -> List[Answer]:
        """What has come since the last call."""
        found, self._answers = self._answers, []
        return found

    def owe(self, entries: List[Entry]) -> None:
        """These are to be planned later."""
        for request_id, computed, new in entries:
            first, last = self._owed.get(request_id, (computed, 0))
            self._owed[request_id] = (min(first, computed), max(last, computed + new))

    def with_owed(self, entries: List[Entry]) -> List[Entry]:
        """A step's entries, and all that was to be planned later."""
        self.owe(entries)
        owed, self._owed = self._owed, {}
        return [(request_id, first, last - first) for request_id, (first, last) in owed.items()]

    @property
    def owes(self) -> bool:
        return bool(self._owed)

    def drop(self, request_id: str) -> None:
        """A request has lost its blocks."""
        first, last = self._owed.pop(request_id, (0, 0))
        self.lose([(request_id, first, last - first)])

    def lose(self, entries: Sequence[Entry]) -> None:
        """These are not planned any more."""
        blocks = 0
        for _, computed, new in entries:
            blocks += (computed + new) // self.block_tokens - computed // self.block_tokens
        self.lost(blocks)

    def lost(self, blocks: int) -> None:
        """So many are not saved."""
        if blocks <= 0:
            return
        self._count("unsaved_blocks", blocks)
        if not self._said:
            self._said = True
            self._log.warning(
                "UCM: the daemon plans so slowly that requests lose blocks before these are saved;"
                " vllm:ucm_unsaved_blocks counts them, and this is not said again"
            )

    def clear(self) -> None:
        """The connection has ended."""
        lost = [entry for _, entries, _ in self._sent.values() for entry in entries]
        self.lose(self.with_owed(lost))
        self._sent.clear()
        self._answers.clear()
