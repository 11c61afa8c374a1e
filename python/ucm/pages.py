"""Pages that the daemon keeps, each named by 16 bytes; moved between its slots and memory of the engine."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar

from ucm import protocol
from ucm.client import Connection, Gone, Link
from ucm.memory import Move, move
from ucm.protocol import Engine, Frame, Identity, ProtocolError, Writer
from ucm.segment import COPY_SECONDS, Segment

REGISTER_SECONDS = 60.0
OPEN_SECONDS = 120.0
LOOKUP_SECONDS = 1.0
RESERVE_SECONDS = 10.0
MOVE_SECONDS = 30.0
# A daemon that is silent for so long is asked for a sign of life, and has as long to give one.
SILENT_SECONDS = 1.0
FEWEST_SLOTS = 4
# The daemon gives fewer.
MOST_SLOTS = 1 << 20
# So that reads and writes of two steps each leave slots for the other.
STEPS = 4
# So that one step is copied here while the daemon reads or writes the next one.
STEP_BYTES = 16 << 20

Pieces = Sequence[Tuple[int, int]]
_Answer = TypeVar("_Answer")
_FAILURES = (OSError, Gone, ProtocolError, protocol.Refused)


class Session:
    """An open connection, which several threads ask, and the slots that came with it."""

    def __init__(self, link: Link, connection: Connection, segment: Segment) -> None:
        self.connection = connection
        self.segment = segment
        self.step = max(1, min(segment.slots // STEPS, STEP_BYTES // segment.stride))
        # Steps that are stored while the next one is copied: a second keeps the daemon's threads at work.
        self.ahead = 2 if segment.slots >= 2 * STEPS * self.step else 1
        self._link = link
        self._turn = threading.Condition()
        # Guarded by the condition: what is awaited, and whether a thread reads for all.
        self._answers: Dict[int, Optional[Frame]] = {}
        self._reading = False
        # Look-ups that were given up, and when the first of them was sent.
        self._late: Set[int] = set()
        self._late_since = 0.0
        self._heard = 0.0
        self._pinged = 0.0

    def send(self, kind: int, body: Writer) -> int:
        with self._turn:
            sequence = self.connection.send(kind, body)
            self._answers[sequence] = None
            return sequence

    def wait(self, sequence: int, expected: int, seconds: float) -> bytes:
        body = self._wait(sequence, expected, seconds)
        if body is None:
            raise Gone(f"it did not answer within {seconds:g} s")
        return body

    def ask_briefly(self, kind: int, body: Writer, expected: int) -> Optional[bytes]:
        """An answer that holds nothing; None when it does not come soon, or an earlier one has not come."""
        sequence = self.send_brief(kind, body)
        return None if sequence is None else self._wait(sequence, expected, LOOKUP_SECONDS)

    def send_brief(self, kind: int, body: Writer) -> Optional[int]:
        """Sends a question whose answer holds nothing; None when an earlier one has not come in its time."""
        with self._turn:
            while self._late and not self._reading and self._read(0.0):
                pass
            if self._late:
                self._require_life(self._late_since)
                return None
        return self.send(kind, body)

    def is_answered(self, sequence: int) -> bool:
        """Whether an answer has come; does not wait for it."""
        with self._turn:
            while self._answers[sequence] is None and not self._reading and self._read(0.0):
                pass
            return self._answers[sequence] is not None

    def take_brief(self, sequence: int, expected: int) -> Optional[bytes]:
        """An answer to what `send_brief` has sent; None if it has not come, and then it is given up."""
        return self._wait(sequence, expected, 0.0)

    def _wait(self, sequence: int, expected: int, seconds: float) -> Optional[bytes]:
        """What was answered; None when the time is over, and then the answer is not awaited any more."""
        begun = time.monotonic()
        with self._turn:
            while self._answers[sequence] is None:
                left = begun + seconds - time.monotonic()
                self._require_life(begun)
                if left <= 0:
                    del self._answers[sequence]
                    self._late_since = self._late_since if self._late else begun
                    self._late.add(sequence)
                    return None
                if self._reading:
                    self._turn.wait(min(left, SILENT_SECONDS / 4))
                else:
                    self._read(min(left, SILENT_SECONDS / 4))
            frame = self._answers.pop(sequence)
        assert frame is not None
        if frame.kind == protocol.REFUSED:
            raise protocol.read_refused(frame.body)
        if frame.kind != expected:
            raise ProtocolError(f"the daemon answered with a message of type {frame.kind}")
        return frame.body

    def _require_life(self, since: float) -> None:
        """Raises Gone when the daemon says nothing, though something was asked at some time."""
        now = time.monotonic()
        silent_since = max(self._heard, since)
        if now - silent_since < SILENT_SECONDS:
            return
        if self._pinged < silent_since:
            self._pinged = now
            self.connection.send(protocol.PING, Writer())
        elif now - self._pinged >= SILENT_SECONDS:
            raise Gone(f"it gave no sign of life for {now - silent_since:.1f} s")

    def _read(self, seconds: float) -> bool:
        """Takes the next frame; whether there was one within the time."""
        self._reading = True
        self._turn.release()
        try:
            frame = self.connection.poll(seconds)
        finally:
            self._turn.acquire()
            self._reading = False
            self._turn.notify_all()
        if frame is None:
            if self._link.get() is not self.connection:
                raise Gone("the connection is lost")
            return False
        self._heard = time.monotonic()
        self._late.discard(frame.sequence)
        if frame.sequence in self._answers:
            self._answers[frame.sequence] = frame
        return True

    def loaded(self, hold: int) -> None:
        self.connection.send(protocol.LOADED, Writer().u64s([hold]).u64s([]), answered=False)


class Question:
    """Which pages are stored: asked, and answered later. For a thread that must not wait."""

    def __init__(
        self, within: Callable[..., Any], session: Session, sequence: int, count: int
    ) -> None:
        self._within = within
        self._session = session
        self._sequence = sequence
        self._count = count
        self._until = time.monotonic() + LOOKUP_SECONDS

    def answer(self) -> Optional[List[bool]]:
        """Which are; None as long as that is not known. Asked no more once it is."""
        nothing = [False] * self._count
        return self._within(self._look, nothing, self._session)  # type: ignore[no-any-return]

    def _look(self, session: Session) -> Optional[List[bool]]:
        if not session.is_answered(self._sequence) and time.monotonic() < self._until:
            return None
        answer = session.take_brief(self._sequence, protocol.FOUND_WHICH)
        return [False] * self._count if answer is None else protocol.read_blocks(answer, self._count)


def _require_soon(since: float) -> None:
    """Raises Gone when slots that were asked for at some time may have another use by now."""
    if time.monotonic() - since > COPY_SECONDS:
        raise Gone(f"pages were not copied within {COPY_SECONDS:g} s")


class _Commit(NamedTuple):
    """A save that is being stored, and which pages are in it."""

    sequence: int
    pages: List[int]


class Pages:
    """All pages of a size. Used by any threads; while the daemon is away nothing is found or stored."""

    def __init__(
        self,
        extra: Dict[str, Any],
        client: str,
        describe: Callable[[], Engine],
        page_bytes: int,
        staging_bytes: int,
        log: logging.Logger,
        identify: Callable[[], Identity] = Identity,
    ) -> None:
        self.page_bytes = page_bytes
        self._client = client
        self._describe = describe
        self._identify = identify
        # A generation that the daemon has not been told of yet.
        self._untold = ""
        self._most_slots = min(max(FEWEST_SLOTS, staging_bytes // page_bytes), MOST_SLOTS)
        self._session: Optional[Session] = None
        self._log = log
        self._link = Link(extra, protocol.WORKER, client, self._open, log)

    def start(self, seconds: float = REGISTER_SECONDS) -> None:
        """Connects, and waits for that no longer than it may."""
        self._link.start(seconds)

    @property
    def connected(self) -> bool:
        return self._link.connected

    def _open(self, connection: Connection) -> None:
        # Has what a daemon before lent unmapped: this one makes as large a memory when it is opened.
        self._session = None
        # An engine of its own each time: the one before may not have ended yet.
        engine = self._describe()._replace(engine_id=f"{self._client}-{uuid.uuid4().hex}")
        said = self._identify().write(Writer())
        connection.send(protocol.IDENTIFY, said, answered=False)
        body = protocol.open_named(engine, self.page_bytes, self._most_slots)
        answer = connection.ask(protocol.OPEN_NAMED, body, protocol.OPENED_WORKER, OPEN_SECONDS)
        opened = protocol.read_opened(answer.body)
        if opened.stride < self.page_bytes:
            raise ProtocolError(f"slots of {opened.stride} bytes for pages of {self.page_bytes}")
        segment = Segment(opened)
        segment.borrow(connection, self._log)
        session = self._make_session(connection, segment)
        self._tell(session)
        self._session = session

    def disown(self, generation: str) -> None:
        """From now on the daemon stores and finds pages of this generation only, whenever it comes back."""
        self._untold = generation

        def tell(session: Session) -> int:
            self._tell(session)
            return 0

        self._with_session(tell, 0)

    def _tell(self, session: Session) -> None:
        generation = self._untold
        if generation:
            try:
                asked = session.send(protocol.RESET, Writer().string(generation))
                session.wait(asked, protocol.DONE, LOOKUP_SECONDS)
            except protocol.Refused as refusal:
                self._log.warning("UCM: %s", refusal)
            if self._untold == generation:
                self._untold = ""

    def _make_session(self, connection: Connection, segment: Segment) -> Session:
        return Session(self._link, connection, segment)

    def _with_session(
        self, act: Callable[[Session], _Answer], nothing: _Answer, of: Optional[Session] = None
    ) -> _Answer:
        """Acts over the connection; `nothing` when there is none, another one, or it is lost meanwhile."""
        try:
            connection = self._link.get()
        except Gone:
            return nothing
        session = self._session
        if session is None or session.connection is not connection or of not in (None, session):
            return nothing
        try:
            return act(session)
        except _FAILURES as error:
            self._link.lost(connection, error)
            return nothing

    def find(self, ids: List[bytes]) -> List[bool]:
        """Which pages are stored."""

        def ask(session: Session) -> List[bool]:
            answer = session.ask_briefly(protocol.FIND, Writer().ids(ids), protocol.FOUND_WHICH)
            return [False] * len(ids) if answer is None else protocol.read_blocks(answer, len(ids))

        return self._with_session(ask, [False] * len(ids)) if ids else []

    def ask(self, ids: List[bytes]) -> Optional[Question]:
        """Like `find`, but does not wait; None when nothing is found now."""

        def send(session: Session) -> Optional[Question]:
            sequence = session.send_brief(protocol.FIND, Writer().ids(ids))
            if sequence is None:
                return None
            return Question(self._with_session, session, sequence, len(ids))

        return self._with_session(send, None)

    def exists(self, ids: List[bytes]) -> int:
        """How many of the first pages are stored."""

        def ask(session: Session) -> int:
            answer = session.ask_briefly(protocol.EXISTS, Writer().ids(ids), protocol.COUNT)
            return 0 if answer is None else min(protocol.read_count(answer), len(ids))

        return self._with_session(ask, 0) if ids else 0

    def get(self, ids: List[bytes], pages: Sequence[Pieces]) -> int:
        """Copies the first pages that are stored to where they belong, and says how many.

        What lies where the others belong is undefined afterwards.
        """
        return self._with_session(lambda session: self._get(session, ids, pages), 0) if ids else 0

    def _get(self, session: Session, ids: List[bytes], pages: Sequence[Pieces]) -> int:
        done = 0
        asked_at = time.monotonic()
        asked: Optional[int] = session.send(protocol.LEASE, Writer().ids(ids[: session.step]))
        while asked is not None:
            # This process may have been stopped when the answer came.
            since = asked_at
            leased = protocol.read_leased(session.wait(asked, protocol.LEASED, MOVE_SECONDS))
            count = len(leased.slots)
            end = done + count
            if end > len(ids):
                raise ProtocolError(f"the daemon names {count} slots, and fewer were asked for")
            asked = None
            if 0 < count and (count == session.step or count < leased.found) and end < len(ids):
                # It is read while these are copied.
                following = Writer().ids(ids[end : end + session.step])
                asked_at = time.monotonic()
                asked = session.send(protocol.LEASE, following)
            moves: List[Move] = []
            for slot, page in zip(leased.slots, pages[done:end]):
                address = session.segment.address(slot)
                for pointer, size in page:
                    moves.append((pointer, address, size))
                    address += size
            move(moves)
            _require_soon(since)
            if leased.hold:
                session.loaded(leased.hold)
            done = end
        return done

    def set(self, ids: List[bytes], pages: Sequence[Pieces]) -> int:
        """Stores pages that are not stored yet, and says how many of the first ones are now."""
        return self._with_session(lambda session: self._set(session, ids, pages), 0) if ids else 0

    def _set(self, session: Session, ids: List[bytes], pages: Sequence[Pieces]) -> int:
        done = 0
        stored = len(ids)
        commits: Deque[_Commit] = deque()
        while done < len(ids) and stored == len(ids):
            since = time.monotonic()
            asked = session.send(protocol.RESERVE, Writer().ids(ids[done : done + session.step]))
            answer = session.wait(asked, protocol.RESERVED, RESERVE_SECONDS)
            save, slots = protocol.read_reserved(answer)
            if len(slots) != min(session.step, len(ids) - done):
                raise ProtocolError(f"the daemon names {len(slots)} slots, and others were asked for")
            written = []
            moves: List[Move] = []
            for number, slot in enumerate(slots, done):
                if slot == protocol.NO_SLOT:
                    break
                if slot != protocol.STORED:
                    address = session.segment.address(slot)
                    for pointer, size in pages[number]:
                        moves.append((address, pointer, size))
                        address += size
                    written.append(number)
                done = number + 1
            with session.segment.filling(slots):
                # Else it would write over the pages of others.
                _require_soon(since)
                move(moves)
            if save:
                commits.append(_Commit(session.send(protocol.COMMIT, Writer().u64(save)), written))
            elif not commits and done < len(ids) and slots[:1] == [protocol.NO_SLOT]:
                # Others have all slots.
                stored = done
            # Some steps are stored while the next one is copied.
            while len(commits) > (session.ahead if save else 0):
                stored = min(stored, self._settle(session, commits.popleft(), stored))
        while commits:
            stored = min(stored, self._settle(session, commits.popleft(), stored))
        return min(done, stored)

    def _settle(self, session: Session, commit: _Commit, stored: int) -> int:
        answer = session.wait(commit.sequence, protocol.COUNT, MOVE_SECONDS)
        count = protocol.read_count(answer)
        return commit.pages[count] if count < len(commit.pages) else stored

    def close(self) -> None:
        """Gives back what the daemon holds for it."""
        self._link.close()
