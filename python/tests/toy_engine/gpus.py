"""Tensors on a GPU, or in the memory of the simulated CUDA driver, which this process may touch itself."""

import ctypes
import math
import os

import torch

_OF_PROCESS = []


class SimulatedGpu:
    """The engine's end of the driver: a context that is current, and memory."""

    def __init__(self):
        assert os.environ.get("SIM_CUDA_DIRECT") == "1"
        self._lib = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        for result in (
            self._lib.cuInit(0),
            self._lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
            self._lib.cuCtxSetCurrent(context),
        ):
            assert result == 0, result
        self.context = context
        self._stream = None

    def make_current(self):
        """For threads that are not the engine's own."""
        assert self._lib.cuCtxSetCurrent(self.context) == 0

    def zeros(self, shape, dtype):
        size = math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
        address = ctypes.c_uint64()
        # Not at the start of the allocation, as a caching allocator gives tensors.
        assert self._lib.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size + 512)) == 0
        memory = (ctypes.c_uint8 * size).from_address(address.value + 512)
        return torch.frombuffer(memory, dtype=dtype, count=math.prod(shape)).view(shape)

    def copy(self, save, pieces):
        """Copies pieces, each an address on the device, one of the host and a length, and waits for it."""
        if self._stream is None:
            self._stream = ctypes.c_void_p()
            # CU_STREAM_NON_BLOCKING
            assert self._lib.cuStreamCreate(ctypes.byref(self._stream), 1) == 0
        for on_device, on_host, length in pieces:
            on_device, on_host, length = map(ctypes.c_uint64, (on_device, on_host, length))
            if save:
                result = self._lib.cuMemcpyDtoHAsync_v2(on_host, on_device, length, self._stream)
            else:
                result = self._lib.cuMemcpyHtoDAsync_v2(on_device, on_host, length, self._stream)
            assert result == 0, result
        assert self._lib.cuStreamSynchronize(self._stream) == 0


class TorchGpu:
    """PyTorch's current GPU."""

    def __init__(self):
        self._plain = None

    def zeros(self, shape, dtype):
        return torch.zeros(shape, dtype=dtype, device="cuda")

    def copy(self, save, pieces):
        """In their place, one plain copy of as many bytes in pinned memory; waits for it."""
        size = sum(length for _, _, length in pieces)
        if self._plain is None:
            host = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
            self._plain = host, self.zeros((size,), torch.uint8)
        host, device = self._plain
        if save:
            host.copy_(device)
        else:
            device.copy_(host)
        torch.cuda.synchronize()


def of_environment():
    """The GPU of this process: a real one for TOY_ENGINE_GPU, a simulated one for SIM_CUDA_DIRECT."""
    real = os.environ.get("TOY_ENGINE_GPU") == "1"
    if not real and os.environ.get("SIM_CUDA_DIRECT") != "1":
        return None
    if not _OF_PROCESS:
        _OF_PROCESS.append(TorchGpu() if real else SimulatedGpu())
    return _OF_PROCESS[0]
