"""tools/engines/venv: what it does with environments that are there, without a registry."""

import mmap
import os
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

VENV = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "engines", "venv")


@pytest.fixture
def venv(tmp_path, monkeypatch):
    monkeypatch.setenv("UCM_ENGINES", str(tmp_path))
    loader = SourceFileLoader("ucm_engines_venv", VENV)
    module = module_from_spec(spec_from_loader(loader.name, loader))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "run", lambda command: None)
    return module


def test_room_is_made_of_environments_that_no_process_uses(venv, tmp_path):
    first, second, third = (tmp_path / name for name in venv.versions()[-3:])
    for folder in (first, second, third):
        folder.mkdir()
        (folder / "library").write_bytes(b"x" * 4096)
    with open(first / "library", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        venv.Environment(*third.name.split("-"))._remove_others()
    assert (first.exists(), second.exists(), third.exists()) == (True, False, True)
