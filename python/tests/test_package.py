"""The package as it is shipped: types, style, the wheel, and what an import costs."""

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def needs(module, package):
    return pytest.mark.skipif(
        importlib.util.find_spec(module) is None, reason=f"needs the Debian package {package}"
    )


def run(*command, **more):
    ended = subprocess.run(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@needs("mypy", "mypy")
def test_types(tmp_path):
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    run("-m", "mypy", "--cache-dir", str(tmp_path), "ucm", cwd=ROOT, env=environment)


@needs("flake8", "flake8")
def test_style():
    run("-m", "flake8", "ucm", "tests", cwd=ROOT)


@needs("wheel", "python3-wheel")
def test_the_wheel_is_built_and_can_be_imported(tmp_path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("tests", "*.egg-info", "build", "__pycache__")
    shutil.copytree(ROOT, source, ignore=ignored)
    build = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"
    name = run("-c", build, str(tmp_path), cwd=source).split()[-1]
    with zipfile.ZipFile(tmp_path / name) as wheel:
        names = wheel.namelist()
        wheel.extractall(tmp_path / "installed")
    assert "ucm/integration/vllm/ucm_connector.py" in names
    assert "ucm/integration/vllm/uc_connector.py" in names
    assert "ucm/integration/sglang/hicache.py" in names
    assert "ucm/py.typed" in names
    assert not [one for one in names if "test" in one]
    program = "import sys; sys.path.insert(0, sys.argv[1]); import ucm.client; print(ucm.__version__)"
    run("-I", "-c", program, str(tmp_path / "installed"))


def test_an_import_touches_no_torch_no_thread_and_no_socket():
    program = (
        "import sys, threading, os;"
        "before = len(os.listdir('/proc/self/fd'));"
        "import ucm.integration.vllm.ucm_connector, ucm.integration.sglang.hicache;"
        "assert 'torch' not in sys.modules;"
        "assert threading.active_count() == 1;"
        "assert len(os.listdir('/proc/self/fd')) == before"
    )
    run("-c", program)
