"""Makes connectors as the profile's vLLM does."""

import importlib
import inspect

from vllm import PROFILE


def create_connector(config, role, kv_cache_config):
    transfer = config.kv_transfer_config
    module = importlib.import_module(transfer.kv_connector_module_path)
    cls = getattr(module, transfer.kv_connector)
    if PROFILE < (0, 12):
        return cls(config, role)
    takes = inspect.signature(cls.__init__).parameters
    if "kv_cache_config" not in takes:
        if PROFILE >= (0, 21):
            raise ValueError(f"{cls.__name__} must accept kv_cache_config")
        return cls(config, role)
    return cls(config, role, kv_cache_config)
