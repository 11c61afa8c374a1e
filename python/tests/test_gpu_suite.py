"""tools/gpu/run with a small model on a simulated device, as PythonDeviceIT has it."""

import json
import os
import subprocess
import sys

import pytest

SUITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "gpu", "run")

pytestmark = pytest.mark.skipif(
    "UCM_HOME" not in os.environ or os.environ.get("SIM_CUDA_DIRECT") != "1",
    reason="there is no image (UCM_HOME) or no simulated GPU (SIM_CUDA_DIRECT)",
)
PARTS = "doctor copies equal races ttft-off ttft-direct ttft-files ttft-layerwise overhead".split()


def run(folder, *parts):
    return subprocess.run(
        [sys.executable, SUITE, *parts, "--tiny", "--out", str(folder / "out"), "--disk", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_device_is_measured_from_end_to_end(tmp_path):
    ended = run(tmp_path, *PARTS, "table", "plot")
    assert ended.returncode == 0, ended.stderr
    with open(tmp_path / "out" / "results.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    found = [line["part"] for line in lines]
    assert found.count("ttft") == 2 + 3 * 4
    assert set(found) == {part.split("-")[0] for part in PARTS}
    assert "| 320 | 1 | 80% |" in ended.stdout
    assert "| batch | both at once |" in ended.stdout
    assert (tmp_path / "out" / "ttft.svg").read_text().count("<polyline") == 7
    # What is there is not measured again.
    assert run(tmp_path, *PARTS).stdout == ""


def test_an_unknown_part_is_wrong_usage(tmp_path):
    ended = run(tmp_path, "nonsense")
    assert ended.returncode == 2
    assert "the parts are doctor" in ended.stderr


def test_a_disk_that_is_not_there_is_wrong_usage(tmp_path):
    ended = run(tmp_path / "nowhere", "copies")
    assert ended.returncode == 2
    assert "--disk is a folder that is there" in ended.stderr
