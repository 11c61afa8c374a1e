"""What a KV cache is like."""

from dataclasses import dataclass, field
from typing import Any, List


@dataclass
class KVCacheSpec:
    block_size: int
    page_size_bytes: int


@dataclass
class FullAttentionSpec(KVCacheSpec):
    sliding_window: Any = None
    attention_chunk_size: Any = None


@dataclass
class MLAAttentionSpec(FullAttentionSpec):
    pass


@dataclass
class MambaSpec(KVCacheSpec):
    pass


@dataclass
class KVCacheGroupSpec:
    layer_names: List[str]
    kv_cache_spec: KVCacheSpec


@dataclass
class KVCacheConfig:
    num_blocks: int
    kv_cache_tensors: List[Any] = field(default_factory=list)
    kv_cache_groups: List[KVCacheGroupSpec] = field(default_factory=list)
