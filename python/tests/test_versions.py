"""A daemon and a package of different releases; see docs/protocol.md, Versions."""

import os
import shutil
import socket
import struct
import threading

import pytest
from daemons import private
from test_end_to_end import settle
from toy_engine import ToyEngine
from ucm import protocol

pytestmark = pytest.mark.usefixtures("patient")


class Older:
    """In front of a daemon, what one from before hybrid models and stages would be."""

    def __init__(self, daemon, folder):
        self.path = os.path.join(private(folder), "ucm.sock")
        self._daemon = daemon.socket
        shutil.copy(os.path.join(os.path.dirname(self._daemon), "ucm.token"), os.path.dirname(self.path))
        self.asked, self.cut = [], 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._daemon)
            for ends in ((client, server, self._request), (server, client, self._answer)):
                threading.Thread(target=self._pass, args=(*ends, client), daemon=True).start()

    def _pass(self, source, target, change, client):
        buffer = bytearray()
        try:
            while True:
                chunk = source.recv(1 << 16)
                if not chunk:
                    break
                buffer += chunk
                while (frame := protocol.split(buffer)) is not None:
                    body = change(frame, client)
                    if body is not None:
                        target.sendall(encoded(frame._replace(body=body)))
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _request(self, frame, client):
        if frame.kind not in (protocol.GROUPS, protocol.STAGE):
            return frame.body
        self.asked.append(frame.kind)
        refused = protocol.Writer().u16(protocol.UNKNOWN_TYPE).string("that type is unknown here")
        client.sendall(refused.frame(protocol.REFUSED, frame.sequence))
        return None

    def _answer(self, frame, client):
        if frame.kind == protocol.FOUND:
            self.cut += 1
            assert protocol.read_found(frame.body).parts == []
            return frame.body[:-4]
        if frame.kind == protocol.PLANNED:
            self.cut += 1
            # Of a model without groups, there are none.
            return frame.body[:-4]
        return frame.body

    def close(self):
        self._listener.close()


def encoded(frame):
    return struct.pack("<IHHI", 8 + len(frame.body), frame.kind, 0, frame.sequence) + frame.body


@pytest.fixture
def older(daemon, tmp_path):
    found = Older(daemon, tmp_path / "older")
    yield found
    found.close()


def test_an_older_daemon_serves_what_it_knows(daemon, older):
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    engine = ToyEngine(daemon.transfer(ucm_socket=older.path), prefix_caching=False)
    for name in ("a", "b"):
        engine.add(name, range(100))
        engine.run()
        settle(daemon)
    assert engine.hits == 96
    assert older.cut > 2 and older.asked == []
    engine.close()


def test_an_older_daemon_is_told_apart_where_it_would_serve_otherwise(daemon, older, capfd):
    engine = ToyEngine(daemon.transfer(ucm_socket=older.path), pp=2, prefix_caching=False)
    engine.add("a", range(100))
    engine.run()
    assert engine.hits == 0
    assert older.asked.count(protocol.STAGE) >= 2
    engine.close()
    said = "it is older than this engine's package, and does not know pipeline parallelism: update ucm serve"
    assert said in capfd.readouterr().err
