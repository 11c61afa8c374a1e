"""In which generation an engine's blocks are: a new one begins when it disowns what was stored."""

from __future__ import annotations

import logging
import uuid

from ucm import protocol
from ucm.client import Connection, Gone, Link
from ucm.protocol import Identity, ProtocolError, Refused, Writer

RESET_SECONDS = 5.0


class Generation:
    """Of one engine; kept here, so that a daemon that was restarted learns of it."""

    def __init__(self, launch: str, log: logging.Logger) -> None:
        self._launch = launch
        self._log = log
        self._name = ""
        # Whether engines that start later are told as well.
        self._told = True

    def identify(self, connection: Connection) -> None:
        """Before a scheduler side is opened."""
        said = Identity(self._launch, generation=self._name).write(Writer())
        connection.send(protocol.IDENTIFY, said, answered=False)

    def opened(self, connection: Connection) -> None:
        """After it was."""
        if not self._told:
            self._tell(connection)

    def begin(self, link: Link) -> None:
        """Nothing that was stored is found from now on, also if no daemon hears of it now."""
        self._told, self._name = False, uuid.uuid4().hex
        try:
            connection = link.get()
        except Gone:
            return
        try:
            self._tell(connection)
        except (OSError, Gone, ProtocolError) as error:
            # The next connection tells it.
            link.lost(connection, error)

    def _tell(self, connection: Connection) -> None:
        name = self._name
        try:
            connection.ask(protocol.RESET, Writer().string(name), protocol.DONE, RESET_SECONDS)
        except Refused as refusal:
            self._log.warning("UCM: %s", refusal)
        self._told = self._name == name
