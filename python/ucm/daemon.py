"""Where the daemon's socket is, and how one is started when none answers."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import time
from typing import Any, Dict, Mapping, Optional, Tuple

from ucm import image

IDLE_EXIT_SECONDS = 300
LAUNCH_SECONDS = 30.0
_LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")
# Variables that an engine sets for itself. The daemon serves others as well, on all GPUs.
_OF_ENGINES = (
    "CUDA_VISIBLE_DEVICES",
    "GLOO_",
    "GOMP_",
    "HF_",
    "KMP_",
    "LD_PRELOAD",
    "MALLOC_",
    "MKL_",
    "NCCL_",
    "OMP_",
    "OPENBLAS_",
    "PYTHON",
    "PYTORCH_",
    "RAY_",
    "SGLANG_",
    "TORCH",
    "TRITON_",
    "VLLM_",
)


def socket_path(extra: Mapping[str, Any]) -> str:
    """The socket: ``ucm_socket`` of the extra configuration, UCM_SOCKET, or a directory of the user."""
    named = extra.get("ucm_socket") or os.environ.get("UCM_SOCKET")
    if named:
        return str(named)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = os.path.join(runtime, "ucm") if runtime else f"/tmp/ucm-{os.getuid()}"
    return os.path.join(folder, "ucm.sock")


def may_start(extra: Mapping[str, Any]) -> bool:
    """Whether a daemon is started where none answers: ``ucm_start_daemon``, which some write as text."""
    return str(extra.get("ucm_start_daemon", True)).lower() not in ("false", "0", "no", "off")


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


def identity(socket: str) -> Optional[Tuple[int, int]]:
    """What tells a daemon's socket from that of the one before it; None where there is none."""
    try:
        found = os.stat(socket)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


def command() -> Optional[str]:
    """The program ``ucm``: of UCM_HOME, else of PATH, else of the image that came with this package."""
    return image.of_home() or shutil.which("ucm") or image.carried()


def start(socket: str, wait_seconds: float) -> Optional[str]:
    """Starts a daemon unless another process of this node does so; it outlives this one.

    Returns None when a socket is there afterwards, else what is missing.
    """
    program = command()
    if program is None:
        return "there is no program ucm: install the wheel that has it, or set UCM_HOME to the unpacked image"
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
        return _launch(program, socket, deadline)
    finally:
        os.close(fd)


def _launch(program: str, socket: str, deadline: float) -> Optional[str]:
    """Starts the daemon as nobody's descendant: an engine ends all of its own when it ends."""
    where = socket + ".log"
    serve = [program, "serve", "--socket", socket, "--idle-exit", str(IDLE_EXIT_SECONDS)]
    serve += ["--log", where]
    with open(where, "ab") as log:
        try:
            launched = subprocess.run(
                [sys.executable, "-I", "-S", _LAUNCHER, *serve],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(),
                timeout=LAUNCH_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return f"ucm serve could not be started ({error}): see {where}"
    pid = int(launched.stdout)
    while time.monotonic() < deadline:
        if os.path.exists(socket) and _answers(socket):
            return None
        if not _runs(pid):
            return f"ucm serve ended at once ({_last_line(where)}): see {where}"
        time.sleep(0.02)
    return f"ucm serve does not answer yet: see {where}"


def _environment() -> Dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith(_OF_ENGINES)}


def _runs(pid: int) -> bool:
    """Whether a process has not ended, whoever is to learn how it ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            # The name of the program, in parentheses, may have any characters.
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def _last_line(path: str) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 1000))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _answers(path: str) -> bool:
    import socket as sockets

    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
            return True
        except OSError:
            return False
