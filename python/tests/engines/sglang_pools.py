"""SGLang's own host pools and storages, without an engine; heads and latents of any version."""

import dataclasses
import hashlib
import importlib

import torch
from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, MLATokenToKVPool
from sglang.srt.mem_cache.storage import StorageBackendFactory

PAGE = 64
PAGES = 48


def _class(module, name):
    """Newer versions have a module for each kind of pool."""
    package = "sglang.srt.mem_cache"
    try:
        found = importlib.import_module(f"{package}.pool_host.{module}")
    except ImportError:
        found = importlib.import_module(f"{package}.memory_pool_host")
    return getattr(found, name)


def _host(kind, device, layout, page, layers, pages=PAGES, **more):
    if not hasattr(device, "get_device_pool_infos"):
        return kind(device, 2.0, 0, page, layout, pin_memory=False)
    (info,) = [one.buffer_info for one in device.get_device_pool_infos()]
    return kind(
        info,
        2.0,
        0,
        page,
        layout,
        pin_memory=False,
        device_capacity_tokens=page * pages // 2,
        start_layer=0,
        end_layer=layers,
        **more,
    )


def heads(layout="page_first", layers=3, heads=2, dim=16, dtype=torch.bfloat16, page=PAGE, pages=PAGES):
    """Keys and values of heads, as of full attention or a sliding window."""
    device = MHATokenToKVPool(
        size=page * pages // 2,
        page_size=page,
        dtype=dtype,
        head_num=heads,
        head_dim=dim,
        layer_num=layers,
        device="cpu",
        enable_memory_saver=False,
    )
    return _host(_class("mha", "MHATokenToKVPoolHost"), device, layout, page, layers, pages)


def latents(layout="page_first", layers=3, page=PAGE):
    device = MLATokenToKVPool(
        size=page * PAGES // 2,
        page_size=page,
        dtype=torch.bfloat16,
        kv_lora_rank=32,
        qk_rope_head_dim=16,
        layer_num=layers,
        device="cpu",
        enable_memory_saver=False,
    )
    kind = _class("mla", "MLATokenToKVPoolHost")
    return _host(kind, device, layout, page, layers, target_layer_num=layers)


def states(layers=2, layout="page_first", state=torch.float32):
    """States of a hybrid linear model, one for each place; the types of their two parts differ."""
    from sglang.srt.mem_cache.device_pool_info import MambaStateBufferInfo
    from sglang.srt.mem_cache.pool_host.mamba import MambaPoolHost

    info = MambaStateBufferInfo(
        temporal=torch.zeros((layers, PAGES // 2, 4, 8, 8), dtype=state),
        conv=(torch.zeros((layers, PAGES // 2, 24, 3), dtype=torch.bfloat16),),
    )
    return MambaPoolHost(
        info, 2.0, 0, device_capacity=PAGES // 2, pin_memory=False, layout=layout
    )


def compressed(layers=2, item=256):
    """One of DeepSeek V4's, whose pages hold bytes of any type."""
    from sglang.srt.mem_cache.memory_pool_host import DeepSeekV4PagedHostPool

    buffers = [torch.zeros((PAGES, item), dtype=torch.uint8) for _ in range(layers)]
    return DeepSeekV4PagedHostPool(
        "c4", buffers, item, PAGES, PAGE, layout="page_first", pin_memory=False
    )


def counting():
    """That of DeepSeek V4's KV cache, which has no bytes."""
    from sglang.srt.mem_cache.memory_pool_host import LogicalHostPool

    return LogicalHostPool(PAGE * PAGES, PAGE, "page_first")


def buffers(pool):
    """The memory of a pool."""
    found = [getattr(pool, name, None) for name in ("temporal_buffer", "kv_buffer")]
    own = next(one for one in found if one is not None)
    return [own, *getattr(pool, "conv_buffer", [])]


def fill(pool, seed):
    noise = torch.Generator().manual_seed(seed)
    for one in buffers(pool):
        raw = one.view(torch.uint8)
        raw.copy_(torch.randint(0, 256, raw.shape, generator=noise, dtype=torch.uint8))


def indices(pool, pages):
    size = pool.page_size
    return torch.tensor([page * size + i for page in pages for i in range(size)], dtype=torch.int64)


def content(pool, page):
    return pool.get_data_page(page * pool.page_size).clone().view(torch.uint8)


def keys(seed, count):
    """A chain of page hashes, as SGLang makes it of tokens."""
    found, last = [], str(seed).encode()
    for i in range(count):
        last = hashlib.sha256(last + i.to_bytes(4, "little")).digest()
        found.append(last.hex())
    return found


def make(kind, anchor, pools=(), extra=None, rank=0, size=1, mla=False, model="m"):
    """A storage of SGLang's factory, with its host pools registered as the controller does it."""
    said = dict(
        tp_rank=rank,
        tp_size=size,
        pp_rank=0,
        pp_size=1,
        attn_cp_rank=0,
        attn_cp_size=1,
        is_mla_model=mla,
        enable_storage_metrics=False,
        is_page_first_layout=anchor.layout == "page_first",
        model_name=model,
        extra_config=extra,
    )
    names = {field.name for field in dataclasses.fields(HiCacheStorageConfig)}
    config = HiCacheStorageConfig(**{key: one for key, one in said.items() if key in names})
    storage = StorageBackendFactory.create_backend(kind, config, anchor)
    storage.register_mem_pool_host(anchor)
    if pools:
        from sglang.srt.mem_cache.hicache_storage import PoolName

        for name, pool in {PoolName.KV: anchor, **pools}.items():
            storage.register_mem_host_pool_v2(pool, name)
    if hasattr(storage, "on_host_pools_registered"):
        storage.on_host_pools_registered()
    return storage
