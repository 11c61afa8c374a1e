"""Names of blocks, of which many are made at once."""

from __future__ import annotations

import hashlib
from typing import Any

try:
    # Of a few bytes it is made in half the time that OpenSSL's takes.
    from _md5 import md5 as _own  # type: ignore[import]
except ImportError:
    _own = None


def md5() -> Any:
    """An MD5 without any bytes yet; a copy of it goes on from what it has."""
    return hashlib.md5(usedforsecurity=False) if _own is None else _own()
