"""Lets SGLang's HiCache run on a CPU. Python imports it in each process of an engine.

SGLang 0.5.23 runs models on a CPU, but not its hierarchical cache. Four things are other ones here, and all
else is SGLang's own: streams and events (a CPU has done everything at once), host memory (not pinned), the
copies between the host pool and the pool of the device (with PyTorch in place of kernels), and where
attention looks for the tokens of a sliding window.
"""

import importlib.abc
import importlib.util
import os
import sys
import time
import types


def _streams(torch_cpu):
    class Event:
        def __init__(self, *arguments, **named):
            self.record()

        def record(self, *stream):
            self.time = time.time()

        def query(self):
            return True

        def wait(self, *stream):
            pass

        def synchronize(self):
            pass

        def elapsed_time(self, other):
            return 1000 * (other.time - self.time)

    class Stream:
        device = None

        def __init__(self, *arguments, **named):
            pass

        def wait_event(self, event):
            pass

        def wait_stream(self, stream):
            pass

        def synchronize(self):
            pass

        def query(self):
            return True

        def record_event(self, event=None):
            return event or Event()

    class Context:
        def __init__(self, *stream):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

    current = Stream()
    torch_cpu.Event, torch_cpu.Stream = Event, Stream
    torch_cpu.current_stream = lambda *device: current
    torch_cpu.stream = torch_cpu.StreamContext = Context


def _memory(base):
    made = base.HostKVCache.__init__

    def make(self, *arguments, **named):
        made(self, *arguments, **{**named, "pin_memory": False})

    base.HostKVCache.__init__ = make
    # SGLang leaves 10 GiB to others, more than a small machine has.
    base.HICACHE_HOST_MEMORY_RESERVE_BYTES = 1 << 30


def _at(pool, layer, tokens):
    """Where tokens of a layer are in a buffer of the host pool."""
    page = pool.page_size
    return {
        "layer_first": (layer, tokens),
        "page_first": (tokens, layer),
        "page_first_direct": (tokens // page, layer, tokens % page),
        "page_head": (tokens // page, slice(None), tokens % page, layer),
    }[pool.layout]


def _copies_of_heads(mha):
    def buffers(pool, layer):
        return (
            (pool.k_buffer, pool.device_k_buffers[layer]),
            (pool.v_buffer, pool.device_v_buffers[layer]),
        )

    def load(self, device_pool, host_indices, device_indices, layer_id, io_backend, *, is_draft=False):
        if is_draft or 0 <= layer_id < self.target_layer_num:
            for host, device in buffers(self, layer_id):
                found = host[_at(self, layer_id, host_indices.cpu())]
                device[device_indices.cpu()] = found.view(-1, *device.shape[1:])

    def backup(self, device_pool, host_indices, device_indices, io_backend):
        for layer in range(self.layer_num):
            for host, device in buffers(self, layer):
                host[_at(self, layer, host_indices.cpu())] = device[device_indices.cpu()]

    mha.MHATokenToKVPoolHost.load_to_device_per_layer = load
    mha.MHATokenToKVPoolHost.backup_from_device_all_layer = backup


def _copies_of_latents(mla):
    def load(self, device_pool, host_indices, device_indices, layer_id, io_backend, *, is_draft=False):
        if is_draft or layer_id in self._target_layer_indices:
            layer = self._host_layer_by_controller[layer_id]
            device = self.device_kv_buffers[self._buffer_index_by_layer[layer_id]]
            found = self.kv_buffer[_at(self, layer, host_indices.cpu())]
            device[device_indices.cpu()] = found.view(-1, *device.shape[1:])

    def backup(self, device_pool, host_indices, device_indices, io_backend):
        for layer in range(self.layer_num):
            found = self.device_kv_buffers[layer][device_indices.cpu()]
            self.kv_buffer[_at(self, layer, host_indices.cpu())] = found.view(len(found), 1, -1)

    mla.MLATokenToKVPoolHost.load_to_device_per_layer = load
    mla.MLATokenToKVPoolHost.backup_from_device_all_layer = backup


def _windows(native):
    """SGLang's attention on a CPU writes keys of a window where they belong, and reads them elsewhere."""

    def translated(forward):
        def run(self, q, k, v, layer, *arguments, **named):
            pool = self.token_to_kv_pool
            if not self.use_sliding_window_kv_pool or not pool.layers_mapping[layer.layer_id][1]:
                return forward(self, q, k, v, layer, *arguments, **named)
            whole = self.req_to_token_pool
            places = pool.translate_loc_from_full_to_swa(whole.req_to_token.long())
            self.req_to_token_pool = types.SimpleNamespace(req_to_token=places)
            try:
                return forward(self, q, k, v, layer, *arguments, **named)
            finally:
                self.req_to_token_pool = whole

        return run

    backend = native.TorchNativeAttnBackend
    backend.forward_extend = translated(backend.forward_extend)
    backend.forward_decode = translated(backend.forward_decode)


def _known_models(auto):
    """Versions of SGLang that are older than the libraries bring models which these have got meanwhile."""
    register = auto.CONFIG_MAPPING.register
    auto.CONFIG_MAPPING.register = lambda key, value, exist_ok=False: register(key, value, exist_ok=True)


_CHANGES = {
    "torch.cpu": _streams,
    "sglang.srt.mem_cache.pool_host.base": _memory,
    "sglang.srt.mem_cache.pool_host.mha": _copies_of_heads,
    "sglang.srt.mem_cache.pool_host.mla": _copies_of_latents,
    "sglang.srt.layers.attention.torch_native_backend": _windows,
}


class _Finder(importlib.abc.MetaPathFinder):
    """Changes modules when they have been imported."""

    def __init__(self):
        self._open = set()

    def find_spec(self, name, path, target=None):
        if name not in _CHANGES or name in self._open:
            return None
        self._open.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._open.discard(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_change(module):
                run(module)
                _CHANGES[name](module)

            spec.loader.exec_module = run_and_change
        return spec


if os.environ.get("UCM_SGLANG_CLASSES") == "1":
    # Of an older version there are only classes, as they are.
    _CHANGES.clear()
    _CHANGES["transformers.models.auto.configuration_auto"] = _known_models
if os.environ.get("SGLANG_USE_CPU_ENGINE") == "1":
    sys.meta_path.insert(0, _Finder())
