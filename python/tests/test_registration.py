"""An engine starts: what the connector makes of what it is given, and that nothing of it stops the engine."""

import logging
from types import SimpleNamespace

import pytest
import torch
from toy_engine import config
from ucm.integration.vllm import compat, engine
from ucm.integration.vllm.metadata import UCMConnectorMetadata
from ucm.integration.vllm.scheduler import SchedulerSide
from ucm.integration.vllm.worker import WorkerSide

BLOCKS, TOKENS, HEADS, SIZE = 8, 16, 3, 8


def transfer(tmp_path, **extra):
    return {
        "kv_connector": "UCMConnector",
        "kv_connector_module_path": "ucm.integration.vllm.ucm_connector",
        "kv_connector_extra_config": {
            "ucm_socket": str(tmp_path / "ucm.sock"),
            "ucm_start_daemon": False,
            **extra,
        },
    }


@pytest.fixture
def made(tmp_path, monkeypatch):
    """An engine's configuration as the worker of vLLM 0.9 to 0.11.0 has it: without a number of blocks."""
    monkeypatch.setattr("ucm.client.Link.start", lambda self, seconds: None)
    made = config.make(transfer(tmp_path, ucm_connector_name="UcmNfsStore"), 1, None, TOKENS, False)
    layer = SimpleNamespace(num_kv_heads=HEADS, head_size=SIZE)
    layers = {"model.layers.0.attn": layer, "model.layers.1.attn": layer}
    made.compilation_config = SimpleNamespace(static_forward_context=layers)
    return made


def lines(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "vllm.ucm"]


@pytest.mark.parametrize(
    "shape",
    [
        (2, BLOCKS, TOKENS, HEADS, SIZE),
        (BLOCKS, 2, TOKENS, HEADS, SIZE),
        (2, BLOCKS, TOKENS * HEADS * SIZE),
        (BLOCKS * 2, 2, TOKENS // 2, HEADS, SIZE),
    ],
    ids=["planes", "pairs", "of a CPU", "smaller kernel blocks"],
)
def test_blocks_are_counted_from_the_tensors_where_vllm_does_not_say_how_many(made, shape):
    side = WorkerSide(made, None)
    side.register({name: torch.zeros(shape) for name in made.compilation_config.static_forward_context})
    assert side._link is not None
    assert sum(side._layout.tensor_bytes[0]) == 4 * 2 * TOKENS * HEADS * SIZE


@pytest.mark.parametrize("size, dtype", [(576, torch.bfloat16), (656, torch.uint8)])
def test_blocks_of_mla_are_counted_also_where_a_token_has_more_numbers_than_its_layer_says(
    made, size, dtype
):
    made.model_config.use_mla = True
    made.compilation_config.static_forward_context = {}
    tensors = {"model.layers.0.attn": torch.zeros(BLOCKS, TOKENS, size, dtype=dtype)}
    assert compat.block_count(made, None, tensors) == BLOCKS


def test_parts_of_a_layer_count_together(made):
    part = torch.zeros(BLOCKS, TOKENS, HEADS, SIZE)
    assert compat.block_count(made, None, {"model.layers.1.attn": [part, part]}) == BLOCKS


def test_what_vllm_says_comes_first(made):
    tensors = {"model.layers.0.attn": torch.zeros(2, BLOCKS, TOKENS, HEADS, SIZE)}
    assert compat.block_count(made, SimpleNamespace(num_blocks=5), tensors) == 5
    made.cache_config.num_gpu_blocks = 6
    assert compat.block_count(made, None, tensors) == 6


@pytest.mark.parametrize(
    "tensors, said",
    [
        ({"other": torch.zeros(2, 8, 16, 3, 8)}, "the number of blocks of the KV cache is not known"),
        ({}, "the number of blocks of the KV cache is not known"),
        ({"model.layers.0.attn": object()}, "AttributeError: 'object' object has no attribute 'numel'"),
        (None, "AttributeError: 'NoneType' object has no attribute 'items'"),
    ],
)
def test_whatever_goes_wrong_in_register_is_said_once_and_the_engine_goes_on(
    made, caplog, tensors, said
):
    side = WorkerSide(made, None)
    side.register(tensors)
    assert [line for line in lines(caplog) if said in line] == lines(caplog)
    assert len(lines(caplog)) == 1 and "so nothing is found or saved" in lines(caplog)[0]
    _run(side)


def _run(side):
    side.start_load(UCMConnectorMetadata([], []))
    side.wait_for_layer_load("model.layers.0.attn")
    side.save_layer("model.layers.0.attn")
    side.wait_for_save()
    side.end_step()
    side.await_saves()
    assert (side.take_finished(), side.take_errors()) == ((None, None), set())
    side.close()


def _step():
    return SimpleNamespace(
        scheduled_new_reqs=[], scheduled_cached_reqs=[], num_scheduled_tokens={"a": 1}, preempted_req_ids=None
    )


def _schedule(side):
    request = SimpleNamespace(request_id="a", prompt_token_ids=[1] * 40, num_tokens=40)
    assert side.matched_tokens(request, 0) == (0, False)
    side.allocated(request, None, 0)
    assert side.build_meta(_step()).loads == []
    side.worker_output(SimpleNamespace(finished_recving=None, invalid_block_ids=set()))
    assert side.finished(request) is False
    assert side.reset() is True
    side.close()


@pytest.mark.parametrize("where", ["compat.refusal", "compat.is_mla", "engine.extra_config"])
def test_whatever_goes_wrong_in_the_constructor_is_said_and_the_engine_goes_on(
    made, caplog, monkeypatch, where
):
    def fail(*_):
        raise RuntimeError("as a later vLLM may")

    monkeypatch.setattr(f"ucm.integration.vllm.{where}", fail)
    worker = WorkerSide(made, None)
    worker.register({"model.layers.0.attn": torch.zeros(2, BLOCKS, TOKENS, HEADS, SIZE)})
    _run(worker)
    _schedule(SchedulerSide(made, None))
    assert lines(caplog) == 2 * [
        "UCM: RuntimeError: as a later vLLM may, so nothing is found or saved; please report this"
    ]


@pytest.mark.parametrize("content", [None, b"store_pipeline: \xff\n"], ids=["missing", "not UTF-8"])
def test_a_file_that_cannot_be_read_is_said_as_that_on_both_sides(tmp_path, made, caplog, content):
    path = tmp_path / "ucm.yaml"
    if content is not None:
        path.write_bytes(content)
    made.kv_transfer_config.kv_connector_extra_config["UCM_CONFIG_FILE"] = str(path)
    worker = WorkerSide(made, None)
    worker.register({"model.layers.0.attn": torch.zeros(2, BLOCKS, TOKENS, HEADS, SIZE)})
    _run(worker)
    _schedule(SchedulerSide(made, None))
    why = "it is not UTF-8: " if content is not None else "No such file or directory"
    said = f"UCM: UCM_CONFIG_FILE names {path}, which cannot be read ({why}"
    assert len(lines(caplog)) == 2 and all(line.startswith(said) for line in lines(caplog))
    assert all("start the engine again, so nothing is found" in line for line in lines(caplog))
    assert not any(record.exc_info for record in caplog.records)


def test_lines_have_the_form_and_the_level_of_the_engine():
    """vLLM gives its logger alone a handler; the lines of others are lost below WARNING."""
    vllm, log = logging.getLogger("vllm"), compat.logger()
    assert log.parent is vllm and log.level == logging.NOTSET and log.propagate and not log.handlers


def test_an_engine_is_described_once_for_all_its_connections(tmp_path, made):
    path = tmp_path / "ucm.yaml"
    path.write_text("a: 1\n")
    made.kv_transfer_config.kv_connector_extra_config["UCM_CONFIG_FILE"] = str(path)
    worker = WorkerSide(made, None)
    worker.register({"model.layers.0.attn": torch.zeros(2, BLOCKS, TOKENS, HEADS, SIZE)})
    # A daemon that comes back would refuse ranks that say something else than their scheduler.
    path.write_text("a: 2\n")
    assert worker._engine.config == "a: 1\n" != engine.describe(made).config


# -- engines that cannot be served -----------------------------------------------------------------


def pooling(of_sequences=None, of_tokens=None, one=None):
    return SimpleNamespace(seq_pooling_type=of_sequences, tok_pooling_type=of_tokens, pooling_type=one)


@pytest.mark.parametrize(
    "model, said",
    [
        ({"is_prefix_caching_supported": False, "pooler_config": pooling("MEAN", "ALL")}, "MEAN/ALL pooling"),
        ({"is_prefix_caching_supported": False, "pooler_config": pooling("LAST", "STEP")}, "LAST/STEP"),
        ({"is_prefix_caching_supported": False}, "this architecture"),
        ({"pooler_config": pooling(one="CLS"), "hf_config": SimpleNamespace()}, "CLS pooling"),
        ({"pooler_config": pooling(), "hf_config": SimpleNamespace()}, "this architecture"),
        ({"pooler_config": pooling(one="LAST"), "hf_config": SimpleNamespace(is_causal=False)}, "LAST"),
        ({"is_encoder_decoder": True}, "this architecture"),
    ],
)
def test_models_whose_prompts_cannot_be_continued_are_not_served(made, caplog, model, said):
    vars(made.model_config).update(model)
    _schedule(SchedulerSide(made, None))
    assert len(lines(caplog)) == 1
    assert "cannot be continued from a cache" in lines(caplog)[0] and said in lines(caplog)[0]
    worker = WorkerSide(made, None)
    worker.register({"model.layers.0.attn": torch.zeros(2, BLOCKS, TOKENS, HEADS, SIZE)})
    assert worker._link is None
    _run(worker)


@pytest.mark.parametrize(
    "model",
    [
        {"is_prefix_caching_supported": True, "pooler_config": pooling("LAST", "ALL")},
        {"pooler_config": pooling(one="LAST"), "hf_config": SimpleNamespace()},
        {"pooler_config": None, "is_encoder_decoder": False},
    ],
)
def test_models_whose_prompts_can_be_continued_are_served(made, model):
    vars(made.model_config).update(model)
    assert compat.refusal(made, None) is None


def test_non_causal_attention_is_not_served(made):
    made.attention_config = SimpleNamespace(use_non_causal=True)
    assert "non-causal" in compat.refusal(made, None)
    made.attention_config.use_non_causal = False
    assert compat.refusal(made, None) is None


@pytest.mark.parametrize(
    "cpu, chunks, caches, served",
    [(True, False, False, False), (True, True, True, True), (False, False, False, True)],
    ids=["reference kernels", "kernels that read the cache", "GPU"],
)
def test_mla_is_served_where_cached_context_is_read(made, monkeypatch, cpu, chunks, caches, served):
    monkeypatch.setattr(compat, "_is_cpu", lambda: cpu)
    made.model_config.use_mla = True
    made.scheduler_config = SimpleNamespace(enable_chunked_prefill=chunks)
    made.cache_config.enable_prefix_caching = caches
    assert (compat.refusal(made, None) is None) is served


def test_windows_and_chunks_with_all_their_blocks_are_served(made):
    class FullAttentionSpec:
        sliding_window, attention_chunk_size = 512, 8192

    group = SimpleNamespace(kv_cache_spec=FullAttentionSpec())
    assert compat.refusal(made, SimpleNamespace(kv_cache_groups=[group])) is None


@pytest.mark.parametrize("of", ["layers.0", "layers.1"])
def test_a_layer_that_looks_at_the_kv_of_another_one_is_in_its_group(made, of):
    """Groups may have the same memory, so only the layer says which one it is of."""
    layers = {name: SimpleNamespace(kv_sharing_target_layer_name=None) for name in ("layers.0", "layers.1")}
    groups = SimpleNamespace(kv_cache_groups=[SimpleNamespace(layer_names=[name]) for name in layers])
    last = layers["layers.2"] = SimpleNamespace(kv_sharing_target_layer_name=of)
    made.compilation_config.static_forward_context = layers
    found = compat.by_group(made, groups, dict.fromkeys(layers, torch.zeros(1)))
    assert [set(one) for one in found if "layers.2" in one] == [{of, "layers.2"}]
    last.kv_sharing_target_layer_name = None
    with pytest.raises(compat.NotServed, match="in no group of KV caches: layers.2"):
        compat.by_group(made, groups, dict.fromkeys(layers, torch.zeros(1)))


@pytest.mark.parametrize(
    "key, meant",
    [
        ("UCM_CONFIG_FIEL", "UCM_CONFIG_FILE"),
        ("ucm_config_file", "UCM_CONFIG_FILE"),
        ("store_pipelin", "store_pipeline"),
        ("ucm_conectors", "ucm_connectors"),
    ],
)
def test_a_misspelt_key_of_the_launch_line_gets_what_was_meant(tmp_path, made, caplog, key, meant):
    made.kv_transfer_config.kv_connector_extra_config = transfer(tmp_path, **{key: "x"})[
        "kv_connector_extra_config"
    ]
    _schedule(SchedulerSide(made, None))
    said = f"UCM: kv_connector_extra_config has the key {key}, which is none: did you mean {meant}? "
    assert [line[: len(said)] for line in lines(caplog)] == [said]


def test_keys_of_others_are_left_to_the_daemon(tmp_path):
    extra = {"use_layerwise": True, "ucm_connector_name": "UcmNfsStore", "storage_backends": "/x"}
    assert "storage_backends" in engine.store_config(extra)[1]
