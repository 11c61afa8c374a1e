"""``UcmHiCache``: a storage of SGLang's HiCache over UCM, through the daemon ``ucm serve``.

``--hicache-storage-backend dynamic --hicache-storage-backend-extra-config '{"backend_name": "ucm",
"module_path": "ucm.integration.sglang.hicache", "class_name": "UcmHiCache", "interface_v1": 1,
"UCM_CONFIG_FILE": "ucm.yaml"}'``
"""

from __future__ import annotations

import functools
import json
import logging
import math
import os
import threading
from typing import Any, Callable, Counter, Dict, List, Optional, Sequence, Set, TypeVar, cast

from sglang.srt.mem_cache.hicache_storage import HiCacheStorage

from ucm.integration import stores
from ucm.integration.sglang import identity
from ucm.integration.sglang.pools import HostPool, first_page, has_no_bytes, order, page_size
from ucm.pages import REGISTER_SECONDS, Pages, Pieces
from ucm.protocol import Engine, Identity

POOL = "kv"
# Pages of a draft model that come in tensors (SGLang 0.5.12 to 0.5.19); later ones have a pool of SGLang's.
DRAFTS = "drafts"
STAGING_KEY = "ucm_staging_gb"
DEFAULT_STAGING_GB = 0.5
SHARE_BESIDE = 0.25
# Below it the cost of each page outweighs that of its bytes.
SMALL_PAGE_BYTES = 64 << 10
_BOTH_ROLES = 3

# How often each rank of a model was cleared by this process, whatever object it was asked of.
_cleared: Counter[str] = Counter()

_Call = TypeVar("_Call", bound=Callable[..., Any])


def _guarded(nothing: Callable[[Any], Any]) -> Callable[[_Call], _Call]:
    """Has a call answer as if nothing were stored when it fails: an exception ends SGLang's thread.

    `nothing` makes that answer from the first argument.
    """

    def decorate(call: _Call) -> _Call:
        @functools.wraps(call)
        def guarded(self: UcmHiCache, *arguments: Any, **named: Any) -> Any:
            try:
                return call(self, *arguments, **named)
            except Exception as error:
                self._failed(call.__name__, error)
                return nothing(next(iter([*arguments, *named.values()]), None))

        return cast(_Call, guarded)

    return decorate


def _each(nothing: Any) -> Callable[[Any], List[Any]]:
    def answer(keys: Any) -> List[Any]:
        try:
            return [nothing] * len(keys)
        except TypeError:
            return []

    return answer


class UcmHiCache(HiCacheStorage):  # type: ignore[misc]
    """One for each rank. Used by SGLang's threads at once; none of its calls raises.

    While the daemon is away, nothing is found and nothing is stored.
    """

    def __init__(self, storage_config: Any, kwargs: Optional[Dict[str, Any]] = None) -> None:
        self._log = logging.getLogger(__name__)
        self._said: Set[str] = set()
        self._config = storage_config
        own = getattr(storage_config, "extra_config", None)
        self._extra: Dict[str, Any] = {**(kwargs or {}), **(own or {})}
        self._tp_rank = int(getattr(storage_config, "tp_rank", 0) or 0)
        self._tp_size = int(getattr(storage_config, "tp_size", 1) or 1)
        self._model = str(getattr(storage_config, "model_name", None) or "")
        self._mla = bool(getattr(storage_config, "is_mla_model", False))
        # By SGLang's names.
        self._pools: Dict[str, HostPool] = {}
        # The host pool of the KV cache, when anything is served, and the type of what is in it.
        self._kv: Any = None
        self._kv_name: List[Any] = []
        self._dtype = ""
        self._staging_gb = DEFAULT_STAGING_GB
        self._adding = threading.Lock()
        self._model_identity = Identity()

    # -- life --------------------------------------------------------------------------------------

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        """Takes the host pool, and connects to the daemon."""
        super().register_mem_pool_host(mem_pool_host)
        self._register(mem_pool_host)

    @_guarded(lambda _: None)
    def _register(self, pool: Any) -> None:
        # Until all is well: a pool that failed is none that only counts.
        self._kv = None
        layout = str(getattr(pool, "layout", ""))
        try:
            page_bytes = 0 if has_no_bytes(pool) else sum(first_page(pool))
        except Exception as error:
            self._say(
                logging.ERROR,
                f"UCM: the host pool does not say where a page of its layout {layout or 'without a name'}"
                f" lies ({type(error).__name__}: {error}), so nothing is found or stored: start SGLang"
                " with --hicache-mem-layout page_first",
            )
            return
        if not self._model:
            self._say(
                logging.ERROR,
                "UCM: SGLang does not say which model this is, and pages of different models would have"
                " the same names, so nothing is found or stored: set --served-model-name",
            )
            return
        try:
            engine = self._describe(pool)
        except stores.ConfigurationError as error:
            self._say(logging.ERROR, f"UCM: {error}, so nothing is found or stored")
            return
        try:
            self._staging_gb = _staging_gb(self._extra.get(STAGING_KEY))
            self._dtype = identity.dtype(pool, self._extra)
            name = self._identity(pool, POOL, page_bytes)
            model = identity.Model(self._extra, self._model, self._log)
        except identity.Refused as refusal:
            self._say(logging.ERROR, f"UCM: {refusal}. Nothing is found or stored.")
            return
        self._model_identity = Identity("", model.config, model.weights)
        self._kv_name = name
        if 0 < page_bytes < SMALL_PAGE_BYTES:
            self._say(
                logging.WARNING,
                f"UCM: a page of {page_size(pool)} tokens has {page_bytes} bytes; below"
                f" {SMALL_PAGE_BYTES} storing and finding it costs more than its bytes: set a larger"
                " --page-size",
            )
        if page_bytes:
            self._add(POOL, engine, page_bytes, name, pool)
        self._kv = pool

    def _add(
        self, kind: str, engine: Engine, page_bytes: int, name: List[Any], pool: Any = None
    ) -> None:
        before = self._pools.pop(kind, None)
        if before is not None:
            before.close()
        client = f"sglang-{self._tp_rank}" + ("" if kind == POOL else f"-{kind}")
        # There may be ten pools beside that of the KV cache, which move less.
        staging = self._staging_gb * (1.0 if kind == POOL else SHARE_BESIDE)
        pages = Pages(
            self._extra,
            client,
            lambda: engine,
            page_bytes,
            int(staging * (1 << 30)),
            self._log,
            lambda: self._model_identity._replace(generation=self._generation()),
        )
        # A daemon that does not answer is not waited for again for each pool.
        answers = all(one.pages.connected for one in self._pools.values())
        self._pools[kind] = HostPool(pool, pages, name)
        pages.start(REGISTER_SECONDS if answers else 0.0)

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None:
        """Takes a pool beside that of the KV cache, such as of sliding windows or states."""
        super().register_mem_host_pool_v2(host_pool, host_pool_name)
        self._register_beside(host_pool, _text(host_pool_name))

    @_guarded(lambda _: None)
    def _register_beside(self, pool: Any, kind: str) -> None:
        if kind == POOL:
            if self._kv is None:
                self._register(pool)
            return
        if self._kv is None:
            # Its line says why.
            return
        try:
            sizes = first_page(pool)
            name = [*self._identity(pool, kind, sum(sizes)), sizes, identity.shape_beside(pool)]
            engine = self._describe(pool)
        except Exception as error:
            self._say(
                logging.ERROR,
                f"UCM: pages of the pool {kind} cannot be served ({error}), so nothing of it is found"
                " or stored",
            )
            return
        self._add(kind, engine, sum(sizes), name, pool)

    def _identity(self, pool: Any, kind: str, page_bytes: int) -> List[Any]:
        """What names pages besides their tokens and their model, which the daemon adds."""
        config = self._config
        names: List[Any] = [
            "sglang",
            self._dtype,
            identity.shape(pool),
            page_size(pool),
            page_bytes,
            str(getattr(pool, "layout", "")),
            kind,
        ]
        if not self._mla or not (kind == POOL or identity.is_alike_on_all_ranks(pool)):
            names += ["tp", self._tp_rank, self._tp_size]
        if getattr(pool, "storage_format_tag", None):
            names += ["format", str(pool.storage_format_tag)]
        for axis in ("pp", "attn_cp", "dcp"):
            size = int(getattr(config, f"{axis}_size", 1) or 1)
            if size > 1:
                names += [axis, int(getattr(config, f"{axis}_rank", 0)), size]
        if kind == POOL:
            pieces = order(pool)
            if pieces != sorted(pieces):
                names += ["order", pieces]
        return names

    def _describe(self, pool: Any) -> Engine:
        inline = self._extra.get("ucm_config") or {}
        name, text = stores.configuration(self._extra, inline, "ucm_config")
        return Engine(
            "sglang",
            0,
            self._model,
            str(pool.dtype),
            # The ranks' pages have names of their own: to the daemon each rank is an engine.
            1,
            False,
            page_size(pool),
            _BOTH_ROLES,
            name,
            text,
        )

    def close(self) -> None:
        """Ends the connection; then nothing is found."""
        self._close()

    @_guarded(lambda _: None)
    def _close(self) -> None:
        self._kv = None
        with self._adding:
            for pool in self._pools.values():
                pool.close()

    def clear(self) -> None:
        """Nothing that was stored before is found by this launch any more, nor by later ones.

        Files are left alone.
        """
        _cleared[self._clear_name()] += 1
        for pool in self._pools.values():
            pool.pages.disown(self._generation())

    def _clear_name(self) -> str:
        dp_rank = getattr(self._config, "dp_rank", 0)
        return json.dumps([self._model, self._kv_name, self._tp_rank, dp_rank])

    def _generation(self) -> str:
        """The same on all ranks that were cleared as often; empty before."""
        cleared = _cleared[self._clear_name()]
        return f"{_launch()} {cleared}" if cleared else ""

    def get_stats(self) -> None:
        """Nothing: SGLang takes an object of its own class only. The daemon counts."""
        return None

    # -- pages of the host pool --------------------------------------------------------------------

    @_guarded(lambda _: 0)
    def batch_exists(self, keys: List[str], extra_info: Any = None) -> int:
        """How many of the first pages are stored; none of a pool that has no bytes."""
        kv = self._pools.get(POOL)
        return kv.pages.exists(kv.ids(keys)) if kv is not None else 0

    @_guarded(lambda _: False)
    def exists(self, key: str) -> bool:
        return bool(self.batch_exists([key]) == 1)

    @_guarded(_each(False))
    def batch_get_v1(
        self, keys: List[str], host_indices: Any, extra_info: Any = None
    ) -> List[bool]:
        """Copies pages into the host pool; those after the first that is not stored are left out."""
        return self._get(POOL, keys, host_indices)

    @_guarded(_each(False))
    def batch_set_v1(
        self, keys: List[str], host_indices: Any, extra_info: Any = None
    ) -> List[bool]:
        """Stores pages of the host pool; those after the first that cannot be are given up."""
        return self._set(POOL, keys, host_indices)

    def _get(self, kind: str, keys: Sequence[str], host_indices: Any) -> List[bool]:
        pool = self._pools.get(kind)
        if pool is None:
            return [kind == POOL and self._only_counts()] * len(keys)
        return _first(pool.pages.get(pool.ids(keys), pool.pieces(keys, host_indices)), keys)

    def _set(self, kind: str, keys: Sequence[str], host_indices: Any) -> List[bool]:
        pool = self._pools.get(kind)
        if pool is None:
            return [kind == POOL and self._only_counts()] * len(keys)
        if kind == POOL and self._is_stored_by_another():
            return [True] * len(keys)
        return _first(pool.pages.set(pool.ids(keys), pool.pieces(keys, host_indices)), keys)

    def _only_counts(self) -> bool:
        """Whether the pool of the KV cache has no bytes: those of a page are in the other pools."""
        return self._kv is not None and POOL not in self._pools

    def _is_stored_by_another(self) -> bool:
        # The first ranks of a group that has an MLA model's cache in parts (DCP) store a part each.
        return self._mla and self._tp_rank != int(getattr(self._config, "dcp_rank", 0) or 0)

    # -- pages of several pools --------------------------------------------------------------------

    def batch_exists_v2(
        self, keys: List[str], pool_transfers: Any = None, extra_info: Any = None
    ) -> Any:
        """How many of the first pages can be restored with what their other pools need.

        A prefix of n pages can be when its KV cache is stored, and of each other pool its first n pages
        (ALL_PAGES), or the last ones before n, as many as the transfer names (TRAILING_PAGES).
        """
        from sglang.srt.mem_cache.hicache_storage import PoolTransferResult

        try:
            gated = any(_text(one.hit_policy) == "all_pages" for one in pool_transfers or ())
            # Where no page has bytes of its own, other pools say how many there are.
            stored = len(keys) if gated and self._only_counts() else self.batch_exists(keys)
            hits = {POOL: stored} if stored else {}
            restorable = list(range(1, stored + 1))
            for transfer in pool_transfers or ():
                if not restorable:
                    break
                if _text(transfer.hit_policy) == "block_groups":
                    # A second form of pages that are there; without it these are used.
                    continue
                fits = self._fits(transfer, keys[:stored])
                if fits:
                    hits[_text(transfer.name)] = fits[-1]
                restorable = [pages for pages in restorable if pages in fits]
            last = restorable[-1] if restorable else 0
            if "restorable_prefix_pages" not in PoolTransferResult.__dataclass_fields__:
                return PoolTransferResult(last, hits)
            return PoolTransferResult(last, hits, restorable)
        except Exception as error:
            self._failed("batch_exists_v2", error)
            return PoolTransferResult.empty()

    def _fits(self, transfer: Any, keys: Sequence[str]) -> List[int]:
        """For how many of the first pages a pool has what they need of it."""
        pool = self._pools.get(_text(transfer.name))
        if pool is None:
            return []
        there = pool.pages.find(pool.ids(keys))
        policy = _text(transfer.hit_policy)
        if policy == "all_pages":
            count = there.index(False) if False in there else len(there)
            return list(range(1, count + 1))
        if policy != "trailing_pages":
            raise ValueError(f"{transfer.hit_policy} is a policy that is not known")
        last = max(1, len(transfer.keys or ()))
        return [end for end in range(1, len(keys) + 1) if all(there[max(0, end - last) : end])]

    def batch_get_v2(self, transfers: Any, extra_info: Any = None) -> Dict[Any, List[bool]]:
        """Copies pages into their pools, as `batch_get_v1` does for each."""
        return self._each_pool("batch_get_v2", self._get, transfers)

    def batch_set_v2(self, transfers: Any, extra_info: Any = None) -> Dict[Any, List[bool]]:
        """Stores pages of their pools, as `batch_set_v1` does for each."""
        return self._each_pool("batch_set_v2", self._set, transfers)

    def _each_pool(
        self, call: str, act: Callable[[str, Sequence[str], Any], List[bool]], transfers: Any
    ) -> Dict[Any, List[bool]]:
        done: Dict[Any, List[bool]] = {}
        for transfer in transfers or ():
            keys = transfer.keys or []
            try:
                done[transfer.name] = act(_text(transfer.name), keys, transfer.host_indices)
            except Exception as error:
                self._failed(f"{call} of {_text(transfer.name)}", error)
                done[transfer.name] = [False] * len(keys)
        return done

    # -- pages in tensors --------------------------------------------------------------------------

    @_guarded(lambda _: None)
    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> Any:
        return self.batch_get([key], [target_location])[0]

    @_guarded(_each(None))
    def batch_get(
        self, keys: List[str], target_locations: Any = None, target_sizes: Any = None
    ) -> List[Any]:
        """The tensors of the first pages that are stored, filled; None for the others."""
        if target_locations is None:
            return [None] * len(keys)
        pool = self._of_tensors(keys, target_locations)
        if pool is None:
            return [one if self._only_counts() else None for one in target_locations]
        pieces = _tensor_pieces(pool, keys, target_locations)
        count = pool.pages.get(pool.ids(keys), pieces)
        return [*target_locations[:count], *[None] * (len(keys) - count)]

    @_guarded(lambda _: False)
    def set(
        self,
        key: str,
        value: Any = None,
        target_location: Any = None,
        target_sizes: Any = None,
    ) -> bool:
        return self.batch_set([key], [value])

    @_guarded(lambda _: False)
    def batch_set(
        self,
        keys: List[str],
        values: Any = None,
        target_locations: Any = None,
        target_sizes: Any = None,
    ) -> bool:
        pool = self._of_tensors(keys, values)
        if pool is None:
            return self._only_counts()
        if self._is_stored_by_another():
            return True
        whole = [value.contiguous() for value in values]
        return pool.pages.set(pool.ids(keys), _tensor_pieces(pool, keys, whole)) == len(keys)

    def _of_tensors(self, keys: Sequence[str], tensors: Sequence[Any]) -> Optional[HostPool]:
        """Whose pages these are: those of a draft model have another size, and a mark in their keys."""
        if not keys or not all(key.startswith("d:") or key.endswith(".draft") for key in keys):
            return self._pools.get(POOL)
        with self._adding:
            if DRAFTS not in self._pools and self._kv is not None:
                size = tensors[0].numel() * tensors[0].element_size()
                name = self._identity(self._kv, DRAFTS, size)
                # Whether all ranks have the same is not said.
                name += [str(tensors[0].dtype), self._tp_rank, self._tp_size]
                self._add(DRAFTS, self._describe(self._kv), size, name)
            return self._pools.get(DRAFTS)

    # -- log ---------------------------------------------------------------------------------------

    def _failed(self, call: str, error: Exception) -> None:
        line = f"UCM: {call} failed, which counts as a miss: {type(error).__name__}: {error}"
        self._say(logging.WARNING, line, f"{call} {type(error).__name__}")

    def _say(self, level: int, line: str, kind: str = "") -> None:
        """Logs a line, once for each kind."""
        if (kind or line) not in self._said:
            self._said.add(kind or line)
            self._log.log(level, line)


@functools.lru_cache(maxsize=None)
def _launch() -> str:
    """What all ranks on this node have in common, and no other launch of SGLang has."""
    parent = os.getppid()
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    with open(f"/proc/{parent}/stat", encoding="utf-8") as file:
        # The name of the program, in parentheses, may have any characters.
        started = file.read().rpartition(")")[2].split()[19]
    return f"{boot} {parent} {started}"


def _staging_gb(said: Any) -> float:
    try:
        found = DEFAULT_STAGING_GB if said is None else float(said)
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found < math.inf:
        raise identity.Refused(f"{STAGING_KEY} is {said}, and should be a number of GiB")
    return found


def _first(count: int, keys: Sequence[str]) -> List[bool]:
    return [i < count for i in range(len(keys))]


def _tensor_pieces(pool: HostPool, keys: Sequence[str], tensors: Sequence[Any]) -> List[Pieces]:
    if len(tensors) != len(keys) or not all(tensor.is_contiguous() for tensor in tensors):
        raise ValueError("pages are read into one contiguous tensor each")
    return [
        pool.pieces_of(tensor.data_ptr(), tensor.numel() * tensor.element_size())
        for tensor in tensors
    ]


def _text(name: Any) -> str:
    """SGLang's names are enums, or their texts."""
    return str(getattr(name, "value", name))
