"""What the daemon reads in a configuration, asked before there is an engine."""

from __future__ import annotations

from typing import Any, Mapping

from ucm import daemon, protocol
from ucm.client import Connection, Gone

ANSWER_SECONDS = 5.0
START_SECONDS = 20.0


def ask(extra: Mapping[str, Any], name: str, text: str) -> int:
    """The bits of SETTINGS. Starts a daemon as a connector does.

    Raises OSError, Gone or ProtocolError when none answers, Refused when the configuration is bad.
    """
    path = daemon.socket_path(extra)
    try:
        connection = _connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        if not daemon.may_start(extra):
            raise
        missing = daemon.start(path, START_SECONDS)
        if missing is not None:
            raise Gone(missing) from None
        connection = _connect(path)
    try:
        body = protocol.configuration(name, text)
        answer = connection.ask(protocol.CONFIGURATION, body, protocol.SETTINGS, ANSWER_SECONDS)
        return protocol.read_settings(answer.body)
    finally:
        connection.close()


def _connect(path: str) -> Connection:
    return Connection(path, protocol.OBSERVER, "configuration", ANSWER_SECONDS)
