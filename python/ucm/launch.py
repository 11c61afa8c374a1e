"""Starts a program that is nobody's descendant and has nothing of the process that wants it.

Run by itself, because a process with threads cannot safely do this: ``python3 -I -S launch.py PROGRAM
ARGUMENT...`` prints the process id of the program and ends. The program's output goes where the errors
of this one go. What may not be reset, for want of rights, stays as it is.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import List

# More processors than Linux can have; those that the cgroup does not allow are left out by it.
_PROCESSORS = range(1 << 13)
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}


def _reset_scheduling() -> None:
    """All processors that the cgroup allows, and the usual policy, priority and place of memory."""
    with suppress(OSError):
        os.sched_setaffinity(0, _PROCESSORS)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    number = _SET_MEMPOLICY.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, 0, None, 0)


def _reset_oom_score() -> None:
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("0")


def _reset_signals() -> None:
    for number in signal.valid_signals():
        with suppress(OSError):  # Those that cannot be handled.
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def main(command: List[str]) -> None:
    os.setsid()
    _reset_scheduling()
    _reset_oom_score()
    _reset_signals()
    pid = os.fork()
    if pid != 0:
        print(pid)
        return
    os.dup2(2, 1)
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
