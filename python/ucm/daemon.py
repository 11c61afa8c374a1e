"""Where the daemon's socket is, and how one is started when none answers."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import time
from typing import Any, Mapping, Optional

IDLE_EXIT_SECONDS = 300


def socket_path(extra: Mapping[str, Any]) -> str:
    """The socket: ``ucm_socket`` of the extra configuration, UCM_SOCKET, or a directory of the user."""
    named = extra.get("ucm_socket") or os.environ.get("UCM_SOCKET")
    if named:
        return str(named)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = os.path.join(runtime, "ucm") if runtime else f"/tmp/ucm-{os.getuid()}"
    return os.path.join(folder, "ucm.sock")


def token_path(socket: str) -> str:
    """Where the daemon's token lies."""
    stem = socket[: -len(".sock")] if socket.endswith(".sock") else socket
    return stem + ".token"


def read_token(socket: str) -> bytes:
    """The token; refuses one that is not this user's."""
    fd = os.open(token_path(socket), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        found = os.fstat(fd)
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{token_path(socket)} must belong to this user alone (mode 0600)")
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def command() -> Optional[str]:
    """The program ``ucm``: of UCM_HOME, else of PATH."""
    home = os.environ.get("UCM_HOME")
    if home:
        for path in (os.path.join(home, "bin", "ucm"), os.path.join(home, "ucm")):
            if os.access(path, os.X_OK):
                return path
    return shutil.which("ucm")


def start(socket: str, wait_seconds: float) -> Optional[str]:
    """Starts a daemon unless another process of this node does so.

    Returns None when a socket is there afterwards, else what is missing.
    """
    program = command()
    if program is None:
        return "there is no program ucm: set UCM_HOME to the unpacked image, or start `ucm serve`"
    folder = os.path.dirname(os.path.abspath(socket))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    deadline = time.monotonic() + wait_seconds
    fd = os.open(socket + ".start", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return "another process starts a daemon and is not done"
                time.sleep(0.05)
        if os.path.exists(socket) and _answers(socket):
            return None
        with open(socket + ".log", "ab") as log:
            process = subprocess.Popen(
                [program, "serve", "--socket", socket, "--idle-exit", str(IDLE_EXIT_SECONDS)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                close_fds=True,
            )
        while time.monotonic() < deadline:
            if os.path.exists(socket) and _answers(socket):
                return None
            if process.poll() is not None:
                return f"ucm serve ended with {process.returncode}: see {socket}.log"
            time.sleep(0.02)
        return f"ucm serve does not answer yet: see {socket}.log"
    finally:
        os.close(fd)


def _answers(path: str) -> bool:
    import socket as sockets

    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
            return True
        except OSError:
            return False
