#!/bin/sh
# Starts SGLang with UCM: launch.sh cache_posix.yaml [more arguments of sglang.launch_server]
# UCM_HOME names the unpacked image, whose daemon is started when none runs. MODEL and TP may be set.
set -eu
config=$(realpath "${1:?name the YAML file beside this script}")
shift

exec python3 -m sglang.launch_server \
    --model-path "${MODEL:-Qwen/Qwen2.5-14B-Instruct}" \
    --tp "${TP:-2}" \
    --port 7800 \
    --page-size 64 \
    --enable-hierarchical-cache \
    --hicache-ratio 2 \
    --hicache-mem-layout page_first \
    --hicache-io-backend kernel \
    --hicache-write-policy write_through \
    --hicache-storage-prefetch-policy timeout \
    --hicache-storage-backend dynamic \
    --hicache-storage-backend-extra-config '{
        "backend_name": "ucm",
        "module_path": "ucm.integration.sglang.hicache",
        "class_name": "UcmHiCache",
        "interface_v1": 1,
        "UCM_CONFIG_FILE": "'"$config"'"
    }' "$@"
