"""What an engine of a pod asks of the daemon: stores chunks of its memory, or finds them again.

Prints as JSON how many were moved, whether all bytes are right, who moved them, and what was logged.
"""

import json
import logging
import mmap
import os
import random
import sys

from ucm import protocol
from ucm.chunks import Chunks

CONFIG = "/etc/ucm/ucm.yaml"
COUNT, SIZE = 8, 1 << 20


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def engine():
    with open(CONFIG, encoding="utf-8") as file:
        return protocol.Engine("pod", 0, "m", "torch.bfloat16", 1, False, 64, 1, CONFIG, file.read())


def main(stores):
    fd = os.open(f"/dev/shm/engine-{os.getpid()}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.ftruncate(fd, COUNT * SIZE)
    memory = mmap.mmap(fd, COUNT * SIZE)
    os.unlink(f"/dev/shm/engine-{os.getpid()}")
    expected = random.Random(1).randbytes(COUNT * SIZE)
    log, lines = logging.getLogger("ucm"), Lines()
    log.addHandler(lines)
    log.propagate = False
    log.setLevel(logging.INFO)
    extra = {"ucm_start_daemon": False}
    chunks = Chunks(extra, "pod", engine, memoryview(memory).cast("B", (COUNT, SIZE)), log)
    chunks.start()
    ids = [bytes([number]) * 16 for number in range(COUNT)]
    if stores:
        memory[:] = expected
        moved = chunks.store(ids, range(COUNT))
    else:
        moved = chunks.load(ids, range(COUNT))
    said = {"moved": sum(moved), "right": memory[:] == expected, "log": lines.lines}
    said["by"] = "slots" if any("through the daemon's slots" in line for line in lines.lines) else "daemon"
    print(json.dumps(said))
    chunks.close()


main(sys.argv[1] == "store")
