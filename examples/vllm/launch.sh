#!/bin/sh
# Starts vLLM with UCM: launch.sh cache_posix.yaml [more arguments of vllm serve]
# UCM_HOME names the unpacked image, whose daemon is started when none runs. MODEL and TP may be set.
set -eu
config=$(realpath "${1:?name one of the YAML files beside this script}")
shift

exec vllm serve "${MODEL:-Qwen/Qwen2.5-14B-Instruct}" \
    --max-model-len 20000 \
    --tensor-parallel-size "${TP:-2}" \
    --gpu_memory_utilization 0.87 \
    --block_size 128 \
    --trust-remote-code \
    --port 7800 \
    --kv-transfer-config '{
        "kv_connector": "UCMConnector",
        "kv_connector_module_path": "ucm.integration.vllm.ucm_connector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"UCM_CONFIG_FILE": "'"$config"'"}
    }' "$@"
