"""Frames byte by byte: the same files are read by the Java tests of the daemon."""

import os
import random

import pytest
from ucm import device, protocol

GOLDEN = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../ucm-server/src/test/resources/golden"
)

ENGINE = protocol.Engine(
    "engine-1", 2, "Qwen/QwQ-32B", "torch.bfloat16", 4, False, 128, 3, "ucm.yaml", "use_lite: no\n"
)

NAMED = ENGINE._replace(dp_rank=0, tp_size=1, block_tokens=64)
IDS = [bytes(range(16)), bytes(range(240, 256))]

DEVICE = device.Exported(
    bytes(range(16)).hex(),
    [(bytes(range(64)), 2**33), (bytes(64), 2**21)],
    2048,
    [[device.Tensor(0, 0, 262144), device.Tensor(0, 2**29, 262144)], [device.Tensor(1, 512, 2**18)]],
    None,
    (1, 4096),
)


def open_worker(exported=None):
    body = protocol.open_worker(ENGINE, 3, [[262144, 262144], [147456]], "4d/0x1(1:16)")
    if exported is not None:
        device.write(body, exported, b"\x00\xff")
    return body


SENT = {
    "hello": (
        protocol.HELLO,
        1,
        protocol.hello(bytes(range(32)), protocol.WORKER, 4711, "worker-3"),
    ),
    "open_scheduler": (protocol.OPEN_SCHEDULER, 2, ENGINE.write(protocol.Writer())),
    "open_worker": (
        protocol.OPEN_WORKER,
        2,
        open_worker(),
    ),
    "open_worker_device": (protocol.OPEN_WORKER, 2, open_worker(DEVICE)),
    "copy": (protocol.COPY, 8, device.message(True, [62, 63], [5, 1023], [17, 2**20])),
    "open_named": (protocol.OPEN_NAMED, 2, protocol.open_named(NAMED, 2**24, 128)),
    "exists": (protocol.EXISTS, 9, protocol.Writer().ids(IDS)),
    "lease": (protocol.LEASE, 10, protocol.Writer().ids(IDS)),
    "reserve": (protocol.RESERVE, 11, protocol.Writer().ids(IDS)),
    "configuration": (
        protocol.CONFIGURATION,
        13,
        protocol.configuration("/etc/ucm.yaml", "use_lite: no\n"),
    ),
    "commit": (protocol.COMMIT, 12, protocol.Writer().u64(2**40 + 2)),
    "lookup": (
        protocol.LOOKUP,
        3,
        protocol.lookup(
            7, "cmpl-é", 128, 300, 16, ["lora:a", "salt:c"], 2, [0, 151643, 2**31 - 1],
            [protocol.Input("image", 3, 259)],
        ),
    ),
    "plan": (
        protocol.PLAN,
        4,
        protocol.plan(
            9,
            [(2**40 + 1, 2), (5, 0)],
            [6, 8],
            [(7, 128, 172), (11, 0, 64)],
            [(7, 299, [151643])],
        ),
    ),
    "plan_unanswered": (protocol.PLAN, 0, protocol.plan(2**32, [], [6], [])),
    "loaded": (protocol.LOADED, 0, protocol.Writer().u64s([2**40 + 1]).u64s([])),
    "saved": (protocol.SAVED, 0, protocol.Writer().u64s([1, 2**63]).u64s([3])),
    "errors_seen": (protocol.ERRORS_SEEN, 0, protocol.Writer()),
    "reset": (protocol.RESET, 5, protocol.Writer().string("second")),
    "identify": (
        protocol.IDENTIFY,
        0,
        protocol.Identity("1a2b3", "config", "weights", "second").write(protocol.Writer()),
    ),
    "borrow": (protocol.BORROW, 6, protocol.Writer().u8(1).u8(1)),
    "stage": (protocol.STAGE, 7, protocol.stage(4, 3)),
    "groups": (
        protocol.GROUPS,
        8,
        protocol.groups(
            [
                protocol.Rule(protocol.ALL, 0, 128),
                protocol.Rule(protocol.LAST, 511, 256),
                protocol.Rule(protocol.CHUNK, 8192, 128),
            ],
            [[0, 2], [1], [3]],
        ),
    ),
    "find": (protocol.FIND, 10, protocol.Writer().ids(IDS)),
    "open_region": (
        protocol.OPEN_REGION,
        11,
        protocol.open_region(protocol.Region(17, 2**33, 2**40 + 7)),
    ),
    "store_chunks": (protocol.STORE_CHUNKS, 12, protocol.chunks(IDS, [5, 2**20])),
    "load_chunks": (protocol.LOAD_CHUNKS, 13, protocol.chunks(IDS, [5, 2**20])),
    "status": (protocol.STATUS, 6, protocol.Writer()),
    "ping": (protocol.PING, 7, protocol.Writer()),
}

RECEIVED = {
    "found": (
        protocol.FOUND,
        protocol.read_found,
        protocol.Found(7, 255, 2**40 + 1, 0xFEDCBA98, [4, 1023], 3, 2, [(0, 1), (2, 1)]),
    ),
    "planned": (
        protocol.PLANNED,
        protocol.read_planned,
        (
            0xFEDCBA98,
            [
                protocol.Planned(7, 2**33, 2, [5, protocol.NO_SLOT]),
                protocol.Planned(11, 8, 0, [6], 1),
            ],
        ),
    ),
    "count": (protocol.COUNT, protocol.read_count, 2),
    "leased": (protocol.LEASED, protocol.read_leased, protocol.Leased(2**40 + 1, 3, [4, 1023])),
    "reserved": (
        protocol.RESERVED,
        protocol.read_reserved,
        protocol.Reserved(2**40 + 2, [5, protocol.STORED, protocol.NO_SLOT]),
    ),
    "settings": (protocol.SETTINGS, protocol.read_settings, 3),
    "found_which": (
        protocol.FOUND_WHICH,
        lambda body: [i for i, there in enumerate(protocol.read_blocks(body, 24)) if there],
        [0, 2, 16],
    ),
    "lending": (
        protocol.LENDING,
        protocol.read_lending,
        protocol.Lending(31, 2**33, 8192, 2**20, 4711, 1, 2**32 + 4096),
    ),
    "opened_region": (protocol.OPENED_REGION, protocol.read_opened_region, "no such file"),
    "moved": (protocol.MOVED, lambda body: protocol.read_blocks(body, 2), [False, True]),
    "copied": (protocol.COPIED, device.read_copied, "lost"),
    "opened_worker": (
        protocol.OPENED_WORKER,
        protocol.read_opened,
        protocol.Opened(
            0xFEDCBA98, "/dev/shm/ucm-serve-0-0-1", 2**32 + 4096, 2**40, 1024, 2**22, 0, "no GPU", 2
        ),
    ),
}


def golden(name):
    with open(os.path.join(GOLDEN, name + ".hex"), encoding="ascii") as file:
        return bytes.fromhex("".join(line.split("#")[0] for line in file))


@pytest.mark.parametrize("name", SENT)
def test_what_is_sent(name):
    kind, sequence, body = SENT[name]
    assert body.frame(kind, sequence).hex() == golden(name).hex()


@pytest.mark.parametrize("name", RECEIVED)
def test_what_is_received(name):
    kind, read, expected = RECEIVED[name]
    frame = protocol.split(bytearray(golden(name)))
    assert frame.kind == kind
    assert read(frame.body) == expected
    # A newer daemon may add fields at the end.
    assert read(frame.body + b"new") == expected


@pytest.mark.parametrize("name", RECEIVED)
def test_a_body_that_is_cut_off_is_an_error_of_the_protocol(name):
    _, read, expected = RECEIVED[name]
    body = protocol.split(bytearray(golden(name))).body
    # What an older daemon does not say.
    added = {
        "found": lambda: [4 + 8 * len(expected.parts)],
        "planned": lambda: [4 + 4 * len(expected[1])],
        "lending": lambda: [8, 8 + 8 + 8],
    }
    older = [len(body) - more for more in added[name]()] if name in added else []
    for end in range(len(body)):
        if end in older:
            read(body[:end])
            continue
        with pytest.raises(protocol.ProtocolError):
            read(body[:end])


def test_a_refusal_says_why():
    refused = protocol.read_refused(protocol.split(bytearray(golden("refused"))).body)
    assert (refused.code, str(refused)) == (protocol.REFUSED_ENGINE, "rank 4 of 4")


def test_frames_arrive_in_any_parts():
    stream = b"".join(golden(name) for name in RECEIVED)
    for seed in range(20):
        choice = random.Random(seed)
        buffer, kinds, at = bytearray(), [], 0
        while at < len(stream) or buffer:
            step = choice.randrange(1, 40)
            buffer += stream[at : at + step]
            at += step
            frame = protocol.split(buffer)
            while frame is not None:
                kinds.append(frame.kind)
                frame = protocol.split(buffer)
        assert kinds == [kind for kind, _, _ in RECEIVED.values()]


@pytest.mark.parametrize("length", [0, 7, protocol.MAX_FRAME + 1, 2**32 - 1])
def test_a_length_that_cannot_be_ends_the_connection(length):
    with pytest.raises(protocol.ProtocolError):
        protocol.split(bytearray(length.to_bytes(4, "little") + bytes(20)))


def test_random_bytes_are_read_or_refused_and_nothing_else():
    choice = random.Random(5)
    for _ in range(3000):
        body = bytes(choice.getrandbits(8) for _ in range(choice.randrange(60)))
        for _, read, _ in RECEIVED.values():
            try:
                read(body)
            except protocol.ProtocolError:
                pass


def test_a_count_beyond_the_frame_costs_no_memory():
    with pytest.raises(protocol.ProtocolError):
        protocol.read_found(bytes(20) + b"\xff\xff\xff\xff")


def test_mutated_frames_are_read_or_refused():
    """100,000 of them; nothing but a refusal comes out of a wrong one."""
    choice = random.Random(4)
    reads = {kind: read for kind, read, _ in RECEIVED.values()}
    reads[protocol.REFUSED] = protocol.read_refused
    frames = [golden(name) for name in (*RECEIVED, "refused")]
    refused = 0
    for _ in range(100_000):
        frame = bytearray(choice.choice(frames))
        for _ in range(choice.randrange(1, 4)):
            at = choice.randrange(len(frame))
            what = choice.randrange(3)
            if what == 0:
                frame[at] = choice.randrange(256)
            elif what == 1 and len(frame) > 1:
                del frame[at]
            else:
                frame[at:at] = choice.randbytes(choice.randrange(1, 5))
        try:
            found = protocol.split(frame)
            if found is not None and found.kind in reads:
                reads[found.kind](found.body)
        except protocol.ProtocolError:
            refused += 1
    assert refused > 10_000
