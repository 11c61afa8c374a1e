"""One wheel installed beside vLLM, and nothing else set: the launch line works."""

import glob
import json
import os
import subprocess
import sys
import sysconfig

import daemons
import pytest
import vllm_engine

pytestmark = pytest.mark.started

ENGINE = """
import json, sys
from vllm import LLM, SamplingParams
from vllm.config import KVTransferConfig

model, transfer, prompts, full = json.loads(sys.stdin.read())
llm = LLM(
    model, dtype="float32", block_size=128, max_model_len=8192, enforce_eager=True, seed=0,
    kv_transfer_config=KVTransferConfig(**transfer),
)
# What is stored is found a moment later, block by block.
for turn in range(50):
    answers = llm.generate(prompts, SamplingParams(temperature=0, max_tokens=8))
    print("ANSWERS", json.dumps([[list(one.outputs[0].token_ids), one.num_cached_tokens] for one in answers]))
    if turn > 0 and [one.num_cached_tokens for one in answers] == full:
        break
    llm.reset_prefix_cache()
"""


def wheel():
    found = glob.glob(os.path.join(os.environ.get("UCM_HOME", ""), "..", "*.whl"))
    if not found:
        pytest.skip("UCM_HOME has no wheel beside it")
    return found[0]


def answers(said):
    return [json.loads(line.split(" ", 1)[1]) for line in said.splitlines() if line.startswith("ANSWERS ")]


def test_the_launch_line_works_with_the_wheel_alone(tmp_path, model):
    environment = tmp_path / "venv"
    variables = {name: text for name, text in os.environ.items() if not name.startswith(("UCM_", "PYTHON"))}
    # What the engine's environment has, and the wheel before it.
    subprocess.run([sys._base_executable, "-m", "venv", str(environment)], check=True)
    packages = glob.glob(str(environment / "lib" / "python*" / "site-packages"))[0]
    with open(os.path.join(packages, "engine.pth"), "w", encoding="utf-8") as file:
        file.write(sysconfig.get_paths()["purelib"] + "\n")
    python = str(environment / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel()]
    subprocess.run(pip, check=True, env=variables)

    config = tmp_path / "ucm.yaml"
    config.write_text(
        "use_layerwise: false\nucm_connectors:\n  - ucm_connector_name: UcmPipelineStore\n"
        f"    ucm_connector_config:\n      store_pipeline: Posix\n      storage_backends: {tmp_path}/data\n"
    )
    (tmp_path / "data").mkdir()
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    transfer = {
        "kv_connector": "UCMConnector",
        "kv_connector_module_path": "ucm.integration.vllm.ucm_connector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"UCM_CONFIG_FILE": str(config)},
    }
    wanted = vllm_engine.prompts(seed=23, count=1)
    full = vllm_engine.full_blocks(wanted)
    variables["XDG_RUNTIME_DIR"] = str(run)
    try:
        ended = subprocess.run(
            [python, "-c", ENGINE],
            input=json.dumps([model, transfer, wanted, full]),
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        first, *_, last = answers(ended.stdout)
    except ValueError:
        raise AssertionError(ended.stdout)
    finally:
        daemons.end(str(run / "ucm" / "ucm.sock"))
    assert ended.returncode == 0, ended.stdout
    assert [tokens for tokens, _ in last] == [tokens for tokens, _ in first]
    assert first[0][1] in (0, None)
    assert [cached for _, cached in last] == full
