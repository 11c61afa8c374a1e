"""``UcmHiCache``: a storage of SGLang's HiCache over UCM, through the daemon ``ucm serve``.

``--hicache-storage-backend dynamic --hicache-storage-backend-extra-config '{"backend_name": "ucm",
"module_path": "ucm.integration.sglang.hicache", "class_name": "UcmHiCache", "interface_v1": 1,
"UCM_CONFIG_FILE": "ucm.yaml"}'``
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
from typing import Any, Callable, Counter, Dict, List, Optional, Sequence, Set, TypeVar, cast

from sglang.srt.mem_cache.hicache_storage import HiCacheStorage

from ucm.integration import stores
from ucm.integration.sglang import identity
from ucm.pages import Pages, Pieces
from ucm.protocol import Engine, Identity

LAYOUTS = ("page_first", "page_first_direct")
POOL = "kv"
DEFAULT_STAGING_GB = 0.5
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
        self._pool: Any = None
        self._pages: Optional[Pages] = None
        self._name: List[Any] = []
        self._model_identity = Identity()

    # -- life --------------------------------------------------------------------------------------

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        """Takes the host pool, and connects to the daemon."""
        super().register_mem_pool_host(mem_pool_host)
        self._register(mem_pool_host)

    @_guarded(lambda _: None)
    def _register(self, pool: Any) -> None:
        layout = str(getattr(pool, "layout", "layer_first"))
        if layout not in LAYOUTS:
            self._say(
                logging.ERROR,
                f"UCM: a page of the host pool's layout {layout} does not lie in one piece, so nothing"
                f" is found or stored: start SGLang with --hicache-mem-layout {' or '.join(LAYOUTS)}",
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
        page_bytes = int(pool.get_size_per_token()) * int(pool.page_size)
        try:
            self._name = self._identity(pool, layout, page_bytes)
            model = identity.Model(self._extra, self._model, self._log)
        except identity.Refused as refusal:
            self._say(logging.ERROR, f"UCM: {refusal}. Nothing is found or stored.")
            return
        self._model_identity = Identity("", model.config, model.weights)
        staging = float(self._extra.get("ucm_staging_gb", DEFAULT_STAGING_GB))
        if self._pages is not None:
            self._pages.close()
        self._pool = pool
        self._pages = Pages(
            self._extra,
            f"sglang-{self._tp_rank}",
            lambda: engine,
            page_bytes,
            int(staging * (1 << 30)),
            self._log,
            lambda: self._model_identity._replace(generation=self._generation()),
        )
        self._pages.start()

    def _identity(self, pool: Any, layout: str, page_bytes: int) -> List[Any]:
        """What names pages besides their tokens and their model, which the daemon adds."""
        config = self._config
        names: List[Any] = [
            "sglang",
            identity.dtype(pool, self._extra),
            identity.shape(pool),
            int(pool.page_size),
            page_bytes,
            layout,
            POOL,
        ]
        if not self._mla:
            names += ["tp", self._tp_rank, self._tp_size]
        for axis in ("pp", "attn_cp"):
            size = int(getattr(config, f"{axis}_size", 1) or 1)
            if size > 1:
                names += [axis, int(getattr(config, f"{axis}_rank", 0)), size]
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
            int(pool.page_size),
            _BOTH_ROLES,
            name,
            text,
        )

    def close(self) -> None:
        """Ends the connection; then nothing is found."""
        self._close()

    @_guarded(lambda _: None)
    def _close(self) -> None:
        if self._pages is not None:
            self._pages.close()

    def clear(self) -> None:
        """Nothing that was stored before is found by this launch any more, nor by later ones.

        Files are left alone.
        """
        _cleared[self._clear_name()] += 1
        if self._pages is not None:
            self._pages.disown(self._generation())

    def _clear_name(self) -> str:
        dp_rank = getattr(self._config, "dp_rank", 0)
        return json.dumps([self._model, self._name, self._tp_rank, dp_rank])

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
        """How many of the first pages are stored."""
        return self._pages.exists(self._ids(keys)) if self._pages is not None else 0

    @_guarded(lambda _: False)
    def exists(self, key: str) -> bool:
        return bool(self.batch_exists([key]) == 1)

    @_guarded(_each(False))
    def batch_get_v1(
        self, keys: List[str], host_indices: Any, extra_info: Any = None
    ) -> List[bool]:
        """Copies pages into the host pool; those after the first that is not stored are left out."""
        if self._pages is None:
            return [False] * len(keys)
        return _first(self._pages.get(self._ids(keys), self._pool_pieces(keys, host_indices)), keys)

    @_guarded(_each(False))
    def batch_set_v1(
        self, keys: List[str], host_indices: Any, extra_info: Any = None
    ) -> List[bool]:
        """Stores pages of the host pool; those after the first that cannot be are given up."""
        if self._pages is None:
            return [False] * len(keys)
        if self._is_stored_by_another():
            return [True] * len(keys)
        return _first(self._pages.set(self._ids(keys), self._pool_pieces(keys, host_indices)), keys)

    def _is_stored_by_another(self) -> bool:
        return self._mla and self._tp_rank != 0

    def _pool_pieces(self, keys: Sequence[str], host_indices: Any) -> List[Pieces]:
        """Where the pages lie: K and V, or the latent of MLA."""
        if len(host_indices) != len(keys) * self._pool.page_size:
            raise ValueError(
                f"{len(host_indices)} tokens of the host pool for {len(keys)} pages"
                f" of {self._pool.page_size}"
            )
        pointers, sizes = self._pool.get_page_buffer_meta(host_indices)
        each = len(pointers) // max(1, len(keys))
        pieces = list(zip(map(int, pointers), map(int, sizes)))
        pages = [pieces[i * each : (i + 1) * each] for i in range(len(keys))]
        self._check(pages)
        return list(pages)

    def _check(self, pages: Sequence[Pieces]) -> None:
        assert self._pages is not None
        for page in pages:
            size = sum(size for _, size in page)
            if size != self._pages.page_bytes:
                raise ValueError(f"a page has {size} bytes, and {self._pages.page_bytes} were registered")

    def _ids(self, keys: Sequence[str]) -> List[bytes]:
        of_all = hashlib.md5(json.dumps(self._name).encode(), usedforsecurity=False)
        ids = []
        for key in keys:
            of_page = of_all.copy()
            of_page.update(_hash_bytes(key))
            ids.append(of_page.digest())
        return ids

    # -- pages in tensors --------------------------------------------------------------------------

    @_guarded(lambda _: None)
    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> Any:
        return self.batch_get([key], [target_location])[0]

    @_guarded(_each(None))
    def batch_get(
        self, keys: List[str], target_locations: Any = None, target_sizes: Any = None
    ) -> List[Any]:
        """The tensors of the first pages that are stored, filled; None for the others."""
        if self._pages is None or target_locations is None:
            return [None] * len(keys)
        count = self._pages.get(self._ids(keys), self._tensor_pieces(keys, target_locations))
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
        if self._pages is None:
            return False
        if self._is_stored_by_another():
            return True
        whole = [value.contiguous() for value in values]
        return self._pages.set(self._ids(keys), self._tensor_pieces(keys, whole)) == len(keys)

    def _tensor_pieces(self, keys: Sequence[str], tensors: Sequence[Any]) -> List[Pieces]:
        if len(tensors) != len(keys) or not all(tensor.is_contiguous() for tensor in tensors):
            raise ValueError("pages are read into one contiguous tensor each")
        pages = [[(tensor.data_ptr(), tensor.numel() * tensor.element_size())] for tensor in tensors]
        self._check(pages)
        return list(pages)

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


def _first(count: int, keys: Sequence[str]) -> List[bool]:
    return [i < count for i in range(len(keys))]


def _hash_bytes(key: str) -> bytes:
    """The page's hash, which SGLang writes in hexadecimal digits."""
    try:
        return bytes.fromhex(key)
    except ValueError:
        return key.encode()
