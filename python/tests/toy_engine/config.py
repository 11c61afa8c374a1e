"""The parts of vLLM's configuration that a connector reads."""

from types import SimpleNamespace
from uuid import uuid4


def make(kv_transfer_config, tp, blocks, block_tokens, mla, pp=1):
    """A VllmConfig."""
    transfer = dict(kv_transfer_config)
    extra = transfer.get("kv_connector_extra_config", {})
    return SimpleNamespace(
        instance_id=uuid4().hex[:5],
        kv_transfer_config=SimpleNamespace(
            kv_connector=transfer["kv_connector"],
            kv_connector_module_path=transfer["kv_connector_module_path"],
            kv_role=transfer.get("kv_role", "kv_both"),
            engine_id=transfer.get("engine_id") or str(uuid4()),
            kv_connector_extra_config=extra,
        ),
        parallel_config=SimpleNamespace(
            rank=0,
            tensor_parallel_size=tp,
            pipeline_parallel_size=pp,
            data_parallel_rank=transfer.get("data_parallel_rank", 0),
        ),
        model_config=SimpleNamespace(
            model=transfer.get("model", "toy"),
            dtype=transfer.get("dtype", "torch.bfloat16"),
            use_mla=mla,
            **transfer.get("model_config", {}),
        ),
        cache_config=SimpleNamespace(
            block_size=block_tokens, num_gpu_blocks=blocks, **transfer.get("cache_config", {})
        ),
    )
