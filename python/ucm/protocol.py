"""Frames and messages between an engine and ``ucm serve``; see docs/protocol.md.

All numbers are little-endian. A frame is u32 length, u16 type, u16 flags, u32 sequence, body.
"""

from __future__ import annotations

import struct
from array import array
from typing import List, NamedTuple, Optional, Sequence, Tuple, Union

MAGIC = 0x314D4355
VERSION = 1
MAX_FRAME = 16 << 20
NO_SLOT = 0xFFFFFFFF
STORED = 0xFFFFFFFE
ID_BYTES = 16

SCHEDULER, WORKER, OBSERVER = 0, 1, 2

HELLO, WELCOME, REFUSED = 1, 2, 3
OPEN_SCHEDULER, OPENED_SCHEDULER = 4, 5
OPEN_WORKER, OPENED_WORKER = 6, 7
LOOKUP, FOUND = 8, 9
PLAN, PLANNED = 10, 11
LOADED, SAVED = 12, 13
ERRORS_SEEN = 14
RESET, DONE = 15, 16
STATUS, STATUS_TEXT, PING = 17, 18, 19
COPY, COPIED = 20, 21
OPEN_NAMED = 22
EXISTS, COUNT = 23, 24
LEASE, LEASED = 25, 26
RESERVE, RESERVED, COMMIT = 27, 28, 29
CONFIGURATION, SETTINGS = 30, 31
IDENTIFY = 32
FIND, FOUND_WHICH = 33, 34
OPEN_REGION, OPENED_REGION = 35, 36
STORE_CHUNKS, LOAD_CHUNKS, MOVED = 37, 38, 39
GROUPS = 40
STAGE = 41
BORROW, LENDING = 42, 43

HOST_PLANE, DEVICE_PLANE = 0, 1
# What an engine has to know of its configuration, which the daemon alone reads.
SAVES_GENERATED, LAYERWISE = 1, 2

UNKNOWN_TYPE = 3
REFUSED_ENGINE = 5
NOT_NOW = 7

Buffer = Union[bytes, memoryview]
_FEW = 4096

_HEADER = struct.Struct("<IHHI")
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class ProtocolError(Exception):
    """The daemon's bytes are no message of this version."""


class Refused(Exception):
    """The daemon refuses, and says why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Writer:
    """Builds the body of a message."""

    def __init__(self) -> None:
        self._parts: List[Buffer] = []

    def u8(self, value: int) -> Writer:
        self._parts.append(bytes((value,)))
        return self

    def u16(self, value: int) -> Writer:
        self._parts.append(_U16.pack(value))
        return self

    def u32(self, value: int) -> Writer:
        self._parts.append(_U32.pack(value))
        return self

    def u64(self, value: int) -> Writer:
        self._parts.append(_U64.pack(value))
        return self

    def raw(self, value: bytes) -> Writer:
        self._parts.append(_U32.pack(len(value)))
        self._parts.append(value)
        return self

    def string(self, value: str) -> Writer:
        return self.raw(value.encode("utf-8"))

    def strings(self, values: Sequence[str]) -> Writer:
        self.u32(len(values))
        for value in values:
            self.string(value)
        return self

    def u32s(self, values: Sequence[int]) -> Writer:
        self.u32(len(values))
        self._parts.append(array("I", values).tobytes())
        return self

    def i32s(self, values: Sequence[int]) -> Writer:
        """Of a prompt, so there may be many: they are copied once, by what packs them fastest."""
        count = len(values)
        self.u32(count)
        numbers = struct.Struct(f"<{count}i").pack(*values)
        self._parts.append(numbers if count < _FEW else memoryview(numbers))
        return self

    def u64s(self, values: Sequence[int]) -> Writer:
        self.u32(len(values))
        self._parts.append(array("Q", values).tobytes())
        return self

    def ids(self, values: Sequence[bytes]) -> Writer:
        """Names of blocks, ID_BYTES each."""
        self.u32(len(values))
        self._parts.append(b"".join(values))
        return self

    def frame(self, kind: int, sequence: int) -> bytes:
        """The whole frame."""
        return b"".join(self.chunks(kind, sequence))

    def chunks(self, kind: int, sequence: int) -> List[Buffer]:
        """The whole frame in a few parts, of which the large ones are not copied."""
        small = [_HEADER.pack(8 + sum(map(len, self._parts)), kind, 0, sequence)]
        found: List[Buffer] = []
        for part in self._parts:
            if isinstance(part, bytes):
                small.append(part)
            else:
                found += (b"".join(small), part)
                small = []
        return [*found, b"".join(small)] if small else found


class Reader:
    """Reads the fields of a body in order; what follows the last known field is ignored."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._body):
            raise ProtocolError("a message of the daemon ends in the middle of a field")
        part = self._body[self._at : end]
        self._at = end
        return part

    @property
    def has_more(self) -> bool:
        """Whether fields follow, which an older daemon does not send."""
        return self._at < len(self._body)

    def u8(self) -> int:
        return self._take(1)[0]

    def u16(self) -> int:
        return int(_U16.unpack(self._take(2))[0])

    def u32(self) -> int:
        return int(_U32.unpack(self._take(4))[0])

    def u64(self) -> int:
        return int(_U64.unpack(self._take(8))[0])

    def raw(self) -> bytes:
        return self._take(self.u32())

    def string(self) -> str:
        try:
            return self.raw().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolError("a text of the daemon is not UTF-8") from error

    def u32s(self) -> List[int]:
        values = array("I")
        values.frombytes(self._take(4 * self.u32()))
        return values.tolist()


class Frame(NamedTuple):
    """A frame that was received."""

    kind: int
    sequence: int
    body: bytes


def split(buffer: bytearray) -> Optional[Frame]:
    """Takes the first frame off a buffer; None when it is not complete yet."""
    if len(buffer) < 12:
        return None
    length, kind, _, sequence = _HEADER.unpack_from(buffer)
    if length < 8 or length > MAX_FRAME:
        raise ProtocolError(f"the daemon announces a frame of {length} bytes")
    if len(buffer) < 4 + length:
        return None
    body = bytes(buffer[12 : 4 + length])
    del buffer[: 4 + length]
    return Frame(kind, sequence, body)


class Engine(NamedTuple):
    """What every connection of an engine says about it."""

    engine_id: str
    dp_rank: int
    model: str
    dtype: str
    tp_size: int
    mla: bool
    block_tokens: int
    role: int
    config_name: str
    config: str

    def write(self, to: Writer) -> Writer:
        to.string(self.engine_id).u32(self.dp_rank).string(self.model).string(self.dtype)
        to.u32(self.tp_size).u8(1 if self.mla else 0).u32(self.block_tokens)
        return to.u8(self.role).string(self.config_name).string(self.config)


class Identity(NamedTuple):
    """What tells an engine and its model from others; what is not known is empty.

    ``launch`` is the same in all connections of an engine. ``config`` and ``weights`` are fingerprints of
    the model; a worker says them. ``generation`` is that of the blocks since the engine disowned others.
    """

    launch: str = ""
    config: str = ""
    weights: str = ""
    generation: str = ""

    def write(self, to: Writer) -> Writer:
        for field in self:
            to.string(field)
        return to


class Input(NamedTuple):
    """An image or the like in a prompt: what tells it from others, and where its tokens are."""

    identifier: str
    first: int
    end: int


# What the tokens to come look at: all before them, the last ones, those of the chunk that they are in.
ALL, LAST, CHUNK = 0, 1, 2


class Rule(NamedTuple):
    """Which blocks of a KV cache group the tokens to come look at."""

    kind: int
    tokens: int
    block_tokens: int

    def first_needed(self, end: int) -> int:
        """The first block that is needed where so many tokens are there."""
        if self.kind == ALL:
            return 0
        if self.kind == LAST:
            return max(0, end - self.tokens) // self.block_tokens
        return end // self.tokens * self.tokens // self.block_tokens


class Part(NamedTuple):
    """Blocks of a group: the first one, and how many."""

    first: int
    blocks: int


class Found(NamedTuple):
    """FOUND: what can be loaded, and in which slots it lies; of a hybrid model, group after group."""

    handle: int
    tokens: int
    hold: int
    generation: int
    slots: List[int]
    prompt_blocks: int
    found_blocks: int
    parts: Sequence[Part] = ()


class Planned(NamedTuple):
    """Blocks of a request to be copied into slots after the step."""

    handle: int
    save: int
    first_block: int
    slots: List[int]
    group: int = 0


class Opened(NamedTuple):
    """OPENED_WORKER: the slots of a rank, who copies them, why it is not the daemon if asked; settings."""

    generation: int
    path: str
    size: int
    inode: int
    slots: int
    stride: int
    plane: int
    reason: str
    settings: int


class Lending(NamedTuple):
    """LENDING: memory of the daemon's process in which blocks are read; of no slots when none are lent."""

    descriptor: int
    size: int
    slots: int
    stride: int
    inode: int
    device: int
    # Where in the segment there is, for each slot, which of these is read for it; 0 when it is said itself.
    places_at: int = 0


class Leased(NamedTuple):
    """LEASED: where the first blocks can be read; more are found than slots when these are short."""

    hold: int
    found: int
    slots: List[int]


class Reserved(NamedTuple):
    """RESERVED: for each block where it can be written, NO_SLOT or STORED."""

    save: int
    slots: List[int]


def hello(token: bytes, role: int, pid: int, client: str) -> Writer:
    writer = Writer().u32(MAGIC).u16(VERSION).u16(VERSION).raw(token)
    return writer.u8(role).u32(pid).string(client)


def open_worker(
    engine: Engine, rank: int, layers: Sequence[Sequence[int]], layout: str
) -> Writer:
    writer = engine.write(Writer()).u32(rank).u32(len(layers))
    for tensors in layers:
        writer.u64s(tensors)
    return writer.string(layout)


def groups(rules: Sequence[Rule], layers: Sequence[Sequence[int]]) -> Writer:
    """GROUPS: the rule of each group, and the numbers of its layers."""
    writer = Writer().u32(len(rules))
    for rule, numbers in zip(rules, layers):
        writer.u8(rule.kind).u32(rule.tokens).u32(rule.block_tokens).u32s(numbers)
    return writer


def stage(stages: int, own: int) -> Writer:
    """STAGE: how many stages the layers are dealt out to, and which one this worker is of."""
    return Writer().u32(stages).u32(own)


class Region(NamedTuple):
    """A file of shared memory that this process has open and that holds chunks of the size of a block."""

    descriptor: int
    size: int
    inode: int


def open_named(engine: Engine, block_bytes: int, most_slots: int) -> Writer:
    return engine.write(Writer()).u64(block_bytes).u32(most_slots)


def open_region(region: Region) -> Writer:
    return Writer().u32(region.descriptor).u64(region.size).u64(region.inode)


def chunks(ids: Sequence[bytes], numbers: Sequence[int]) -> Writer:
    return Writer().ids(ids).u32s(numbers)


def lookup(
    handle: int,
    request_id: str,
    computed: int,
    prompt_tokens: int,
    max_tokens: int,
    variants: Sequence[str],
    first_index: int,
    tokens: Sequence[int],
    inputs: Sequence[Input] = (),
) -> Writer:
    writer = Writer().u32(handle).string(request_id).u32(computed).u32(prompt_tokens)
    writer.u32(max_tokens).strings(variants).u32(first_index).i32s(tokens).u32(len(inputs))
    for identifier, first, end in inputs:
        writer.string(identifier).u32(first).u32(end)
    return writer


def plan(
    step: int,
    taken: Sequence[Tuple[int, int]],
    forgotten: Sequence[int],
    scheduled: Sequence[Tuple[int, int, int]],
    generated: Sequence[Tuple[int, int, Sequence[int]]] = (),
) -> Writer:
    writer = Writer().u32(step & 0xFFFFFFFF).u32(len(taken))
    for hold, blocks in taken:
        writer.u64(hold).u32(blocks)
    writer.u32s(forgotten).u32(len(scheduled))
    for handle, computed, new in scheduled:
        writer.u32(handle).u32(computed).u32(new)
    writer.u32(len(generated))
    for handle, first, tokens in generated:
        writer.u32(handle).u32(first).i32s(tokens)
    return writer


def read_found(body: bytes) -> Found:
    reader = Reader(body)
    handle, tokens, hold, generation = reader.u32(), reader.u32(), reader.u64(), reader.u32()
    slots, prompt, found = reader.u32s(), reader.u32(), reader.u32()
    # A daemon from before hybrid models says nothing of groups.
    count = reader.u32() if reader.has_more else 0
    parts = [Part(reader.u32(), reader.u32()) for _ in range(count)]
    return Found(handle, tokens, hold, generation, slots, prompt, found, parts)


def read_planned(body: bytes) -> Tuple[int, List[Planned]]:
    reader = Reader(body)
    generation = reader.u32()
    saves = []
    for _ in range(reader.u32()):
        handle, save, first = reader.u32(), reader.u64(), reader.u32()
        saves.append(Planned(handle, save, first, reader.u32s()))
    for i, group in enumerate(reader.u32s() if reader.has_more else ()):
        saves[i] = saves[i]._replace(group=group)
    return generation, saves


def read_opened(body: bytes) -> Opened:
    reader = Reader(body)
    generation, path = reader.u32(), reader.string()
    size, inode, slots, stride = reader.u64(), reader.u64(), reader.u32(), reader.u64()
    plane, reason, settings = reader.u8(), reader.string(), reader.u8()
    return Opened(generation, path, size, inode, slots, stride, plane, reason, settings)


def read_lending(body: bytes) -> Lending:
    reader = Reader(body)
    descriptor, size, slots, stride = reader.u32(), reader.u64(), reader.u32(), reader.u64()
    if not reader.has_more:
        # What cannot be told from other memory is not read.
        return Lending(descriptor, size, 0, stride, 0, 0)
    inode, device = reader.u64(), reader.u64()
    places_at = reader.u64() if reader.has_more else 0
    return Lending(descriptor, size, slots, stride, inode, device, places_at)


def configuration(name: str, text: str) -> Writer:
    return Writer().string(name).string(text)


def read_settings(body: bytes) -> int:
    return Reader(body).u8()


def read_count(body: bytes) -> int:
    return Reader(body).u32()


def read_opened_region(body: bytes) -> str:
    """Why the daemon does not move chunks; empty when it does."""
    return Reader(body).string()


def read_blocks(body: bytes, count: int) -> List[bool]:
    """FOUND_WHICH and MOVED: for each block that was asked for, whether it is among those."""
    bits = int.from_bytes(Reader(body).raw(), "little") & ((1 << count) - 1)
    # Backwards, and without the digit that keeps leading zeros.
    return [digit == "1" for digit in f"{bits | 1 << count:b}"[:0:-1]]


def read_leased(body: bytes) -> Leased:
    reader = Reader(body)
    return Leased(reader.u64(), reader.u32(), reader.u32s())


def read_reserved(body: bytes) -> Reserved:
    reader = Reader(body)
    return Reserved(reader.u64(), reader.u32s())


def read_refused(body: bytes) -> Refused:
    reader = Reader(body)
    code = reader.u16()
    return Refused(code, reader.string())
