"""The worker side: has the engine's KV blocks copied into and out of the slots shared with the daemon.

The daemon copies where it can open the KV tensors, else a thread of this worker does. Loads that the
engine does not wait for and saves are made beside its computation. Blocks that are still to be read
are not given to another request: the scheduler keeps those of a request that has ended until
`take_finished` names it, and `await_saves` comes before those of a preempted request are used.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import Counter
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

import torch

from ucm import device, protocol
from ucm.client import Connection, Gone, Link
from ucm.integration.vllm import compat, engine, events, identity
from ucm.integration.vllm.copies import Copier, Fence, LayerLoads, fence
from ucm.integration.vllm.metadata import Load, Save, UCMConnectorMetadata, unpack
from ucm.layout import KvLayout, LayoutError, find_groups, layer_number
from ucm.protocol import Engine, Identity, ProtocolError, Refused
from ucm.segment import COPY_SECONDS
from ucm.staging import Staging

REGISTER_SECONDS = 60.0
END_SECONDS = 2.0
# How long a step that computes nothing waits for the end of a copy.
EMPTY_STEP_SECONDS = 0.005
_KEPT_GENERATIONS = 2


class WorkerSide:
    """One for each rank."""

    def __init__(self, vllm_config: Any, kv_cache_config: Any) -> None:
        self._log = compat.logger()
        self._config = vllm_config
        self._kv_cache_config = kv_cache_config
        self._served = False
        # As the daemon says when it is there.
        self.layerwise = True
        self._saves_beside = False
        # Of a hybrid model's KV cache groups.
        self._rules: List[protocol.Rule] = []
        self._saves = False
        self._rank = 0
        self._stages = 1
        self._stage = 0
        self._extra: Dict[str, Any] = {}
        self._plane = "auto"
        self._engine: Optional[Engine] = None
        self._link: Optional[Link] = None
        self._layout: Optional[KvLayout] = None
        self._identity = Identity()
        self._layers: Dict[str, int] = {}
        self._through: Dict[str, int] = {}
        self._lock = threading.Lock()
        # There is something to say of a request.
        self._ended = threading.Condition(self._lock)
        # Guarded by the lock.
        self._staging: Dict[int, Staging] = {}
        self._busy: "Counter[str]" = Counter()
        self._loading: Set[str] = set()
        self._delayed: Set[str] = set()
        self._received: Set[str] = set()
        self._sent: Set[str] = set()
        self._errors: Set[int] = set()
        self._failed: Set[str] = set()
        # Used by the engine's thread alone: of all ranks, told by the first one.
        self.counts: "Counter[str]" = Counter()
        # Saves that the daemon has, for the engine's events; with the lock.
        self._handed_over: List[Tuple[int, int]] = []
        self._has_events = events.are_on(vllm_config)
        # Of the step; None of those in which nothing is to be done.
        self.step: Optional[UCMConnectorMetadata] = None
        self._step_loads: Optional[LayerLoads] = None
        self._step_failed = False
        self._saved_layers: Set[int] = set()
        self._hooks_come = False
        self._loader: Optional[Copier] = None
        self._saver: Optional[Copier] = None
        # Saves of the last step; they begin with the next one, when its tokens are sampled.
        self.deferred: List[Tuple[Fence, Callable[[], None]]] = []
        with engine.goes_on(self._log):
            self._begin()

    def _begin(self) -> None:
        config = self._config
        self._extra = engine.extra_config(config)
        self._saves_beside = compat.features().fences_preemptions
        self._rules = compat.rules(self._kv_cache_config)
        parallel = config.parallel_config
        tp_rank = compat.tp_rank(parallel)
        self._stages, self._stage = compat.stages(parallel), compat.stage(parallel)
        self._rank = self._stage * int(parallel.tensor_parallel_size) + tp_rank
        self._saves = tp_rank == 0 or not compat.is_mla(config.model_config)
        self._plane = str(self._extra.get("ucm_data_plane", "auto"))
        # The scheduler side says why.
        self._served = compat.refusal(config, self._kv_cache_config) is None

    def register(self, kv_caches: Dict[str, Any]) -> None:
        """The engine has allocated its KV cache."""
        if self._served:
            with engine.goes_on(self._log):
                self._register(kv_caches)

    def _register(self, kv_caches: Dict[str, Any]) -> None:
        self._engine = engine.describe(self._config)
        blocks = compat.block_count(self._config, self._kv_cache_config, kv_caches)
        groups = compat.by_group(self._config, self._kv_cache_config, kv_caches)
        try:
            self._layout = find_groups(groups, blocks, compat.is_mla(self._config.model_config))
        except LayoutError as error:
            raise compat.NotServed(str(error)) from None
        # Now, as the model was loaded just before: later its files may be those of another one.
        self._identity = identity.of_engine(self._config, self._log)
        self._layers = {layer.name: i for i, layer in enumerate(self._layout.layers)}
        # Tensors without a hook of their own, such as those of an index, go with their layer.
        numbers = [layer_number(layer.name) for layer in self._layout.layers]
        self._through = {name: bisect_right(numbers, numbers[i]) for name, i in self._layers.items()}
        # A layer that has the memory of another waits for that one, and is saved with it.
        self._through.update((name, self._through[of]) for name, of in self._layout.shared.items())
        self._link = Link(
            self._extra, protocol.WORKER, f"worker-{self._rank}", self._open, self._log
        )
        self._link.start(REGISTER_SECONDS)

    def _open(self, connection: Connection) -> None:
        assert self._layout is not None and self._engine is not None
        self._let_go(connection)
        connection.send(protocol.IDENTIFY, self._identity.write(protocol.Writer()), answered=False)
        if self._stages > 1:
            stage = protocol.stage(self._stages, self._stage)
            _tell(connection, protocol.STAGE, stage, "pipeline parallelism")
        if self._rules:
            groups = protocol.groups(self._rules, self._layout.groups)
            _tell(connection, protocol.GROUPS, groups, "hybrid models")
        body = protocol.open_worker(
            self._engine,
            self._rank,
            self._layout.tensor_bytes,
            compat.layout_text(self._config, self._layout, self._rules),
        )
        exported, pidfd, written = self._export(connection)
        if exported is not None:
            written = device.write_probe(exported)
            device.write(body, exported, written)
        answer = connection.ask(protocol.OPEN_WORKER, body, protocol.OPENED_WORKER, 120.0)
        opened = protocol.read_opened(answer.body)
        self.layerwise = bool(opened.settings & protocol.LAYERWISE)
        staging = Staging(opened)
        by_daemon = exported is not None and opened.plane == protocol.DEVICE_PLANE
        # This worker would copy to a device from memory that is not pinned.
        if by_daemon or (exported is None and self._device().type == "cpu"):
            staging.segment.borrow(connection, self._log)
        if by_daemon:
            assert exported is not None and pidfd is not None
            staging.copies = device.Copies(connection, pidfd, self._log)
            if not device.is_answered(exported, written):
                self._use_host("the daemon has opened other memory than this worker's")
                raise Gone("the worker copies by itself from now on")
        elif exported is not None:
            self._use_host(opened.reason)
        connection.generation = staging.generation
        with self._lock:
            self._staging.pop(staging.generation, None)
            self._staging[staging.generation] = staging
            while len(self._staging) > _KEPT_GENERATIONS:
                del self._staging[next(iter(self._staging))]

    def _let_go(self, connection: Connection) -> None:
        """Unmaps what a daemon lent that is gone: this one makes as large a memory when it is opened."""
        with self._lock:
            others = [
                generation
                for generation, staging in self._staging.items()
                if staging.segment.is_lent_by_other(connection)
            ]
        if others and self._loader is not None:
            # What was promised from there is loaded first.
            self._loader.drain()
        with self._lock:
            for generation in others:
                del self._staging[generation]

    def _export(
        self, connection: Connection
    ) -> Tuple[Optional[device.Exported], Optional[int], bytes]:
        """The KV cache for the daemon; nothing where this worker is to copy."""
        assert self._layout is not None
        if self._plane == "host" or (self._plane == "auto" and self._device().type != "cuda"):
            return None, None, b""
        try:
            exported = device.export(self._layout)
        except device.NoDevicePlane as reason:
            self._use_host(str(reason))
            return None, None, b""
        pidfd = connection.daemon_pidfd()
        if pidfd is None:
            # It could not be ended when it hangs in a copy.
            self._use_host("the daemon's process is not visible from here")
            return None, None, b""
        return exported, pidfd, b""

    def _use_host(self, reason: str) -> None:
        self._plane = "host"
        self._log.warning("UCM: the worker copies KV blocks, not the daemon: %s", reason)

    def _device(self) -> torch.device:
        assert self._layout is not None
        return self._layout.layers[0].pieces[0].device

    # -- loads -------------------------------------------------------------------------------------

    def start_load(self, meta: UCMConnectorMetadata) -> None:
        """Before the forward pass: loads, and what became of requests that ended."""
        self._begin_saves()
        self.step = meta
        self._step_failed = False
        self._step_loads = None
        self._saved_layers.clear()
        if meta.counts and self._rank == 0:
            self.counts.update(meta.counts)
        with self._lock:
            self._delayed.update(meta.delayed)
            for request_id in meta.delayed:
                self._settle(request_id)
        if meta.fences or meta.last:
            # After its last step an engine does not ask any more which blocks it may use again.
            self.await_saves()
        if not meta.loads or self._layout is None:
            return
        if self._loader is None:
            self._loader = Copier("ucm-load", self._device())
        ready = fence(self._device())
        for load in meta.loads:
            if load.asynchronous:
                self._begin_load(self._loader, load)
        waited = [load for load in meta.loads if not load.asynchronous]
        if not waited:
            return
        loads = self._step_loads = LayerLoads(waited, len(self._layers), self._copy_in)
        beside = self.layerwise and self._hooks_come
        step = 1 if beside else len(self._layers)
        loader = self._loader
        loader.submit(ready, lambda: loads.run(step, loader.settle))
        if not beside:
            loads.wait(len(self._layers))

    def _begin_load(self, loader: Copier, load: Load) -> None:
        with self._lock:
            self._loading.add(load.request_id)

        def work() -> None:
            well = self._copy_in(load, range(len(self._layers)))
            loader.settle()
            well = well and not self._is_late(load.since, "loaded, and are computed")
            self._send_loaded([load], set() if well else {load.hold})
            with self._lock:
                if not well and self._rules:
                    # Their numbers would tell of one group alone.
                    self._failed.add(load.request_id)
                elif not well:
                    self._errors.update(unpack(load.blocks))
                self._loading.discard(load.request_id)
                if load.request_id in self._delayed:
                    self._settle(load.request_id)
                else:
                    self._received.add(load.request_id)
                    self._ended.notify()

        loader.submit(fence(self._device()), work)

    def _copy_in(self, load: Load, layers: Sequence[int]) -> bool:
        with self._lock:
            staging = self._staging.get(load.generation)
        if staging is None or self._layout is None:
            return False
        try:
            for group, blocks, slots in self._parts(load, layers):
                staging.load(self._layout, group, slots, blocks)
        except Exception:  # The engine must learn of it whatever it was.
            self._log.exception("UCM: request %s could not be loaded", load.request_id)
            return False
        return True

    def _is_late(self, since: float, otherwise: str) -> bool:
        """Whether slots may have another use by now, as a process that was stopped for long finds them."""
        late = time.monotonic() - since > COPY_SECONDS
        if late:
            self._log.warning("UCM: within %g s blocks were not %s", COPY_SECONDS, otherwise)
        return late

    def _parts(
        self, copy: Union[Load, Save], layers: Sequence[int]
    ) -> Iterator[Tuple[List[int], List[int], List[int]]]:
        """Of each group with something to copy: those of the layers that are in it, blocks, and slots."""
        assert self._layout is not None
        if isinstance(copy, Save):
            parts = [(self._layout.groups[copy.group], (copy.blocks, copy.slots))]
        else:
            parts = list(zip(self._layout.groups, ((copy.blocks, copy.slots), *copy.more)))
        for group, (blocks, slots) in parts:
            wanted = [layer for layer in group if layer in layers]
            if wanted and blocks:
                yield wanted, unpack(blocks), unpack(slots)

    def wait_for_layer_load(self, name: str) -> None:
        if self.step is None or not self.layerwise or name not in self._through:
            return
        self._hooks_come = True
        if self._step_loads is not None:
            self._step_loads.wait(self._through[name])

    def _end_loads(self) -> None:
        """Layers whose hook was not called were computed from what was in the blocks before."""
        loads = self._step_loads
        if loads is None:
            return
        self._step_loads = None
        missed = loads.waited_for < len(self._layers)
        loads.wait(len(self._layers))
        useless = missed or self._is_late(loads.since, "loaded, and are computed")
        failed = {load.hold for load in loads.loads} if useless else loads.failed
        self._step_failed = self._step_failed or bool(failed)
        with self._lock:
            for load in loads.loads:
                if load.hold in failed:
                    self._errors.update(unpack(load.blocks))
        self._send_loaded(loads.loads, failed)

    # -- saves -------------------------------------------------------------------------------------

    def save_layer(self, name: str) -> None:
        if self.step is None or not self.layerwise or name not in self._layers:
            return
        if self._step_failed or (self._step_loads is not None and self._step_loads.failed):
            return
        if self._saves and not self._saves_beside and self._layers[name] not in self._saved_layers:
            self._saved_layers.add(self._layers[name])
            for save in self.step.saves:
                # One without blocks was given up before the step.
                if save.blocks and not self._copy_out(save, [self._layers[name]]):
                    self._step_failed = True

    def wait_for_save(self) -> None:
        """After the forward pass: the step's saves are due, and end before the blocks are reused."""
        self._end_loads()
        if self.step is None or not self.step.saves or not self._saves or self._layout is None:
            return
        saves, failed = self.step.saves, self._step_failed
        layers = [i for i in range(len(self._layers)) if i not in self._saved_layers]
        if not self._saves_beside:
            self._save(saves, layers, failed)
            return
        if self._saver is None:
            self._saver = Copier("ucm-save", self._device())
        saver = self._saver
        with self._lock:
            self._busy.update(save.request_id for save in saves)

        def work() -> None:
            self._save(saves, layers, failed, saver)
            with self._lock:
                self._busy.subtract(save.request_id for save in saves)
                for save in saves:
                    self._settle(save.request_id)

        self.deferred.append((fence(self._device()), work))
        if self.step.lets_go:
            self.await_saves()

    def _begin_saves(self) -> None:
        for ready, work in self.deferred:
            assert self._saver is not None
            self._saver.submit(ready, work)
        self.deferred.clear()

    def _save(
        self, saves: Sequence[Save], layers: Sequence[int], failed: bool, saver: Optional[Copier] = None
    ) -> None:
        good = [save for save in saves if not failed and save.blocks and self._copy_out(save, layers)]
        if saver is not None:
            saver.settle()
        for generation, group in _by_generation(saves).items():
            self._send(
                protocol.SAVED,
                generation,
                [save.save for save in group if save in good],
                [save.save for save in group if save not in good],
            )
        if self._has_events:
            with self._lock:
                self._handed_over += [(save.generation, save.save) for save in good]

    def _copy_out(self, save: Save, layers: Sequence[int]) -> bool:
        with self._lock:
            staging = self._staging.get(save.generation)
        if staging is None or self._layout is None:
            return False
        try:
            with staging.segment.filling(unpack(save.slots)):
                # Else it would write over the bytes of others.
                if self._is_late(save.since, "saved, and are given up"):
                    return False
                for group, blocks, slots in self._parts(save, layers):
                    staging.save(self._layout, group, slots, blocks)
        except Exception:  # Nothing is lost but a later hit.
            self._log.exception("UCM: blocks of request %s could not be saved", save.request_id)
            return False
        return True

    def await_saves(self) -> None:
        """Before blocks of preempted requests are reused."""
        self._begin_saves()
        if self._saver is not None:
            with self._lock:
                busy = any(count > 0 for count in self._busy.values())
            if busy:
                self._saver.drain()

    def end_step(self) -> None:
        self._end_loads()
        self.step = None

    # -- what the engine asks ----------------------------------------------------------------------

    def _settle(self, request_id: str) -> None:
        """Blocks of an ended request may be freed when nothing copies them; with the lock."""
        if self._busy[request_id] <= 0:
            del self._busy[request_id]
            if request_id in self._delayed and request_id not in self._loading:
                self._delayed.discard(request_id)
                self._received.discard(request_id)
                self._sent.add(request_id)
                self._ended.notify()

    def take_finished(self) -> "tuple[Optional[Set[str]], Optional[Set[str]]]":
        """Ids of requests whose blocks may be freed, and of those whose load has ended."""
        if self.step is None and not self._sent and not self._received:
            return None, None
        with self._ended:
            if self.step is not None and self.step.empty and (self._loading or self._delayed):
                # The engine would ask again at once.
                self._ended.wait_for(lambda: self._sent or self._received, EMPTY_STEP_SECONDS)
            sent, received = self._sent, self._received
            self._sent, self._received = set(), set()
        return sent or None, received or None

    def take_errors(self) -> Set[int]:
        """The engine's blocks that could not be loaded."""
        if not self._errors:
            return set()
        with self._lock:
            errors, self._errors = self._errors, set()
        return errors

    def take_failed(self) -> Set[str]:
        """Ids of requests whose load has failed, and that are not told by their blocks."""
        if not self._failed:
            return set()
        with self._lock:
            failed, self._failed = self._failed, set()
        return failed

    def take_counts(self) -> Dict[str, int]:
        """What was counted since the last call, by name."""
        counts, self.counts = dict(self.counts), Counter()
        return counts

    def take_events(self) -> Any:
        """Saves that were handed to the daemon since the last call; None when there are none."""
        if not self._has_events:
            return None
        with self._lock:
            saves, self._handed_over = self._handed_over, []
        return events.HandedOver(saves) if saves else None

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
        self._begin_saves()
        for copier in (self._loader, self._saver):
            if copier is not None:
                copier.close()
        if self._link is not None:
            self._hang_up(self._link)

    def _hang_up(self, link: Link) -> None:
        """When the daemon has heard of all saves: others are dropped when the scheduler's side ends."""
        connection: Optional[Connection] = None
        try:
            connection = link.get()
            # Where the daemon copies, another thread reads its answers.
            if not connection.lingers:
                connection.ask(protocol.PING, protocol.Writer(), protocol.DONE, END_SECONDS)
        except (OSError, Gone, ProtocolError, Refused) as reason:
            self._log.debug("UCM: the last saves may not be stored: %s", reason)
        link.close()
        if connection is not None and connection.lingers:
            connection.is_hung_up(END_SECONDS)


def _tell(connection: Connection, kind: int, body: protocol.Writer, what: str) -> None:
    """Says what a daemon of before may not know; it would serve the engine otherwise than it is."""
    try:
        connection.ask(kind, body, protocol.DONE, REGISTER_SECONDS)
    except Refused as refusal:
        if refusal.code != protocol.UNKNOWN_TYPE:
            raise
        raise Refused(
            refusal.code,
            f"it is older than this engine's package, and does not know {what}: update ucm serve",
        ) from None


def _by_generation(items: Sequence[Any]) -> Dict[int, List[Any]]:
    found: Dict[int, List[Any]] = {}
    for item in items:
        found.setdefault(item.generation, []).append(item)
    return found
