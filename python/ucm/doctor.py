"""``python3 -m ucm.doctor``: whether an engine of this environment can use UCM, and what is missing."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import os
import sys
from typing import Callable, Dict, List, NamedTuple, Optional

from ucm import __version__, daemon, protocol, settings
from ucm.client import Connection, Gone
from ucm.integration import stores
from ucm.protocol import ProtocolError, Refused

OK, WARNING, FAILED = "ok", "warning", "failed"


class Finding(NamedTuple):
    """What was looked at, how it is, what was found, and what to do."""

    subject: str
    state: str
    found: str
    advice: str = ""


def _python() -> Finding:
    found = f"Python {sys.version.split()[0]}, package ucm {__version__}"
    if sys.version_info < (3, 9):
        return Finding("python", FAILED, found, "use Python 3.9 or later")
    return Finding("python", OK, found)


def _installed(package: str) -> Optional[str]:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _engine() -> Finding:
    names = {"vllm": "vLLM", "sglang": "SGLang", "torch": "PyTorch"}
    versions = {name: _installed(package) for package, name in names.items()}
    torch = versions.pop("PyTorch")
    engines = [f"{name} {version}" for name, version in versions.items() if version is not None]
    if torch is None or not engines:
        missing = "torch" if torch is None else "neither vllm nor sglang"
        verb = "is not" if torch is None else "is"
        advice = "run this with the Python of the engine"
        return Finding("engine", WARNING, f"{missing} {verb} installed here", advice)
    return Finding("engine", OK, f"{', '.join(engines)}, PyTorch {torch}")


def _gpu() -> Finding:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Finding("gpu", OK, "no CUDA driver here: the worker copies KV blocks by itself")
    return Finding("gpu", OK, "a CUDA driver; the engine's log says who copies KV blocks")


def _memory() -> Finding:
    try:
        room = os.statvfs("/dev/shm")
    except OSError as error:
        return Finding("shared memory", FAILED, str(error), "mount a tmpfs at /dev/shm")
    free = room.f_bavail * room.f_frsize / (1 << 30)
    found = f"{free:.1f} GiB are free in /dev/shm"
    if free < 1:
        advice = "give the container more (--shm-size, or --ipc=host); the daemon's --staging must fit"
        return Finding("shared memory", WARNING, found, advice)
    return Finding("shared memory", OK, found)


def _daemon(path: str) -> Finding:
    if not os.path.exists(path):
        program = daemon.command()
        if program is None:
            advice = "start ucm serve, or set UCM_HOME to the runtime image so that the engine can"
            return Finding("daemon", FAILED, f"none at {path}, and no ucm to start", advice)
        return Finding("daemon", OK, f"none at {path}; the engine starts {program} serve")
    try:
        connection = Connection(path, protocol.OBSERVER, "doctor", 5.0)
        try:
            answer = connection.ask(protocol.STATUS, protocol.Writer(), protocol.STATUS_TEXT, 5.0)
        finally:
            connection.close()
        status = json.loads(protocol.Reader(answer.body).string())
    except (OSError, Gone, ProtocolError, Refused, ValueError) as error:
        advice = "it must run as this user; see the daemon's log"
        return Finding("daemon", FAILED, f"the one at {path} does not answer: {error}", advice)
    engines = [one["engine"] for one in status["engines"]]
    return Finding("daemon", OK, f"process {status['pid']} at {path}, engines: {engines or 'none'}")


def _configuration(path: str, file: str) -> Finding:
    """Asks a daemon that runs, as only the daemon reads configurations."""
    try:
        name, text = stores.configuration({"UCM_CONFIG_FILE": file}, {}, "")
        bits = settings.ask({"ucm_socket": path, "ucm_start_daemon": False}, name, text)
    except Refused as refused:
        return Finding("configuration", FAILED, str(refused), "correct the file: ucm config check FILE")
    except (OSError, Gone, ProtocolError) as error:
        advice = "start ucm serve to have it read, or use: ucm config check FILE"
        return Finding("configuration", WARNING, f"no daemon at {path} reads it: {error}", advice)
    mode = "layer by layer" if bits & protocol.LAYERWISE else "direct"
    return Finding("configuration", OK, f"{name}: the daemon reads it; loads and saves go {mode}")


def examine(path: str, config: Optional[str] = None) -> List[Finding]:
    """All checks."""
    checks: List[Callable[[], Finding]] = [_python, _engine, _gpu, _memory]
    findings = [check() for check in checks] + [_daemon(path)]
    return findings + ([_configuration(path, config)] if config else [])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m ucm.doctor", description=__doc__)
    parser.add_argument("--socket", help="the daemon's socket (default: as the connector)")
    parser.add_argument("--config", help="the YAML file of UCM_CONFIG_FILE, to be read by the daemon")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    asked = parser.parse_args()
    extra: Dict[str, str] = {"ucm_socket": asked.socket} if asked.socket else {}
    findings = examine(daemon.socket_path(extra), asked.config)
    if asked.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        for one in findings:
            print(f"{one.state:8s}{one.subject}: {one.found}" + (f"; {one.advice}" if one.advice else ""))
    return 1 if any(one.state == FAILED for one in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
