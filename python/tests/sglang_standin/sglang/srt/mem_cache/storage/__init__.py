"""Makes the storage that ``--hicache-storage-backend dynamic`` names."""

import importlib

from sglang.srt.mem_cache.hicache_storage import HiCacheStorage


class StorageBackendFactory:
    @classmethod
    def create_backend(cls, backend_name, storage_config, mem_pool_host, **kwargs):
        if backend_name != "dynamic":
            raise ValueError(f"Unknown storage backend '{backend_name}'")
        extra = storage_config.extra_config
        for field in ("backend_name", "module_path", "class_name"):
            if field not in extra:
                raise ValueError(f"Missing required field '{field}'")
        found = getattr(importlib.import_module(extra["module_path"]), extra["class_name"])
        if not issubclass(found, HiCacheStorage):
            raise TypeError(f"{extra['class_name']} is no HiCacheStorage")
        return found(storage_config, kwargs)
