"""Pools of the host: where their pages lie, what names them, and their way to the daemon."""

from __future__ import annotations

import json
from typing import Any, Iterable, List, Sequence

from ucm import names
from ucm.pages import Pages, Pieces

_HASH_BYTES = 16
_HEX_DIGITS = 64


class HostPool:
    """One pool of a rank. Thread-safe as far as SGLang's pool is.

    Args:
        pool: SGLang's own; None for pages that come in tensors only.
        pages: Its pages in the daemon.
        name: What names them besides their tokens and their model.
    """

    def __init__(self, pool: Any, pages: Pages, name: List[Any]) -> None:
        self.pages = pages
        self._mask = _digest(json.dumps(name))
        self._pool = pool
        self._page_size = page_size(pool)
        self._order = order(pool)

    def ids(self, keys: Sequence[str]) -> List[bytes]:
        """What names pages: their hashes, in which each pool changes the same bits."""
        hashes = _hashes(keys)
        mask = self._mask * len(keys)
        named = int.from_bytes(hashes, "big") ^ int.from_bytes(mask, "big")
        joined = named.to_bytes(len(hashes), "big")
        return [joined[at : at + _HASH_BYTES] for at in range(0, len(joined), _HASH_BYTES)]

    def pieces(self, keys: Sequence[str], host_indices: Any) -> List[Pieces]:
        """Where pages lie: K and V, the latent of MLA, or whatever the pool has for each."""
        count = 0 if host_indices is None else len(host_indices)
        if count != len(keys) * self._page_size:
            raise ValueError(
                f"{count} tokens of the host pool for {len(keys)} pages of {self._page_size}"
            )
        pages = _pages(self._pool, host_indices, len(keys))
        self.check(pages)
        return pages

    def pieces_of(self, address: int, size: int) -> Pieces:
        """A page in one tensor, which has its bytes as they follow each other in the pool's memory."""
        self.check([[(address, size)]])
        each = size // len(self._order)
        return [(address + place * each, each) for place in self._order]

    def check(self, pages: Iterable[Pieces]) -> None:
        for page in pages:
            size = sum(size for _, size in page)
            if size != self.pages.page_bytes:
                raise ValueError(f"a page has {size} bytes, and {self.pages.page_bytes} were registered")

    def close(self) -> None:
        self.pages.close()


def has_no_bytes(pool: Any) -> bool:
    """Whether a pool only counts tokens, whose bytes are in other pools (DeepSeek V4)."""
    return getattr(pool, "kv_buffer", pool) is None and getattr(pool, "size_per_token", None) == 0


def page_size(pool: Any) -> int:
    """Tokens, or states, of a page."""
    return int(getattr(pool, "page_size", 1) or 1)


def first_page(pool: Any) -> List[int]:
    """Bytes of each piece of a page."""
    import torch

    indices = torch.arange(page_size(pool), dtype=torch.int64)
    return [size for _, size in _pages(pool, indices, 1)[0]]


def order(pool: Any) -> List[int]:
    """Which place each piece of a page has in the pool's memory.

    With `layer_first` these are K and V of each layer by turns, and the memory has K of all layers
    first. Elsewhere pieces come as they lie, and [0] stands for them together.
    """
    import torch

    if str(getattr(pool, "layout", "")) != "layer_first":
        return [0]
    indices = torch.arange(page_size(pool), dtype=torch.int64)
    pieces = _pages(pool, indices, 1)[0]
    if len({size for _, size in pieces}) != 1:
        raise ValueError("layers of several sizes")
    addresses = sorted(pointer for pointer, _ in pieces)
    return [addresses.index(pointer) for pointer, _ in pieces]


def _pages(pool: Any, host_indices: Any, count: int) -> List[Pieces]:
    pointers, sizes = pool.get_page_buffer_meta(host_indices)
    each = len(pointers) // max(1, count)
    pieces = list(zip(map(int, pointers), map(int, sizes)))
    return [pieces[i * each : (i + 1) * each] for i in range(count)]


def _hashes(keys: Sequence[str]) -> bytes:
    """16 bytes of each, all at once where that can be: a call for each page is most of a look-up's time."""
    if all(len(key) == _HEX_DIGITS for key in keys):
        try:
            hashes = bytes.fromhex("".join([key[: 2 * _HASH_BYTES] for key in keys]))
        except ValueError:
            hashes = b""
        if len(hashes) == _HASH_BYTES * len(keys):
            return hashes
    return b"".join([_hash(key) for key in keys])


def _hash(key: str) -> bytes:
    """Of SHA-256, which SGLang writes in hexadecimal digits, the first bytes; of other names the MD5."""
    try:
        found = bytes.fromhex(key[: 2 * _HASH_BYTES]) if len(key) == _HEX_DIGITS else b""
    except ValueError:
        found = b""
    return found if len(found) == _HASH_BYTES else _digest(key)


def _digest(text: str) -> bytes:
    md5 = names.md5()
    md5.update(text.encode())
    return bytes(md5.digest())
