"""Connections to a daemon that is away, comes back, hangs, or is asked by something that fails."""

import contextlib
import ctypes
import logging
import os
import signal
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from ucm import client, daemon, protocol
from ucm.client import Link
from ucm.pages import Pages
from ucm.protocol import Engine

LOG = logging.getLogger("ucm.tests")
BOUND = 60.0


class FakeDaemon:
    """Admits connections, and answers messages as long as it goes on; counts what it hears."""

    def __init__(self, path, kinds=(), segment=None):
        self.path, self.kinds, self.heard = path, dict(kinds), []
        self.goes_on = threading.Event()
        self.goes_on.set()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        fd = os.open(daemon.token_path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(fd, b"token")
        os.close(fd)
        if os.path.exists(path):
            os.unlink(path)
        self._server.bind(path)
        self._server.listen(8)
        self._clients = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                made, _ = self._server.accept()
            except OSError:
                return
            self._clients.append(made)
            threading.Thread(target=self._serve, args=(made,), daemon=True).start()

    def _serve(self, made):
        buffer = bytearray()
        while True:
            try:
                chunk = made.recv(1 << 16)
            except OSError:
                return
            if not chunk:
                made.close()
                return
            buffer += chunk
            while (frame := protocol.split(buffer)) is not None:
                self.goes_on.wait()
                self.heard.append(frame.kind)
                answer = self._answer(frame)
                if answer is not None:
                    # A client may have given up meanwhile.
                    with contextlib.suppress(OSError):
                        made.sendall(answer)

    def _answer(self, frame):
        if frame.kind == protocol.HELLO:
            return protocol.Writer().frame(protocol.WELCOME, frame.sequence)
        if frame.kind == protocol.PING:
            return protocol.Writer().frame(protocol.DONE, frame.sequence)
        kind, body = self.kinds.get(frame.kind, (None, None))
        return None if kind is None else body().frame(kind, frame.sequence)

    def close(self):
        self._server.close()
        os.unlink(self.path)
        for one in self._clients:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def path(tmp_path):
    os.makedirs(tmp_path / "d", mode=0o700)
    return str(tmp_path / "d" / "ucm.sock")


def until(condition):
    deadline = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def link_to(path, opened=lambda _: None):
    return Link({"ucm_socket": path, "ucm_start_daemon": False}, protocol.WORKER, "test", opened, LOG)


def test_whatever_is_raised_while_a_link_opens_is_said_and_it_goes_on(path, caplog, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    made = FakeDaemon(path)
    failures = [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), KeyError("x"), OSError("no segment")]
    refused = protocol.Refused(protocol.NOT_NOW, "no shared memory is left")
    left = [*failures, refused]

    def opened(_):
        if left:
            raise left.pop(0)

    with caplog.at_level(logging.INFO):
        link = link_to(path, opened)
        link.start(BOUND)
        until(lambda: link.connected)
    lines = [record.getMessage() for record in caplog.records if record.name == LOG.name]
    assert [line.split(", so nothing is found: ")[-1] for line in lines] == [
        f"UnicodeDecodeError: {failures[0]}",
        "KeyError: 'x'",
        "no segment",
        f"UCM: the daemon at {path} refuses: no shared memory is left",
        f"UCM: connected to the daemon at {path}",
    ]
    assert all("cannot be used" in line for line in lines[:3])
    link.close()
    made.close()


def test_an_engine_that_is_refused_asks_only_another_daemon_again(path, caplog, monkeypatch):
    made = FakeDaemon(path)
    accepts = []

    def opened(_):
        if not accepts:
            raise protocol.Refused(protocol.REFUSED_ENGINE, "its file is wrong")

    monkeypatch.setattr(client, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(client, "WATCH_SECONDS", 0.001)
    looks, identity = [], client.daemon.identity
    monkeypatch.setattr(client.daemon, "identity", lambda of: looks.append(of) or identity(of))
    link = link_to(path, opened)
    link.start(BOUND)
    until(lambda: looks.count(path) > 20)
    assert "the daemon refuses this engine, so nothing is found: its file is wrong" in caplog.text
    assert not link.connected and made.heard.count(protocol.HELLO) == 1
    made.close()
    # Another one may know what that one did not.
    accepts.append(True)
    other = FakeDaemon(path)
    until(lambda: link.connected)
    assert other.heard.count(protocol.HELLO) == 1
    link.close()
    other.close()


def test_a_daemon_that_returns_is_noticed_though_the_next_try_is_far_away(path, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 10 * BOUND)
    monkeypatch.setattr(client, "LONGEST_PAUSE", 10 * BOUND)
    assert client.WATCH_SECONDS <= 1
    link = link_to(path)
    link.start(BOUND)
    assert not link.connected
    for _ in range(2):
        made = FakeDaemon(path)
        until(lambda: link.connected)
        made.close()
        until(lambda: not link.connected)
    link.close()


def test_a_socket_that_nobody_listens_at_is_not_taken_for_a_daemon_that_returns(path, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 10 * BOUND)
    monkeypatch.setattr(client, "WATCH_SECONDS", 0.01)
    left_over = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left_over.bind(path)
    left_over.close()
    link = link_to(path)
    tries = []
    real = link._connect
    link._connect = lambda: tries.append(1) or real()
    link.start(BOUND)
    # The watch goes round many times.
    looks = []

    def identity(of):
        # Links of other tests may watch sockets that are gone.
        if of != path:
            return None
        looks.append(of)
        return os.stat(of)[1:2]

    monkeypatch.setattr(client.daemon, "identity", identity)
    until(lambda: len(looks) > 20)
    link.close()
    assert len(tries) <= 2


# -- pages -----------------------------------------------------------------------------------------

PAGE = 64
MARKS = 4096
DESCRIBED = Engine("e", 0, "m", "d", 1, False, 16, 3, "default", "{}")


class Slots(FakeDaemon):
    """Has slots for pages, and says that all are stored."""

    def __init__(self, path):
        self.segment = path + ".slots"
        fd = os.open(self.segment, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, bytes(16 * PAGE + MARKS))
        os.close(fd)
        super().__init__(
            path,
            {
                protocol.OPEN_NAMED: (protocol.OPENED_WORKER, self._opened),
                protocol.BORROW: (protocol.LENDING, lambda: protocol.Writer().u32(0).u64(0).u32(0).u64(0)),
                protocol.EXISTS: (protocol.COUNT, lambda: protocol.Writer().u32(3)),
            },
        )

    def _opened(self):
        body = protocol.Writer().u32(1).string(self.segment).u64(16 * PAGE + MARKS)
        body.u64(os.stat(self.segment).st_ino).u32(16).u64(PAGE).u8(0).string("").u8(0)
        return body


@pytest.fixture
def pages(path, monkeypatch):
    monkeypatch.setattr("ucm.pages.LOOKUP_SECONDS", 0.2)
    monkeypatch.setattr("ucm.pages.SILENT_SECONDS", 0.2)
    made = Slots(path)
    extra = {"ucm_socket": path, "ucm_start_daemon": False}
    found = Pages(extra, "test", lambda: DESCRIBED, PAGE, 1 << 20, LOG)
    found.start()
    found.fake = made
    yield found
    made.goes_on.set()
    found.close()
    made.close()


IDS = [bytes([i]) * 16 for i in range(3)]


def test_look_ups_that_are_late_count_as_nothing_and_are_awaited_beside_the_next_ones(pages):
    assert pages.exists(IDS) == 3
    # The daemon lives, but its storage does not answer.
    stored = pages.fake.kinds.pop(protocol.EXISTS)
    before = len(pages.fake.heard)
    assert [pages.exists(IDS) for _ in range(5)] == [0] * 5
    until(lambda: protocol.PING in pages.fake.heard)
    assert pages.fake.heard[before:].count(protocol.EXISTS) == 1
    assert pages._link.connected
    session = pages._session
    with session._turn:
        session._late.clear()
    pages.fake.kinds[protocol.EXISTS] = stored
    assert pages.exists(IDS) == 3


def test_a_daemon_that_is_stopped_is_given_up_and_found_again_when_it_goes_on(pages):
    pages.fake.goes_on.clear()
    until(lambda: pages.exists(IDS) == 0 and not pages._link.connected)
    pages.fake.goes_on.set()
    until(lambda: pages.exists(IDS) == 3)


def test_a_read_does_not_wait_for_a_daemon_that_is_stopped_as_long_as_for_a_slow_storage(
    pages, monkeypatch
):
    monkeypatch.setattr("ucm.pages.MOVE_SECONDS", 10 * BOUND)
    pages.fake.goes_on.clear()
    found = []
    reader = threading.Thread(target=lambda: found.append(pages.get(IDS, [[(0, 0)]] * 3)))
    reader.start()
    reader.join(BOUND)
    assert found == [0]


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("writes", [False, True])
def test_slots_are_not_used_by_a_process_that_was_stopped_when_it_got_them(
    pages, monkeypatch, writes, stops
):
    """Whatever it reads or writes there then may be another's page."""
    slots = [0, 1, 2]
    pages.fake.kinds[protocol.LEASE] = (protocol.LEASED, lambda: protocol.Writer().u64(7).u32(3).u32s(slots))
    pages.fake.kinds[protocol.RESERVE] = (protocol.RESERVED, lambda: protocol.Writer().u64(8).u32s(slots))
    pages.fake.kinds[protocol.COMMIT] = (protocol.COUNT, lambda: protocol.Writer().u32(3))
    session, late = pages._session, []
    poll = session.connection.poll

    def stopped(seconds):
        frame = poll(seconds)
        late.extend([60.0] if stops and frame is not None else [])
        return frame

    monkeypatch.setattr(session.connection, "poll", stopped)
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(late))
    monkeypatch.setattr("ucm.pages.time", clock)
    own = ctypes.create_string_buffer(b"x" * PAGE, PAGE)
    pieces = [[(ctypes.addressof(own), PAGE)]] * 3
    done = pages.set(IDS, pieces) if writes else pages.get(IDS, pieces)
    assert done == (0 if stops else 3)
    if writes:
        with open(pages.fake.segment, "rb") as segment:
            assert (b"x" in segment.read()) is not stops


@pytest.mark.parametrize("fails", [False, True])
def test_slots_are_marked_while_they_are_written(pages, monkeypatch, fails):
    """The daemon gives them to nobody else meanwhile, however long this process is stopped in it."""
    slots = [protocol.STORED, 5, 0]
    pages.fake.kinds[protocol.RESERVE] = (protocol.RESERVED, lambda: protocol.Writer().u64(8).u32s(slots))
    pages.fake.kinds[protocol.COMMIT] = (protocol.COUNT, lambda: protocol.Writer().u32(2))

    def marked():
        with open(pages.fake.segment, "rb") as segment:
            segment.seek(16 * PAGE)
            return [slot for slot, mark in enumerate(segment.read()) if mark]

    meanwhile = []

    def move(_):
        meanwhile.append(marked())
        if fails:
            raise OSError("no memory")

    monkeypatch.setattr("ucm.pages.move", move)
    assert pages.set(IDS, [[(0, PAGE)]] * 3) == (0 if fails else 3)
    assert meanwhile == [[0, 5]]
    assert marked() == []


def test_an_answer_that_comes_late_does_not_count_for_another_look_up(pages):
    asked = threading.Event()

    def slow():
        asked.set()
        pages.fake.goes_on.clear()
        return protocol.Writer().u32(2)

    kept = pages.fake.kinds[protocol.EXISTS]
    pages.fake.kinds[protocol.EXISTS] = (protocol.COUNT, slow)
    assert pages.exists(IDS) == 2  # Answered, and then the daemon stops.
    assert pages.exists(IDS) == 0
    pages.fake.kinds[protocol.EXISTS] = kept
    pages.fake.goes_on.set()
    until(lambda: pages.exists(IDS) == 3)


def test_a_real_daemon_that_hangs_is_given_up_and_noticed_when_it_goes_on_or_is_replaced(own_daemon):
    made = own_daemon
    text = open(made.yaml, encoding="utf-8").read()
    described = DESCRIBED._replace(config_name=made.yaml, config=text)
    extra = {"ucm_socket": made.socket, "ucm_start_daemon": False}
    pages = Pages(extra, "test", lambda: described, 4096, 1 << 20, LOG)
    pages.start()
    source = bytearray(b"x" * 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(source))
    assert pages.set(IDS, [[(address, 4096)]] * 3) == 3 and pages.exists(IDS) == 3
    made.freeze()
    assert pages.exists(IDS) == 0
    until(lambda: pages.exists(IDS) == 0 and not pages._link.connected)
    made.process.send_signal(signal.SIGCONT)
    until(lambda: pages.exists(IDS) == 3)
    made.kill()
    until(lambda: not pages._link.connected)
    made.start()
    until(lambda: pages.exists(IDS) == 3)
    pages.close()
