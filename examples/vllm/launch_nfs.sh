#!/bin/sh
# Starts vLLM by the older names of the connector: launch_nfs.sh nfs.yaml [more arguments of vllm serve]
# UCM_HOME names the unpacked image, whose daemon is started when none runs. MODEL and TP may be set.
set -eu
config=$(realpath "${1:?name a YAML file}")
shift

exec vllm serve "${MODEL:-Qwen/Qwen2.5-14B-Instruct}" \
    --max-model-len 20000 \
    --tensor-parallel-size "${TP:-2}" \
    --gpu_memory_utilization 0.87 \
    --block_size 128 \
    --trust-remote-code \
    --port 7800 \
    --kv-transfer-config '{
        "kv_connector": "UnifiedCacheConnectorV1",
        "kv_connector_module_path": "ucm.integration.vllm.uc_connector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"UCM_CONFIG_FILE": "'"$config"'"}
    }' "$@"
