"""A connection to the daemon that never stops its caller for long."""

from __future__ import annotations

import logging
import math
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from ucm import daemon, protocol
from ucm.protocol import Frame, ProtocolError, Refused, Writer

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
WATCH_SECONDS = 0.5
OPEN_SECONDS = 60.0
SEND_SECONDS = 1.0
SEND_BYTES = 1 << 20


class Gone(Exception):
    """There is no connection at the moment."""


class Connection:
    """One admitted connection. Used by one thread at a time, except that `send` takes a lock.

    One that `lingers` is not closed before the daemon has closed its end, for which its reader waits.
    """

    def __init__(self, path: str, role: int, client: str, seconds: float) -> None:
        # Of the slots that this connection has announced; for what is said of them.
        self.generation: Optional[int] = None
        self.lingers = False
        self._buffer = bytearray()
        self._frames: Deque[Frame] = deque()
        self._sequence = 0
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        # So that a long prompt does not wait for the daemon to read it, as far as the system allows.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        self._readable = select.poll()
        self._readable.register(self._socket, select.POLLIN)
        try:
            self._socket.settimeout(seconds)
            self._socket.connect(path)
            self._socket.settimeout(SEND_SECONDS)
            greeting = protocol.hello(daemon.read_token(path), role, os.getpid(), client)
            self.ask(protocol.HELLO, greeting, protocol.WELCOME, seconds)
        except BaseException:
            self._socket.close()
            raise

    def send(self, kind: int, body: Writer, answered: bool = True) -> int:
        """Sends a message; returns its number, or 0 when no answer is wanted."""
        with self._lock:
            if answered:
                self._sequence = self._sequence % 0x7FFFFFFF + 1
            sequence = self._sequence if answered else 0
            for chunk in body.chunks(kind, sequence):
                self._socket.sendall(chunk)
            return sequence

    def poll(self, seconds: float = 0.0) -> Optional[Frame]:
        """The next frame; None when there is none within the time."""
        if self._frames:
            return self._frames.popleft()
        return self._read(seconds)

    def _read(self, seconds: float) -> Optional[Frame]:
        deadline = time.monotonic() + seconds
        while True:
            frame = protocol.split(self._buffer)
            if frame is not None:
                return frame
            left = max(0.0, deadline - time.monotonic())
            if not self._readable.poll(1000 * left):
                return None
            chunk = self._socket.recv(1 << 18)
            if not chunk:
                raise Gone("the daemon closed the connection")
            self._buffer += chunk

    def wait(self, sequence: int, expected: int, seconds: float) -> Frame:
        """The answer to a message; other frames are kept for `poll`."""
        frame = self.wait_if(sequence, expected, seconds)
        if frame is None:
            raise Gone(f"the daemon did not answer within {seconds:g} s")
        return frame

    def wait_if(self, sequence: int, expected: int, seconds: float) -> Optional[Frame]:
        """Like `wait`; None when the answer does not come within the time."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            frame = self._read(max(0.0, left))
            if frame is None:
                return None
            if frame.sequence != sequence:
                self._frames.append(frame)
                continue
            if frame.kind == protocol.REFUSED:
                raise protocol.read_refused(frame.body)
            if frame.kind != expected:
                raise ProtocolError(f"the daemon answered with a message of type {frame.kind}")
            return frame

    def ask(self, kind: int, body: Writer, expected: int, seconds: float) -> Frame:
        """Sends a message and waits for its answer."""
        return self.wait(self.send(kind, body), expected, seconds)

    def is_hung_up(self, seconds: float) -> bool:
        """Whether the daemon closed the connection, waiting for that at most some time."""
        hung_up = select.poll()
        try:
            hung_up.register(self._socket, select.POLLRDHUP)
        except ValueError:  # Closed here.
            return True
        return bool(hung_up.poll(1000 * seconds))

    def daemon_pid(self) -> int:
        """The number of the daemon's process; 0 where this process cannot see it."""
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int(struct.unpack("iII", credentials)[0])

    def daemon_pidfd(self) -> Optional[int]:
        """A file descriptor of the daemon's process; None where this process cannot see it."""
        pid = self.daemon_pid()
        try:
            return os.pidfd_open(pid) if pid > 0 else None
        except OSError:
            return None

    def close(self) -> None:
        """Has the connection ended."""
        if not self.lingers:
            self._socket.close()
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:  # The daemon was faster.
            pass

    def release(self) -> None:
        """Ends it at once; for the reader of a connection that lingers."""
        self._socket.close()


class Link:
    """Keeps a connection, and makes a new one in the background when it is lost.

    `opened` is called with each new connection before anyone else sees it. One line is logged for
    each change of state. `epoch` grows with each connection.
    """

    def __init__(
        self,
        extra: Dict[str, Any],
        role: int,
        client: str,
        opened: Callable[[Connection], None],
        log: logging.Logger,
    ) -> None:
        self.epoch = 0
        self._path = daemon.socket_path(extra)
        self._starts = daemon.may_start(extra)
        self._role = role
        self._client = client
        self._opened = opened
        self._log = log
        self._pid = os.getpid()
        self._connection: Optional[Connection] = None
        self._thread: Optional[threading.Thread] = None
        self._said = ""
        # For as long as this daemon is there.
        self._is_refused = False
        self._closed = threading.Event()
        self._first = threading.Event()

    def start(self, seconds: float) -> None:
        """Begins to connect, and waits for that no longer than it may."""
        self._thread = threading.Thread(target=self._run, name=f"ucm-{self._client}", daemon=True)
        self._thread.start()
        self._first.wait(seconds)

    def get(self) -> Connection:
        """The connection; raises Gone when there is none."""
        connection = self._connection
        if connection is None or os.getpid() != self._pid:
            raise Gone("no connection to the daemon")
        return connection

    @property
    def connected(self) -> bool:
        return self._connection is not None

    def lost(self, connection: Connection, why: BaseException) -> None:
        """Gives a connection up; a new one is made in the background."""
        if connection is not self._connection:
            return
        self._connection = None
        connection.close()
        self._say(f"UCM: the daemon at {self._path} is gone ({why}): nothing is found until it is back")

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._closed.is_set():
            begun = time.monotonic()
            seen = daemon.identity(self._path)
            connection = self._attempt()
            if connection is not None:
                pause = FIRST_PAUSE
                self.epoch += 1
                self._connection = connection
                self._say(f"UCM: connected to the daemon at {self._path}")
                self._first.set()
                self._watch(connection)
                continue
            self._first.set()
            if self._is_refused:
                # Another daemon may know what this one does not.
                self._pause(math.inf, seen or daemon.identity(self._path))
                pause = FIRST_PAUSE
                continue
            # What took long is tried again at once: a daemon that hung may go on.
            self._pause(begun + pause - time.monotonic(), seen)
            pause = min(LONGEST_PAUSE, 2 * pause)

    def _attempt(self) -> Optional[Connection]:
        """A new connection; None when that fails, whatever is the reason, which is logged."""
        where = f"the daemon at {self._path}"
        connection: Optional[Connection] = None
        self._is_refused = False
        try:
            connection = self._connect()
            self._opened(connection)
            return connection
        except Refused as refusal:
            # Older daemons refuse for good who comes back before the end of its old connection is known.
            if refusal.code == protocol.REFUSED_ENGINE and "already" not in str(refusal):
                self._is_refused = True
                self._say(f"UCM: the daemon refuses this engine, so nothing is found: {refusal}")
            else:
                self._say(f"UCM: {where} refuses: {refusal}")
        except Exception as error:
            # A thread that ended would leave the engine without UCM, and without a word.
            if connection is not None:
                self._say(f"UCM: {where} cannot be used, so nothing is found: {_text(error)}")
            else:
                self._say(f"UCM: no daemon at {self._path}, so nothing is found: {_text(error)}")
        if connection is not None:
            connection.close()
        return None

    def _pause(self, seconds: float, seen: Optional[Tuple[int, int]]) -> None:
        """Waits; not after another daemon has come."""
        deadline = time.monotonic() + max(seconds, FIRST_PAUSE)
        left = deadline - time.monotonic()
        while left > 0 and not self._closed.wait(min(left, WATCH_SECONDS)):
            if daemon.identity(self._path) not in (None, seen):
                return
            left = deadline - time.monotonic()

    def _watch(self, connection: Connection) -> None:
        """Returns when a connection is lost."""
        while self._connection is connection and not self._closed.is_set():
            if connection.is_hung_up(0.5):
                self.lost(connection, Gone("it closed the connection"))

    def _connect(self) -> Connection:
        try:
            return Connection(self._path, self._role, self._client, OPEN_SECONDS)
        except (FileNotFoundError, ConnectionRefusedError):
            if not self._starts:
                raise
            missing = daemon.start(self._path, OPEN_SECONDS)
            if missing is not None:
                raise Gone(missing) from None
            return Connection(self._path, self._role, self._client, OPEN_SECONDS)

    def _say(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._log.info(line) if "connected" in line else self._log.warning(line)

    def close(self) -> None:
        """Ends it; nothing is connected any more."""
        self._closed.set()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _text(error: Exception) -> str:
    """What is wrong; with its kind where the words alone may not say it."""
    if isinstance(error, (OSError, Gone, ProtocolError)):
        return str(error)
    return f"{type(error).__name__}: {error}"
