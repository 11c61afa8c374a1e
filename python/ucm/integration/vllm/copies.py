"""Threads that copy beside the engine's computation, and the order between the two."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Optional, Sequence

import torch

Fence = Callable[[], None]


def fence(device: Optional[torch.device]) -> Fence:
    """Waits, when it is called, for what the device was told to compute so far."""
    if device is None or device.type != "cuda":
        return lambda: None
    event = torch.cuda.Event()
    event.record()
    return event.synchronize  # type: ignore[no-any-return]


class Copier:
    """A thread that works one job after the other, on a CUDA stream of its own."""

    def __init__(self, name: str, device: Optional[torch.device]) -> None:
        self._device = device
        self._jobs: "queue.SimpleQueue[Optional[Callable[[], None]]]" = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, ready: Fence, job: Callable[[], None]) -> None:
        """Has a job done after a fence. The job handles its own failures."""

        def work() -> None:
            ready()
            job()

        self._jobs.put(work)

    def settle(self) -> None:
        """Waits until the copies that a job has queued on this thread's stream are done."""
        if self._device is not None and self._device.type == "cuda":
            torch.cuda.current_stream().synchronize()

    def _run(self) -> None:
        if self._device is not None and self._device.type == "cuda":
            torch.cuda.set_device(self._device)
            with torch.cuda.stream(torch.cuda.Stream()):
                self._work()
        else:
            self._work()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            job()

    def drain(self) -> None:
        """Waits for all jobs so far."""
        done = threading.Event()
        self._jobs.put(done.set)
        done.wait()

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join(30.0)


class LayerLoads:
    """The loads of a step that its computation waits for, layer by layer."""

    def __init__(self, loads: Sequence[Any], layers: int, copy: Callable[[Any, Sequence[int]], bool]):
        self.loads = loads
        self.since: float = min(load.since for load in loads)
        self.failed: "set[int]" = set()
        self.waited_for = 0
        self._layers = layers
        self._copy = copy
        self._loaded = 0
        self._changed = threading.Condition()

    def run(self, step: int, settle: Callable[[], None]) -> None:
        """Copies so many layers at a time."""
        for first in range(0, self._layers, step):
            wanted = range(first, min(first + step, self._layers))
            for load in self.loads:
                if load.hold not in self.failed and not self._copy(load, wanted):
                    self.failed.add(load.hold)
            settle()
            with self._changed:
                self._loaded = wanted.stop
                self._changed.notify_all()

    def wait(self, layers: int) -> None:
        """Returns when so many layers are loaded, or have failed."""
        self.waited_for = max(self.waited_for, layers)
        with self._changed:
            self._changed.wait_for(lambda: self._loaded >= layers)
