"""Models, adapters and times other than those which stored blocks: nothing is found, answers are right."""

import json
import os
import shutil

import pytest
import vllm_engine
from vllm_engine import apart, cached, difference, forget, full_blocks, generate, prompts

# They share nothing, so that the engine finds no blocks of its own.
WANTED = prompts(count=2, shared=0)
NOTHING = [0] * len(WANTED)
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 1024,
}


def answers(llm, tell, hear):
    return generate(llm, WANTED)


def twice(llm, tell, hear):
    first = generate(llm, WANTED)
    forget(llm)
    return first, generate(llm, WANTED)


@pytest.fixture
def copied(model, tmp_path):
    """A copy of the model that the test may change."""
    return shutil.copytree(model, tmp_path / "model")


def change_weights(folder):
    """The layers are other ones, with the same names and shapes."""
    apart(_flip_layers, folder)


def _flip_layers(folder):
    from safetensors.torch import load_file, save_file

    for name in os.listdir(folder):
        if name.endswith(".safetensors"):
            path = os.path.join(folder, name)
            tensors = load_file(path)
            other = {
                key: value.flip(0).contiguous() if "layers" in key else value
                for key, value in tensors.items()
            }
            save_file(other, path, {"format": "pt"})


def by_path(daemon, yes):
    more = "model_fingerprint: path\n" if yes else ""
    daemon.write_yaml("Posix", f"use_layerwise: false\n{more}")


@pytest.mark.short
@pytest.mark.newest
def test_weights_replaced_under_one_path(engine, daemon, copied):
    before, again = engine(twice, daemon, model=str(copied)).result()
    assert cached(again) == full_blocks(WANTED) and difference(again, before) is None
    # The negative control, and what `model_fingerprint: path` risks.
    by_path(daemon, True)
    engine(answers, daemon, model=str(copied)).result()
    change_weights(copied)
    found = engine(answers, daemon, model=str(copied)).result()
    assert cached(found) == full_blocks(WANTED)
    expected = engine(answers, model=str(copied)).result()
    assert difference(found, expected) is not None
    assert difference(expected, before) is not None
    by_path(daemon, False)
    found = engine(answers, daemon, model=str(copied)).result()
    assert cached(found) == NOTHING
    assert difference(found, expected) is None


@pytest.mark.full
def test_a_copy_elsewhere_is_the_same_model(engine, daemon, model, copied):
    before = engine(answers, daemon, model=model).result()
    found = engine(answers, daemon, model=str(copied)).result()
    assert cached(found) == full_blocks(WANTED)
    assert difference(found, before) is None


def test_overridden_rope(engine, daemon, model):
    import transformers

    # Transformers before 5 have the second name alone, which vLLM since 0.13 has read by then.
    names = ["rope_parameters"] + ["rope_scaling"] * (int(transformers.__version__.split(".")[0]) < 5)
    yarn = {"hf_overrides": dict.fromkeys(names, YARN), "max_model_len": 4096}
    before = engine(answers, daemon).result()
    expected = engine(answers, **yarn).result()
    assert difference(expected, before) is not None
    found, again = engine(twice, daemon, **yarn).result()
    assert cached(found) == NOTHING
    assert difference(found, expected) is None
    assert cached(again) == full_blocks(WANTED)


def make_adapter(folder, model, seed):
    """A LoRA adapter for queries, keys and values, large enough for other answers."""
    apart(_write_adapter, folder, model, seed)
    return str(folder)


def _write_adapter(folder, model, seed):
    import torch
    from safetensors.torch import save_file

    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    hidden = config["hidden_size"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        for name, out in (("q_proj", heads), ("k_proj", kv_heads), ("v_proj", kv_heads)):
            at = f"base_model.model.model.layers.{layer}.self_attn.{name}."
            for side, shape in (("lora_A", (8, hidden)), ("lora_B", (out * head, 8))):
                tensors[f"{at}{side}.weight"] = 0.3 * torch.randn(shape, generator=generator)
    os.makedirs(folder, exist_ok=True)
    save_file(tensors, os.path.join(folder, "adapter_model.safetensors"))
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
        modules = ["q_proj", "k_proj", "v_proj"]
        config = {"peft_type": "LORA", "r": 8, "lora_alpha": 8, "target_modules": modules}
        json.dump({**config, "task_type": "CAUSAL_LM", "bias": "none"}, file)


def adapted(folder, number=1):
    """Answers of the adapter `sql`."""

    def scenario(llm, tell, hear):
        from vllm.lora.request import LoRARequest

        return generate(llm, WANTED, adapter=LoRARequest("sql", number, folder))

    return scenario


LORA = {"enable_lora": True, "max_lora_rank": 8}


@pytest.mark.full
def test_an_adapter_of_another_path_under_one_name(engine, daemon, model, tmp_path):
    first, second = (make_adapter(tmp_path / f"v{i}", model, i) for i in (1, 2))
    before = engine(adapted(first), daemon, **LORA).result()
    assert cached(before) == NOTHING
    assert cached(engine(adapted(first), daemon, **LORA).result()) == full_blocks(WANTED)
    expected = engine(adapted(second), **LORA).result()
    assert difference(expected, before) is not None
    found = engine(adapted(second), daemon, **LORA).result()
    assert cached(found) == NOTHING
    assert difference(found, expected) is None
    # Nor does the model itself get blocks of an adapter.
    assert cached(engine(answers, daemon, **LORA).result()) == NOTHING


def test_an_adapter_replaced_under_its_path(engine, daemon, model, tmp_path):
    folder = make_adapter(tmp_path / "v", model, 1)
    before = engine(adapted(folder), daemon, **LORA).result()
    make_adapter(tmp_path / "v", model, 2)
    expected = engine(adapted(folder), **LORA).result()
    assert difference(expected, before) is not None
    found = engine(adapted(folder), daemon, **LORA).result()
    assert cached(found) == NOTHING
    assert difference(found, expected) is None


def reset_twice(llm, tell, hear):
    """Blocks that are stored and found, a reset of all caches, and what is found then, twice."""
    generate(llm, WANTED)
    forget(llm)
    before = generate(llm, WANTED)
    done = llm.llm_engine.reset_prefix_cache(reset_connector=True)
    tell(done)
    hear()
    after = generate(llm, WANTED)
    forget(llm)
    return before, after, generate(llm, WANTED)


@pytest.mark.full
@pytest.mark.skipif(vllm_engine.version() < (0, 15, 0), reason="does not reset a connector")
def test_what_was_disowned_is_not_found_after_restarts(engine, daemon):
    running = engine(reset_twice, daemon)
    running.receive()
    # The daemon forgets what it knew of the engine.
    daemon.restart()
    running.send("restarted")
    before, after, again = running.result()
    assert cached(before) == full_blocks(WANTED)
    assert cached(after) == NOTHING
    assert difference(again, before) is None
    assert cached(engine(answers, daemon).result()) == NOTHING
    assert cached(engine(answers, daemon).result()) == full_blocks(WANTED)
