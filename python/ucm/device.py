"""The device plane: the daemon copies between the slots and KV tensors that it has opened by CUDA IPC."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import secrets
import select
import signal
import threading
from concurrent.futures import Future
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import torch

from ucm import protocol
from ucm.client import Connection, Gone
from ucm.layout import KvLayout
from ucm.protocol import ProtocolError, Writer

# A daemon that does not end a copy within this time hangs.
COPY_SECONDS = 20.0
# A process that dies closes its sockets some time before the GPU leaves it.
EXIT_SECONDS = 0.2
PROBE_BYTES = 256
_HANDLE_BYTES = 64
_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


class NoDevicePlane(Exception):
    """The KV tensors cannot be handed to another process; says why."""


class Tensor(NamedTuple):
    """Block b of a tensor begins at offset + b * stride of an allocation."""

    allocation: int
    offset: int
    stride: int


class Exported(NamedTuple):
    """What the daemon needs to know to copy by itself; `probe_at` is an allocation and an offset."""

    uuid: str
    allocations: List[Tuple[bytes, int]]
    blocks: int
    layers: List[List[Tensor]]
    probe: torch.Tensor
    probe_at: Tuple[int, int]


class _Driver:
    """The few calls of the CUDA driver that are needed, within the context that the engine has made."""

    def __init__(self, address: int) -> None:
        try:
            self._lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoDevicePlane(f"the CUDA driver is not there: {error}") from None
        self.call("cuInit", 0)
        self._device = ctypes.c_int()
        self.call(
            "cuPointerGetAttribute",
            ctypes.byref(self._device),
            _DEVICE_ORDINAL,
            ctypes.c_uint64(address),
        )

    def __enter__(self) -> _Driver:
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self.call("cuCtxPushCurrent_v2", context)
        return self

    def __exit__(self, *_: Any) -> None:
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        self.call("cuDevicePrimaryCtxRelease_v2", self._device)

    def call(self, name: str, *arguments: Any) -> None:
        result = getattr(self._lib, name)(*arguments)
        if result != 0:
            raise NoDevicePlane(f"{name} answered {result}")

    def uuid(self) -> str:
        text = ctypes.create_string_buffer(16)
        self.call("cuDeviceGetUuid", text, self._device)
        return text.raw.hex()

    def allocation(self, address: int) -> Tuple[int, int]:
        """Start and size of the allocation that an address is in."""
        start, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.call(
            "cuMemGetAddressRange_v2",
            ctypes.byref(start),
            ctypes.byref(size),
            ctypes.c_uint64(address),
        )
        return start.value, size.value

    def handle(self, start: int) -> bytes:
        handle = ctypes.create_string_buffer(_HANDLE_BYTES)
        self.call("cuIpcGetMemHandle", handle, ctypes.c_uint64(start))
        return handle.raw


def new_probe(device: torch.device) -> torch.Tensor:
    """Memory of the kind that KV tensors lie in."""
    return torch.zeros(PROBE_BYTES, dtype=torch.uint8, device=device)


def export(layout: KvLayout) -> Exported:
    """Exports the allocations that a KV cache lies in."""
    first = layout.layers[0].pieces[0]
    with _Driver(first.data_ptr()) as driver:
        return _export(driver, layout, new_probe(first.device))


def _export(driver: _Driver, layout: KvLayout, probe: torch.Tensor) -> Exported:
    starts: Dict[int, int] = {}
    allocations: List[Tuple[bytes, int]] = []

    def place(address: int) -> Tuple[int, int]:
        start, size = driver.allocation(address)
        if start not in starts:
            starts[start] = len(allocations)
            allocations.append((driver.handle(start), size))
        return starts[start], address - start

    layers = []
    for layer in layout.layers:
        tensors = []
        for piece, offset in _tensors(layer.name, layer.pieces, layer.tensor_bytes):
            allocation, at = place(piece.data_ptr() + offset)
            tensors.append(Tensor(allocation, at, int(piece.stride(0))))
        layers.append(tensors)
    blocks = int(layout.layers[0].pieces[0].shape[0])
    return Exported(driver.uuid(), allocations, blocks, layers, probe, place(probe.data_ptr()))


def _tensors(
    name: str, pieces: Sequence[torch.Tensor], tensor_bytes: Sequence[int]
) -> List[Tuple[torch.Tensor, int]]:
    """For each tensor of a layer, the piece that it lies in, and where."""
    found = []
    number, offset = 0, 0
    for size in tensor_bytes:
        if number < len(pieces) and offset == pieces[number].shape[1]:
            number, offset = number + 1, 0
        if number == len(pieces) or offset + size > pieces[number].shape[1]:
            raise NoDevicePlane(f"a block of layer {name} lies in {len(pieces)} pieces of memory")
        found.append((pieces[number], offset))
        offset += size
    return found


def write_probe(exported: Exported) -> bytes:
    """Writes what the daemon must find."""
    written = secrets.token_bytes(PROBE_BYTES)
    exported.probe.copy_(torch.frombuffer(bytearray(written), dtype=torch.uint8))
    if exported.probe.is_cuda:
        torch.cuda.synchronize(exported.probe.device)
    return written


def is_answered(exported: Exported, written: bytes) -> bool:
    """Whether the daemon has written the opposite."""
    return bytes(exported.probe.cpu().tolist()) == bytes(byte ^ 0xFF for byte in written)


def write(to: Writer, exported: Exported, written: bytes) -> None:
    """The fields of OPEN_WORKER."""
    to.string(exported.uuid).u32(len(exported.allocations))
    for handle, size in exported.allocations:
        to.raw(handle).u64(size)
    to.u32(exported.blocks)
    for layer in exported.layers:
        for tensor in layer:
            to.u32(tensor.allocation).u64(tensor.offset).u64(tensor.stride)
    to.u32(exported.probe_at[0]).u64(exported.probe_at[1]).raw(written)


def message(save: bool, layers: Sequence[int], slots: List[int], blocks: List[int]) -> Writer:
    """COPY."""
    body = Writer().u8(1 if save else 0).u32(layers[0]).u32(len(layers))
    return body.u32s(slots).u32s(blocks)


def read_copied(body: bytes) -> str:
    """COPIED: why something was not copied, else an empty text."""
    return protocol.Reader(body).string()


class Copies:
    """Copies that the daemon makes for one connection. Thread-safe."""

    def __init__(self, connection: Connection, pidfd: int, log: logging.Logger) -> None:
        connection.lingers = True
        self._connection = connection
        self._log = log
        self._lock = threading.Lock()
        self._waiting: Dict[int, "Future[str]"] = {}
        self._pidfd = pidfd
        self._over = False
        self._ended = threading.Event()
        threading.Thread(target=self._receive, name="ucm-copies", daemon=True).start()

    def copy(self, save: bool, layers: Sequence[int], slots: List[int], blocks: List[int]) -> bool:
        """Has blocks copied, and waits for it; the layers follow one another.

        False when that was not possible; then the daemon does not touch the engine's memory.
        """
        body = message(save, layers, slots, blocks)
        try:
            with self._lock:
                if self._over:
                    return False
                answer: "Future[str]" = Future()
                self._waiting[self._connection.send(protocol.COPY, body)] = answer
            error = answer.result(COPY_SECONDS)
        except Exception as problem:  # A time-out has another class in each Python.
            error = str(problem) or f"it did not answer within {COPY_SECONDS:g} s"
            self._end()
        if error:
            self._over = True
            self._log.warning("UCM: the daemon does not copy, the worker does: %s", error)
        return not error

    def _receive(self) -> None:
        error: Exception = Gone()
        try:
            while True:
                frame = self._connection.poll(1.0)
                if frame is None:
                    continue
                with self._lock:
                    answer = self._waiting.pop(frame.sequence, None)
                if answer is not None:
                    well = frame.kind == protocol.COPIED
                    answer.set_result(read_copied(frame.body) if well else "it refuses")
        except (OSError, ValueError, Gone, ProtocolError) as problem:
            error = problem
        with self._lock:
            self._over = True
            waiting, self._waiting = list(self._waiting.values()), {}
        self._await_exit()
        for answer in waiting:
            answer.set_exception(Gone(str(error)))
        self._ended.set()

    def _await_exit(self) -> None:
        """After the end of the connection: the daemon has ended its copies, or is dying."""
        exited = select.poll()
        exited.register(self._pidfd, select.POLLIN)
        exited.poll(1000 * EXIT_SECONDS)
        os.close(self._pidfd)
        self._connection.release()

    def _end(self) -> None:
        """Returns when the daemon does not touch the engine's memory any more."""
        self._connection.close()
        if not self._ended.wait(COPY_SECONDS):
            self._log.error("UCM: the daemon hangs in a copy, and is ended")
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            self._ended.wait()
