"""The worker side: copies between the engine's KV blocks and the slots shared with the daemon.

Loads that the engine does not wait for are copied by one thread of this worker; everything else by
the worker's main thread. Saves are in their slots when `wait_for_save` returns, so that the engine
may use its blocks again at once.
"""

from __future__ import annotations

import queue
import threading
from bisect import bisect_right
from typing import Any, Dict, List, Optional, Sequence, Set

import torch

from ucm import protocol
from ucm.client import Connection, Gone, Link
from ucm.integration.vllm import compat, engine
from ucm.integration.vllm.metadata import Load, UCMConnectorMetadata, unpack
from ucm.layout import KvLayout, LayoutError, find, layer_number
from ucm.protocol import ProtocolError
from ucm.staging import Staging

REGISTER_SECONDS = 60.0
_KEPT_GENERATIONS = 2


class WorkerSide:
    """One for each rank."""

    def __init__(self, vllm_config: Any, kv_cache_config: Any) -> None:
        self._log = compat.logger("ucm")
        self._config = vllm_config
        self._extra = engine.extra_config(vllm_config)
        self._layerwise = engine.is_layerwise(self._extra)
        self._features = compat.features()
        self._rank = compat.tp_rank(vllm_config.parallel_config)
        self._saves = self._rank == 0 or not compat.is_mla(vllm_config.model_config)
        self._kv_cache_config = kv_cache_config
        self._refusal = compat.refusal(vllm_config, kv_cache_config)
        self._link: Optional[Link] = None
        self._layout: Optional[KvLayout] = None
        self._layers: Dict[str, int] = {}
        self._through: Dict[str, int] = {}
        self._lock = threading.Lock()
        self._staging: Dict[int, Staging] = {}
        self._loading: Dict[str, bool] = {}
        self._received: Set[str] = set()
        self._sent: Set[str] = set()
        self._errors: Set[int] = set()
        self._work: "queue.SimpleQueue[Optional[Load]]" = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self._meta: Optional[UCMConnectorMetadata] = None
        self._step_failed = False
        self._hooks_come = False
        self._failed_loads: Set[int] = set()
        self._loaded_layers: Set[int] = set()
        self._saved_layers: Set[int] = set()

    def register(self, kv_caches: Dict[str, Any]) -> None:
        """The engine has allocated its KV cache."""
        if self._refusal is not None:
            return
        blocks = getattr(self._kv_cache_config, "num_blocks", None)
        blocks = blocks or self._config.cache_config.num_gpu_blocks
        try:
            self._layout = find(kv_caches, int(blocks), compat.is_mla(self._config.model_config))
        except LayoutError as error:
            self._log.warning("UCM: %s, so nothing is found or saved", error)
            return
        self._layers = {layer.name: i for i, layer in enumerate(self._layout.layers)}
        # Tensors without a hook of their own, such as those of an index, go with their layer.
        numbers = [layer_number(layer.name) for layer in self._layout.layers]
        self._through = {name: bisect_right(numbers, numbers[i]) for name, i in self._layers.items()}
        self._link = Link(
            self._extra, protocol.WORKER, f"worker-{self._rank}", self._open, self._log
        )
        self._link.start(REGISTER_SECONDS)

    def _open(self, connection: Connection) -> None:
        assert self._layout is not None
        body = protocol.open_worker(
            engine.describe(self._config),
            self._rank,
            self._layout.tensor_bytes,
            compat.layout_text(self._config, self._layout),
        )
        answer = connection.ask(protocol.OPEN_WORKER, body, protocol.OPENED_WORKER, 120.0)
        staging = Staging(protocol.read_opened(answer.body))
        connection.generation = staging.generation
        with self._lock:
            self._staging.pop(staging.generation, None)
            self._staging[staging.generation] = staging
            while len(self._staging) > _KEPT_GENERATIONS:
                del self._staging[next(iter(self._staging))]

    # -- a step ------------------------------------------------------------------------------------

    def start_load(self, meta: UCMConnectorMetadata) -> None:
        """Before the forward pass: loads, and what became of requests that ended."""
        self._meta = meta
        self._step_failed = False
        self._failed_loads = set()
        self._loaded_layers.clear()
        self._saved_layers.clear()
        for request_id in meta.delayed:
            self._report_as_sent(request_id)
        for load in meta.loads:
            if load.asynchronous:
                with self._lock:
                    self._loading[load.request_id] = False
                self._begin()
                self._work.put(load)
        if not self._layerwise or not self._hooks_come:
            self._load_layers(range(len(self._layers)))

    def wait_for_layer_load(self, name: str) -> None:
        if self._meta is not None and self._layerwise and name in self._layers:
            self._hooks_come = True
            self._load_layers(range(self._through[name]))

    def _load_layers(self, wanted: Any) -> None:
        layers = [layer for layer in wanted if layer not in self._loaded_layers]
        loads = [load for load in self._meta.loads if not load.asynchronous] if self._meta else []
        if not layers or not loads:
            return
        self._loaded_layers.update(layers)
        done = len(self._loaded_layers) == len(self._layers)
        for load in loads:
            if load.hold in self._failed_loads:
                continue
            if not self._copy_in(load, layers):
                self._failed_loads.add(load.hold)
                self._step_failed = True
                self._add_errors(load)
        if done:
            self._send_loaded(loads, self._failed_loads)

    def _copy_in(self, load: Load, layers: Any) -> bool:
        with self._lock:
            staging = self._staging.get(load.generation)
        if staging is None or self._layout is None:
            return False
        staging.load(self._layout, layers, unpack(load.slots), unpack(load.blocks))
        return True

    def _add_errors(self, load: Load) -> None:
        with self._lock:
            self._errors.update(unpack(load.blocks))

    def save_layer(self, name: str) -> None:
        if self._meta is not None and self._layerwise and name in self._layers:
            self._save_layers([self._layers[name]])

    def _save_layers(self, wanted: Any) -> None:
        layers = [layer for layer in wanted if layer not in self._saved_layers]
        if not layers or self._meta is None or not self._meta.saves or not self._saves:
            return
        self._saved_layers.update(layers)
        if self._step_failed or self._layout is None:
            return
        for save in self._meta.saves:
            with self._lock:
                staging = self._staging.get(save.generation)
            if staging is not None:
                staging.save(self._layout, layers, unpack(save.slots), unpack(save.blocks))

    def wait_for_save(self) -> None:
        """After the forward pass: the step's saves are in their slots when this returns."""
        self._require_loaded()
        if self._meta is None or not self._meta.saves or not self._saves:
            return
        self._save_layers(range(len(self._layers)))
        with self._lock:
            known = set(self._staging)
        for generation, saves in _by_generation(self._meta.saves).items():
            good = [
                save.save
                for save in saves
                if save.blocks and generation in known and not self._step_failed
            ]
            rest = [save.save for save in saves if save.save not in good]
            self._send(protocol.SAVED, generation, good, rest)

    def _require_loaded(self) -> None:
        """Layers whose hook was not called were computed from what was in the blocks before."""
        loads = [load for load in self._meta.loads if not load.asynchronous] if self._meta else []
        if loads and len(self._loaded_layers) < len(self._layers):
            self._step_failed = True
            for load in loads:
                self._add_errors(load)
            self._send_loaded(loads, {load.hold for load in loads})

    def end_step(self) -> None:
        self._meta = None

    # -- loads that the engine does not wait for ---------------------------------------------------

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ucm-load", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        device = self._device()
        if device is not None and device.type == "cuda":
            torch.cuda.set_device(device)
        while True:
            load = self._work.get()
            if load is None:
                return
            try:
                well = self._copy_in(load, range(len(self._layers)))
                if well and device is not None and device.type == "cuda":
                    torch.cuda.current_stream().synchronize()
            except Exception:  # The engine must learn of it whatever it was.
                self._log.exception("UCM: request %s could not be loaded", load.request_id)
                well = False
            self._send_loaded([load], set() if well else {load.hold})
            with self._lock:
                if not well:
                    self._errors.update(unpack(load.blocks))
                aborted = self._loading.pop(load.request_id, False)
                (self._sent if aborted else self._received).add(load.request_id)

    def _device(self) -> Optional[torch.device]:
        return self._layout.layers[0].pieces[0].device if self._layout is not None else None

    def _report_as_sent(self, request_id: str) -> None:
        """The blocks of an aborted request are kept until its load has ended."""
        with self._lock:
            if request_id in self._loading:
                self._loading[request_id] = True
            else:
                self._received.discard(request_id)
                self._sent.add(request_id)

    def take_finished(self) -> "tuple[Optional[Set[str]], Optional[Set[str]]]":
        """Ids of requests whose blocks may be freed, and of those whose load has ended."""
        with self._lock:
            sent, received = self._sent, self._received
            self._sent, self._received = set(), set()
        return sent or None, received or None

    def take_errors(self) -> Set[int]:
        """The engine's blocks that could not be loaded."""
        with self._lock:
            errors, self._errors = self._errors, set()
        return errors

    def _send_loaded(self, loads: Sequence[Load], failed: Set[int]) -> None:
        for generation, group in _by_generation(loads).items():
            holds = [load.hold for load in group]
            self._send(
                protocol.LOADED,
                generation,
                [hold for hold in holds if hold not in failed],
                [hold for hold in holds if hold in failed],
            )

    def _send(self, kind: int, generation: int, well: List[int], failed: List[int]) -> None:
        link = self._link
        if link is None:
            return
        try:
            connection = link.get()
        except Gone:
            return
        if connection.generation != generation:
            # The numbers are of a session that has ended, and this one may have given them again.
            # That something failed is told all the same: hold 0 is never given.
            if kind != protocol.LOADED or not failed:
                return
            well, failed = [], [0]
        try:
            connection.send(kind, protocol.Writer().u64s(well).u64s(failed), answered=False)
        except (OSError, Gone, ProtocolError) as error:
            link.lost(connection, error)

    def close(self) -> None:
        self._work.put(None)
        if self._thread is not None:
            self._thread.join(5.0)
        if self._link is not None:
            self._link.close()


def _by_generation(items: Sequence[Any]) -> Dict[int, List[Any]]:
    found: Dict[int, List[Any]] = {}
    for item in items:
        found.setdefault(item.generation, []).append(item)
    return found
