"""``UcmTier``: a secondary tier of vLLM's native offloading over any pipeline of UCM.

``--kv-transfer-config '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
"kv_connector_extra_config": {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 8589934592,
"secondary_tiers": [{"type": "UcmTier", "module_path": "ucm.integration.vllm.tier",
"config_file": "ucm.yaml"}]}}'``

vLLM moves KV blocks between the GPU and its own memory, and asks a tier for opaque chunks of that
memory by opaque keys. So what vLLM can offload, hybrid models included, this tier keeps.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import sys
import threading
import time
import uuid
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Deque, Dict, Iterable, List, Optional, Sequence, Set

from vllm.v1.core import kv_cache_utils
from vllm.v1.kv_offload import base
from vllm.v1.kv_offload.tiering.base import JobResult, RequestOffloadingContext, SecondaryTierManager

from ucm import names
from ucm.chunks import Chunks
from ucm.integration import stores
from ucm.integration.vllm import compat, identity
from ucm.pages import Question
from ucm.protocol import Engine, Identity

# Jobs that are under way at once; the daemon moves the chunks of each in parallel.
_JOBS = 4
# About 10 MB of names.
_MOST_HELD = 1 << 16
_OWN_KEYS = ("config_file", "module_path", "ucm_socket", "ucm_start_daemon", "enable_kv_events", "locality")
_BOTH_ROLES = 3
_RESULT_FIELDS = {field.name for field in dataclasses.fields(JobResult)}
# How this version of vLLM says whether a chunk is stored; None as long as that is not known.
_RESULTS: Dict[Optional[bool], Any] = {None: None, True: True, False: False}
if hasattr(base, "LookupResult"):
    _RESULTS = {
        None: base.LookupResult.RETRY,
        True: base.LookupResult.HIT,
        False: base.LookupResult.MISS,
    }


class _Verdict:
    """Whether a key is stored: None as long as that is being asked. Its requests keep it."""

    __slots__ = ("found", "requests")

    def __init__(self) -> None:
        self.found: Optional[bool] = None
        self.requests: Set[str] = set()


class UcmTier(SecondaryTierManager):  # type: ignore[misc]
    """Made and used by the scheduler's thread, which it never keeps waiting but in `drain_jobs`.

    Nothing raises into the engine: with a configuration that cannot be used, or without a daemon, each
    look-up is a miss and each job fails.
    """

    if hasattr(base, "Medium"):
        medium = base.Medium.STORAGE

    def __init__(
        self,
        offloading_spec: Any,
        primary_kv_view: memoryview,
        tier_type: str,
        backpressure_detector: Any = None,
        **config: Any,
    ) -> None:
        if "backpressure_detector" in inspect.signature(SecondaryTierManager.__init__).parameters:
            super().__init__(offloading_spec, primary_kv_view, tier_type, backpressure_detector)
        else:
            super().__init__(offloading_spec, primary_kv_view, tier_type)
        self._log = compat.logger()
        # Of the scheduler's thread.
        self._verdicts: Dict[bytes, _Verdict] = {}
        self._asked: Dict[str, Set[bytes]] = {}
        self._step: Dict[bytes, _Verdict] = {}
        # What was asked last, and whether this step has not looked for the answer yet.
        self._question: Optional[Question] = None
        self._questioned: List[_Verdict] = []
        self._listens = False
        # What this engine has moved, the newest last: found without being asked for. If it is gone since,
        # its load fails, which costs a step, and it is forgotten.
        self._held: Dict[bytes, None] = {}
        self._trusts = False
        self._stored_events: Optional[List[Any]] = None
        # Appended to by threads that move, in one operation.
        self._results: Deque[Any] = deque()
        self._idle = threading.Condition()
        self._open_jobs = 0  # Guarded by the condition.
        self._executor = ThreadPoolExecutor(_JOBS, "ucm-tier")
        self._chunks: Optional[Chunks] = None
        # Of what is stored, since the engine disowned what was before; empty until then.
        self._generation = ""
        self._namespace = names.md5()
        try:
            self._connect(offloading_spec, primary_kv_view, config)
        except Exception as error:  # The engine starts all the same.
            self._log.error("UCM: the tier keeps nothing: %s: %s", type(error).__name__, error)

    def _connect(self, spec: Any, view: memoryview, config: Dict[str, Any]) -> None:
        unknown = sorted(set(config) - set(_OWN_KEYS))
        if unknown:
            raise ValueError(
                f"a tier of type UcmTier has no {' and '.join(unknown)}; it has {', '.join(_OWN_KEYS)}"
            )
        if "config_file" not in config:
            raise ValueError("a tier of type UcmTier needs config_file, the YAML file of the stores")
        if config.get("locality") is not None:
            self.locality = base.Locality(config["locality"])
        if config.get("enable_kv_events") and getattr(
            getattr(spec, "kv_events_config", None), "enable_kv_cache_events", False
        ):
            self._stored_events = []
        of_engine = getattr(spec, "vllm_config", None) or _config_of_caller()
        chunk = {**_chunk_identity(spec, of_engine), "bytes": self._chunk_bytes}
        self._namespace.update(json.dumps(chunk, sort_keys=True, default=str).encode())
        extra = {"UCM_CONFIG_FILE": config["config_file"], **config}
        name, text = stores.configuration(extra, {}, "secondary_tiers")
        engine = Engine(
            "tier",
            0,
            str(chunk["model"]),
            str(chunk["dtype"]),
            # The chunks have all ranks' parts.
            1,
            False,
            max(1, int(chunk["tokens_per_chunk"])),
            _BOTH_ROLES,
            name,
            text,
        )
        if "PYTHONHASHSEED" not in os.environ and not hasattr(kv_cache_utils, "get_none_hash_seed"):
            self._log.warning(
                "UCM: hashes of blocks differ in each engine of this version of vLLM: set PYTHONHASHSEED to"
                " the same number in all that share a store, or only this one finds what it stores"
            )
        model = Identity() if of_engine is None else identity.of_engine(of_engine, self._log)
        self._chunks = Chunks(extra, "vllm-tier", lambda: engine, view, self._log, lambda: model)
        self._chunks.start()

    # -- look-ups ----------------------------------------------------------------------------------

    def on_new_request(self, req_context: Any) -> Any:
        return RequestOffloadingContext()

    def lookup(self, key: bytes, req_context: Any) -> Any:
        """Whether a chunk is stored; asked of the daemon at the end of the step."""
        if self._listens:
            self._listen()
        verdict = self._verdicts.get(key)
        if verdict is None:
            if self._trusts and key in self._held:
                return _RESULTS[True]
            verdict = self._verdicts[key] = self._step[key] = _Verdict()
        request = req_context.req_id
        asked = self._asked.get(request)
        if asked is None:
            asked = self._asked[request] = set()
        if key not in asked:
            asked.add(key)
            verdict.requests.add(request)
        return _RESULTS[verdict.found]

    def on_schedule_end(self, *_: Any) -> None:
        if self._question is not None:
            self._listen()
        if self._step and self._question is None:
            asked = list(self._step)
            self._questioned = list(self._step.values())
            self._step.clear()
            try:
                if self._chunks is not None:
                    self._question = self._chunks.ask(self._names(asked))
            except Exception as error:
                self._log.warning("UCM: a look-up failed, which counts as a miss: %s", error)
            if self._question is None:
                self._answered([False] * len(self._questioned))
        self._listens = self._question is not None
        self._trusts = self._chunks is not None and self._chunks.connected

    def _listen(self) -> None:
        """Takes the answer to the last question, if it has come."""
        self._listens = False
        assert self._question is not None
        found: Optional[Sequence[bool]] = [False] * len(self._questioned)
        try:
            found = self._question.answer()
        except Exception as error:
            self._log.warning("UCM: a look-up failed, which counts as a miss: %s", error)
        if found is not None:
            self._question = None
            self._answered(found)

    def _answered(self, found: Sequence[bool]) -> None:
        for verdict, is_there in zip(self._questioned, found):
            verdict.found = is_there
        self._questioned = []

    def on_request_finished(self, req_context: Any) -> None:
        request_id = req_context.req_id
        for key in self._asked.pop(request_id, ()):
            verdict = self._verdicts[key]
            verdict.requests.discard(request_id)
            if not verdict.requests:
                del self._verdicts[key]
                self._step.pop(key, None)

    # -- jobs --------------------------------------------------------------------------------------

    def submit_store(self, job_metadata: Any) -> None:
        self._submit(job_metadata, stores_it=True)

    def submit_load(self, job_metadata: Any) -> None:
        self._submit(job_metadata, stores_it=False)

    def _submit(self, job: Any, stores_it: bool) -> None:
        keys = list(job.keys)
        numbers = job.chunk_ids if hasattr(job, "chunk_ids") else job.block_ids
        with self._idle:
            self._open_jobs += 1
        self._executor.submit(
            self._move, job.job_id, keys, [int(i) for i in numbers], stores_it, self._generation
        )

    def _move(
        self, job_id: int, keys: List[bytes], numbers: List[int], stores_it: bool, generation: str
    ) -> None:
        began = time.monotonic()
        moved: Sequence[bool] = [False] * len(keys)
        try:
            if self._chunks is not None:
                move = self._chunks.store if stores_it else self._chunks.load
                moved = move(self._names(keys), numbers)
        except Exception as error:
            self._log.warning("UCM: chunks were not moved: %s: %s", type(error).__name__, error)
        seconds = time.monotonic() - began
        with self._idle:
            self._results.append((job_id, keys, moved, seconds, stores_it, generation))
            self._open_jobs -= 1
            self._idle.notify_all()

    def get_finished_jobs(self) -> Iterable[Any]:
        finished = []
        while self._results:
            job_id, keys, moved, seconds, stores_it, generation = self._results.popleft()
            well = [key for key, is_moved in zip(keys, moved) if is_moved]
            more: Dict[str, Any] = {
                "transfer_time": seconds,
                "transfer_bytes": len(well) * self._chunk_bytes,
            }
            if stores_it:
                if self._stored_events is not None and well:
                    self._stored_events.append(self._event(well))
            elif len(well) < len(keys):
                if well:
                    more["successful_keys"] = tuple(well)
                for key, is_moved in zip(keys, moved):
                    if is_moved:
                        continue
                    self._held.pop(key, None)
                    # It would be asked for again and again.
                    verdict = self._verdicts.get(key)
                    if verdict is not None:
                        verdict.found = False
            if generation == self._generation:
                self._hold(well)
            known = {name: value for name, value in more.items() if name in _RESULT_FIELDS}
            finished.append(JobResult(job_id=job_id, success=len(well) == len(keys), **known))
        return finished

    def _hold(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._held.pop(key, None)
            self._held[key] = None
        while len(self._held) > _MOST_HELD:
            del self._held[next(iter(self._held))]

    def _event(self, keys: List[bytes]) -> Any:
        fields = {field.name for field in dataclasses.fields(base.OffloadingEvent)}
        locality = {"locality": self.locality} if "locality" in fields else {}
        return base.OffloadingEvent(keys=keys, medium=self.medium, removed=False, **locality)

    def take_events(self) -> Iterable[Any]:
        """Chunks that were stored since the last call."""
        events = self._stored_events or []
        if events:
            self._stored_events = []
        return events

    def has_pending_work(self) -> bool:
        """Whether results are still to be fetched, for which an engine without requests takes steps."""
        with self._idle:
            return self._open_jobs > 0 or bool(self._results)

    def drain_jobs(self) -> None:
        """Returns when no job is under way.

        vLLM asks for that when it resets its cache, as it does when weights were replaced: what is stored
        until now is disowned.
        """
        self._await_jobs()
        self._held.clear()
        for key, before in self._verdicts.items():
            # Answers that are still to come go to the ones before.
            asked = self._verdicts[key] = self._step[key] = _Verdict()
            asked.requests = before.requests
        self._generation = uuid.uuid4().hex
        if self._chunks is not None:
            self._chunks.disown(self._generation)

    def _await_jobs(self) -> None:
        with self._idle:
            self._idle.wait_for(lambda: self._open_jobs == 0)

    def shutdown(self) -> None:
        """Ends what is under way; the daemon leaves the engine's memory alone afterwards."""
        self._await_jobs()
        self._executor.shutdown()
        if self._chunks is not None:
            self._chunks.close()

    # -- names -------------------------------------------------------------------------------------

    @property
    def _chunk_bytes(self) -> int:
        strides = self._primary_kv_view.strides
        assert strides is not None
        return int(strides[0])

    def _names(self, keys: Iterable[bytes]) -> List[bytes]:
        copy = self._namespace.copy
        found = []
        for key in keys:
            name = copy()
            name.update(key)
            found.append(name.digest())
        return found


def _chunk_identity(spec: Any, vllm_config: Any) -> Dict[str, Any]:
    """What decides the bytes of a chunk besides its key, which has the hash of its tokens and its group."""
    config = getattr(spec, "config", None)
    if config is None:
        return _identity_before_026(spec, vllm_config)
    parallel = config.parallel
    agnostic = parallel.is_parallelism_agnostic or getattr(config, "replicated_layout", False)
    return {
        "model": config.model.name,
        "dtype": config.model.dtype,
        "tokens_per_hash": config.cache.tokens_per_hash,
        "tokens_per_chunk": config.cache.tokens_per_hash * config.cache.blocks_per_chunk,
        "groups": [[group.tokens_per_block, list(group.layer_names)] for group in config.groups],
        "parallel": "any"
        if agnostic
        else [
            parallel.tp_size,
            parallel.pp_size,
            parallel.pcp_size,
            parallel.dcp_size,
        ],
        "replicated": getattr(config, "replicated_layout", False),
        "canonical": getattr(config, "canonical_layout", False),
        "layout": getattr(config, "kv_cache_layout", None),
    }


def _identity_before_026(spec: Any, vllm_config: Any) -> Dict[str, Any]:
    parallel, cache = vllm_config.parallel_config, vllm_config.cache_config
    groups = [
        [group.kv_cache_spec.block_size, list(group.layer_names), repr(group.kv_cache_spec)]
        for group in spec.kv_cache_config.kv_cache_groups
    ]
    factor = int(getattr(spec, "block_size_factor", 1))
    return {
        "model": vllm_config.model_config.model,
        "dtype": f"{vllm_config.model_config.dtype} {cache.cache_dtype}",
        "tokens_per_hash": cache.block_size,
        "tokens_per_chunk": cache.block_size * factor,
        "groups": groups,
        "parallel": [
            parallel.tensor_parallel_size,
            parallel.pipeline_parallel_size,
            getattr(parallel, "prefill_context_parallel_size", 1),
            getattr(parallel, "decode_context_parallel_size", 1),
        ],
    }


def _config_of_caller() -> Any:
    """The engine's configuration, which a specification does not have from 0.26 on: that of the connector
    which is being made; None when a test makes the tier."""
    frame = sys._getframe()
    caller = frame.f_back
    while caller is not None:
        found = caller.f_locals.get("vllm_config")
        if found is not None and hasattr(found, "model_config"):
            return found
        caller = caller.f_back
    return None
