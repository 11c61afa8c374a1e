"""Fingerprints of models and adapters: texts that differ where the KV cache may differ.

Content counts, and neither names of folders nor times, so that nodes agree. Of files, names, sizes and
some pages are read, one at least of each tensor as far as there are not too many: milliseconds, whatever
the size. All of it is standard library, and nothing here asks a network.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from typing import Any, Iterable, List, Mapping, Optional, Tuple

PAGE = 4096
MOST_PAGES = 4096
FEWEST_PAGES_OF_A_FILE = 16
MOST_HEADER_BYTES = 128 << 20
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".npz", ".msgpack", ".distcp")
# Names in a model's configuration that say where it came from, and not what it is.
ORIGIN = ("_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "_attn_implementation")
# What decides how weights are read, besides the configuration that the engine has in memory.
_READ_WHOLE = re.compile(
    r".*\.py|params\.json|adapter_config\.json|(hf_)?quant(ize)?(ization)?_config\.json|.*\.index\.json"
)
_SNAPSHOT = re.compile(r".*/models--([^/]+)/snapshots/([0-9a-f]{40})(?:/.*)?$")


class Unreadable(Exception):
    """Files of which no fingerprint can be had; says why."""


def digest(*parts: Any) -> str:
    """32 digits that depend on all parts, which are those that `plain` takes."""
    text = json.dumps([plain(part) for part in parts], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def plain(value: Any) -> Any:
    """A value as JSON can have it, the same in each process: no addresses, no order of a set."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(one) for one in value), key=repr)
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    kind = type(value)
    if re.search(r" at 0x[0-9a-f]+", str(value)):
        of = getattr(value, "__qualname__", kind.__qualname__)
        return f"{getattr(value, '__module__', kind.__module__)}.{of}"
    return str(value)


def snapshot(model: str, revision: Optional[str] = None, cache: Optional[str] = None) -> str:
    """Where the files of a model are: its folder or file, or that of its name in the hub's cache.

    The name itself when nothing is known of it.
    """
    if os.path.exists(model):
        return os.path.realpath(model) if os.path.isdir(model) else os.path.abspath(model)
    try:
        from huggingface_hub import try_to_load_from_cache

        for name in ("config.json", "adapter_config.json", "params.json"):
            found = try_to_load_from_cache(model, name, cache_dir=cache, revision=revision)
            if isinstance(found, str):
                return os.path.dirname(found)
    except Exception:  # Other versions of the hub's library, or a name that it does not take.
        pass
    return model


def of_files(path: str) -> str:
    """The fingerprint of a folder's weights, or of one file.

    Of a snapshot in the hub's cache, name and commit: what they name never changes.
    """
    named = _SNAPSHOT.match(path)
    if named:
        return digest("hub", *named.groups())
    try:
        names = sorted(os.listdir(path)) if os.path.isdir(path) else [""]
        weights = [name for name in names if name == "" or name.endswith(_WEIGHTS)]
        if not weights:
            raise Unreadable(f"there are no weights in {path}")
        pages = max(FEWEST_PAGES_OF_A_FILE, MOST_PAGES // len(weights))
        parts: List[Any] = []
        for name in names:
            file = os.path.join(path, name) if name else path
            if name in weights:
                parts.append([name and name, *_sampled(file, pages)])
            elif _READ_WHOLE.fullmatch(name):
                with open(file, "rb") as whole:
                    parts.append([name, hashlib.sha256(whole.read()).hexdigest()])
        return digest("files", parts)
    except OSError as error:
        raise Unreadable(f"{error.strerror or error}: {error.filename or path}") from error


def stamp(path: str) -> Tuple[Any, ...]:
    """Changes when files are replaced; to be compared with one of the same node only."""
    try:
        if not os.path.isdir(path):
            return (_stamp(os.stat(path)),)
        with os.scandir(path) as found:
            return tuple(sorted((one.name, _stamp(one.stat())) for one in found if one.is_file()))
    except OSError as error:
        raise Unreadable(f"{error.strerror or error}: {error.filename or path}") from error


def _stamp(stat: os.stat_result) -> Tuple[int, int, int]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _sampled(file: str, most: int) -> Tuple[int, str]:
    """Size and hash of a file's header and of a page of each tensor, or of pages all over it."""
    content = hashlib.sha256()
    with open(file, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        offsets = _tensors(opened, size, content) if file.endswith(".safetensors") else []
        if not offsets:
            offsets = [size * i // FEWEST_PAGES_OF_A_FILE for i in range(FEWEST_PAGES_OF_A_FILE)]
        for at in _some(offsets, most):
            opened.seek(at)
            content.update(opened.read(PAGE))
        opened.seek(max(0, size - PAGE))
        content.update(opened.read(PAGE))
    return size, content.hexdigest()


def _tensors(opened: Any, size: int, content: Any) -> List[int]:
    """Where the middle of each tensor is; the header that says so is hashed as a whole."""
    start = opened.read(8)
    if len(start) < 8:
        return []
    length = struct.unpack("<Q", start)[0]
    if length > min(size, MOST_HEADER_BYTES):
        return []
    header = opened.read(length)
    content.update(header)
    try:
        tensors = json.loads(header)
        ranges = [one["data_offsets"] for name, one in tensors.items() if name != "__metadata__"]
        # Not the first bytes of a tensor, which a file that was padded or quantised may have in common.
        return sorted(8 + length + max(first, (first + end - PAGE) // 2) for first, end in ranges)
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _some(offsets: List[int], most: int) -> Iterable[int]:
    if len(offsets) <= most:
        return offsets
    return (offsets[len(offsets) * i // most] for i in range(most))
