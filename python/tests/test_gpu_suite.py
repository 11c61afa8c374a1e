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
SOME = "copies equal races ttft-off ttft-direct".split()
ALL = [*SOME, "doctor", "ttft-files", "ttft-layerwise", "overhead"]


def run(folder, *parts):
    return subprocess.run(
        [sys.executable, SUITE, *parts, "--tiny", "--out", str(folder / "out"), "--disk", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("parts", [SOME, pytest.param(ALL, marks=pytest.mark.full)], ids=["some", "all"])
def test_a_device_is_measured_from_end_to_end(tmp_path, parts):
    modes = sum(part.startswith("ttft-") for part in parts) - 1
    ended = run(tmp_path, *parts, "table", "plot")
    assert ended.returncode == 0, ended.stderr
    with open(tmp_path / "out" / "results.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    found = [line["part"] for line in lines]
    assert found.count("ttft") == 2 + 4 * modes
    assert set(found) == {part.split("-")[0] for part in parts}
    assert "| 320 | 1 | 80% |" in ended.stdout
    assert "| load, without the look-up |" in ended.stdout
    assert (tmp_path / "out" / "ttft.svg").read_text().count("<polyline") == 1 + 2 * modes
    # What is there is not measured again.
    assert run(tmp_path, *parts).stdout == ""


def test_an_unknown_part_is_wrong_usage(tmp_path):
    ended = run(tmp_path, "nonsense")
    assert ended.returncode == 2
    assert "the parts are doctor" in ended.stderr


def test_a_disk_that_is_not_there_is_wrong_usage(tmp_path):
    ended = run(tmp_path / "nowhere", "copies")
    assert ended.returncode == 2
    assert "--disk is a folder that is there" in ended.stderr
