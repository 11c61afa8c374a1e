"""What is part of the identity of SGLang's pages: each thing is changed alone, and then nothing is found."""

import logging
import os
from types import SimpleNamespace

import pytest
import torch
from hicache_engine import HiCacheEngine, keys
from models import checkpoint
from test_sglang import extra
from ucm.integration.sglang import hicache, identity

LOG = logging.getLogger("test")


@pytest.fixture
def launched(monkeypatch):
    """What SGLang's own arguments say in this test."""
    said = {}
    monkeypatch.setattr(identity, "arguments", lambda: said)
    return said


CHANGES = {
    "nothing": {},
    "weights": {"weights": 1},
    "revision": {"revision": "b"},
    "quantisation": {"quantization": "fp8"},
    "rope": {"json_model_override_args": '{"rope_scaling": {"rope_type": "yarn"}}'},
    "dtype of the model": {"dtype": "float32"},
    "draft model": {"draft": True},
    "dtype of the cache": {"pool": {"dtype": torch.float16}},
    "layers and heads that make as many bytes": {"pool": {"layers": 2, "heads": 3}},
    "dimension of a head": {"pool": {"heads": 4, "dim": 4}},
    "stage of a pipeline": {"pool": {"first": 3}},
    "size of a page": {"pool": {"page_size": 8}},
    "layout": {"layout": "page_first_direct"},
    "ranks": {"tp": 2},
    "latent attention": {"mla": True},
}


def found(daemon, launched, weights=0, draft=False, layout="page_first", tp=1, mla=False, pool=(), **said):
    """Stores nothing, and says how many of the pages an engine finds."""
    folder = checkpoint(os.path.join(daemon.folder, "model"), weights)
    launched.clear()
    launched.update({"model_path": folder, "quantization": None, "dtype": "auto", **said})
    if draft:
        launched["speculative_draft_model_path"] = checkpoint(os.path.join(daemon.folder, "draft"), 5)
    engine = HiCacheEngine(extra(daemon), layout=layout, tp=tp, mla=mla, **dict(pool))
    yield engine
    engine.close()


@pytest.mark.parametrize("change", CHANGES)
def test_one_thing_is_changed_and_nothing_is_found(daemon, launched, change):
    chain = keys("p", 5)
    for engine in found(daemon, launched):
        assert engine.backup(chain) == 5
    for engine in found(daemon, launched, **CHANGES[change]):
        assert engine.prefetch(chain) == ((5, 5) if change == "nothing" else (0, 0))
    for engine in found(daemon, launched):
        assert engine.prefetch(chain) == (5, 5)


def pool(dtype=torch.uint8, **more):
    return SimpleNamespace(dtype=dtype, **more)


def test_the_type_of_the_cache_is_found_in_each_version(launched):
    e5m2 = SimpleNamespace(dtype="torch.float8_e5m2", store_dtype=torch.uint8)
    assert identity.dtype(pool(torch.bfloat16, device_pool=e5m2), {}) == "torch.bfloat16"
    assert identity.dtype(pool(device_pool=e5m2), {}) == "float8_e5m2"
    assert identity.dtype(pool(buffer_info=e5m2), {}) == "float8_e5m2"
    launched["kv_cache_dtype"] = "fp8_e4m3"
    assert identity.dtype(pool(), {}) == "fp8_e4m3"
    assert identity.dtype(pool(device_pool=e5m2), {"ucm_kv_cache_dtype": "own"}) == "own"
    # What says no more than the pool does not count.
    launched["kv_cache_dtype"] = "auto"
    for unknown in (pool(), pool(device_pool=pool())):
        with pytest.raises(identity.Refused, match="set ucm_kv_cache_dtype"):
            identity.dtype(unknown, {})


def test_arguments_are_read_of_an_object_without_a_dictionary():
    """As those of SGLang 0.5.23, of which `vars` says nothing."""

    class Arguments:
        __slots__ = __struct_fields__ = ("model_path", "enable_lora")

    said = Arguments()
    said.model_path, said.enable_lora = "/models/m", True
    assert identity._fields(said) == {"model_path": "/models/m", "enable_lora": True}
    assert identity._fields(SimpleNamespace(model_path="m")) == {"model_path": "m"}


def test_what_cannot_be_told_apart_is_refused_in_a_line(daemon, launched, caplog):
    engine = HiCacheEngine(extra(daemon), dtype=torch.uint8)
    assert "ucm_kv_cache_dtype" in caplog.text
    assert engine.backup(keys("q", 3)) == 0
    engine.close()
    launched["enable_lora"] = True
    engine = HiCacheEngine(extra(daemon))
    assert "not by the LoRA adapter" in caplog.text
    assert engine.backup(keys("q", 3)) == 0
    engine.close()


def test_a_model_of_which_nothing_is_known_is_told_by_its_name(daemon, launched, caplog):
    assert identity.Model({}, "served", LOG).weights == ""
    assert "give other weights another --served-model-name" in caplog.text
    launched["model_path"] = "/no/such/model"
    model = identity.Model({}, "served", LOG)
    assert model.config and not model.weights
    launched["load_format"] = "dummy"
    assert identity.Model({}, "served", LOG).weights
    launched.clear()
    one, other = (HiCacheEngine(extra(daemon), model=name) for name in ("a", "b"))
    assert one.backup(keys("r", 3)) == 3
    assert other.prefetch(keys("r", 3)) == (0, 0)
    one.close()
    other.close()


def test_what_was_cleared_is_not_found_by_a_later_launch(daemon, launched, monkeypatch):
    chain = keys("s", 6)
    engine = HiCacheEngine(extra(daemon), tp=2)
    assert engine.backup(chain) == 6
    for rank in engine.ranks:
        rank.storage.clear()
    assert engine.backup(chain[:4]) == 4
    assert engine.prefetch(chain) == (4, 4)
    engine.close()
    hicache._cleared.clear()
    monkeypatch.setattr(hicache, "_launch", lambda: "another")
    later = HiCacheEngine(extra(daemon), tp=2)
    # Nor what was stored with the weights of the launch before it.
    assert later.prefetch(chain) == (0, 0)
    assert later.backup(chain[:2]) == 2
    later.close()
    again = HiCacheEngine(extra(daemon), tp=2)
    assert again.prefetch(chain) == (2, 2)
    again.close()
