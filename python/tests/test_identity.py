"""What is part of the identity of a KV cache: each thing is changed alone, and then nothing is found."""

import copy
import logging
import os
import shutil
from types import SimpleNamespace

import pytest
import torch
from models import checkpoint, poke, tensors
from test_end_to_end import settle
from toy_engine import ToyEngine
from ucm import fingerprint
from ucm.integration.vllm import compat, identity
from ucm.layout import KvLayout, Layer
from ucm.protocol import Input

LOG = logging.getLogger("test")


# -- files -----------------------------------------------------------------------------------------


def middle(number):
    """The middle of a tensor of `checkpoint`, which has 20,000 bytes."""
    return lambda folder: poke(
        os.path.join(folder, "model-1.safetensors"),
        os.path.getsize(os.path.join(folder, "model-1.safetensors")) - (2 - number) * 20_000 + 10_000,
    )


def write(name, text):
    def change(folder):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    return change


FILES = {
    "the first tensor": middle(0),
    "the last tensor of a file": middle(1),
    "all weights": lambda folder: checkpoint(folder, seed=1),
    "the name of a tensor": lambda folder: tensors(
        os.path.join(folder, "model-1.safetensors"), ["layers.2.weight", "layers.9.weight"], "0/1"
    ),
    "one file more": lambda folder: tensors(os.path.join(folder, "model-3.safetensors"), ["x"], 1),
    "one file less": lambda folder: os.remove(os.path.join(folder, "model-2.safetensors")),
    "files change places": lambda folder: [
        os.rename(*(os.path.join(folder, f"model-{one}.safetensors") for one in pair))
        for pair in ((1, 9), (2, 1), (9, 2))
    ],
    "code of the model": write("modeling_own.py", "scale = 2\n"),
    "how weights are quantised": write("quantize_config.json", '{"bits": 4}'),
}


@pytest.mark.parametrize("change", FILES)
def test_other_files_have_another_fingerprint(tmp_path, change):
    folder = checkpoint(str(tmp_path / "a"))
    before = fingerprint.of_files(folder)
    FILES[change](folder)
    assert fingerprint.of_files(folder) != before


def test_the_same_files_elsewhere_have_the_same_fingerprint(tmp_path):
    folder = checkpoint(str(tmp_path / "a"))
    other = checkpoint(str(tmp_path / "b"))
    os.utime(os.path.join(other, "model-1.safetensors"), (1, 1))
    write("README.md", "# text")(other)
    write("tokenizer.json", "{}")(other)
    assert fingerprint.of_files(folder) == fingerprint.of_files(other)
    assert fingerprint.of_files(os.path.join(folder, "model-1.safetensors")) == fingerprint.of_files(
        os.path.join(other, "model-1.safetensors")
    )


@pytest.mark.parametrize("names", [["model.gguf"], ["pytorch_model.bin"]])
def test_files_without_a_header_are_sampled(tmp_path, names):
    for name in names:
        with open(tmp_path / name, "wb") as file:
            file.write(bytes(200_000))
    before = fingerprint.of_files(str(tmp_path))
    poke(tmp_path / names[0], 100_001)
    assert fingerprint.of_files(str(tmp_path)) != before


def test_a_damaged_header_is_sampled_like_any_file(tmp_path):
    with open(tmp_path / "model.safetensors", "wb") as file:
        file.write(b"\x10\0\0\0\0\0\0\0{not json        " + bytes(50_000))
    before = fingerprint.of_files(str(tmp_path))
    poke(tmp_path / "model.safetensors", 50_000)
    assert fingerprint.of_files(str(tmp_path)) != before


def test_a_snapshot_of_the_hub_is_its_name_and_commit(tmp_path):
    def of(name, commit):
        return str(tmp_path / "hub" / f"models--{name}" / "snapshots" / commit)

    one = fingerprint.of_files(of("Qwen--QwQ-32B", "a" * 40))
    assert one == fingerprint.of_files(of("Qwen--QwQ-32B", "a" * 40) + "/")
    assert one != fingerprint.of_files(of("Qwen--QwQ-32B", "b" * 40))
    assert one != fingerprint.of_files(of("Qwen--QwQ", "a" * 40))


@pytest.mark.parametrize("where", ["missing", "empty"])
def test_files_that_cannot_be_read_have_none_and_say_why(tmp_path, where):
    os.makedirs(tmp_path / "empty")
    with pytest.raises(fingerprint.Unreadable, match=where):
        fingerprint.of_files(str(tmp_path / where))


def test_a_fingerprint_is_the_same_in_each_process():
    class Odd:
        pass

    value = {"b": {1, "x", 2.5}, "a": [torch.bfloat16, None], "odd": Odd()}
    assert fingerprint.plain(value)["odd"].endswith("Odd")
    again = {"odd": Odd(), "a": (torch.bfloat16, None), "b": {2.5, 1, "x"}}
    assert fingerprint.digest(value) == fingerprint.digest(again)


# -- a model ---------------------------------------------------------------------------------------


def engine_config(folder, **more):
    config = SimpleNamespace(
        instance_id="1a2b3",
        model_config=SimpleNamespace(
            model=folder,
            revision=None,
            quantization=None,
            dtype=torch.bfloat16,
            max_model_len=4096,
            seed=0,
            hf_config={
                "_name_or_path": folder,
                "transformers_version": "4",
                "num_hidden_layers": 4,
                "rope_scaling": None,
                "rope_theta": 10000.0,
            },
        ),
        load_config=SimpleNamespace(load_format="auto", download_dir=None, model_loader_extra_config={}),
        speculative_config=None,
    )
    for path, value in more.items():
        *to, last = path.split("__")
        at = config
        for name in to:
            at = getattr(at, name)
        setattr(at, last, value)
    return config


def hf(**changed):
    def change(config):
        config.model_config.hf_config.update(changed)

    return change


def of_model(**changed):
    return lambda config: vars(config.model_config).update(changed)


MODEL = {
    "rope scaling": hf(rope_scaling={"rope_type": "yarn", "factor": 4.0}),
    "rope theta": hf(rope_theta=500000.0),
    "layers": hf(num_hidden_layers=3),
    "quantisation": of_model(quantization="fp8"),
    "revision": of_model(revision="other"),
    "code revision": of_model(code_revision="other"),
    "dtype": of_model(dtype=torch.float16),
    "implementation": of_model(model_impl="transformers"),
    "no sliding windows": of_model(disable_sliding_window=True),
    "latent attention off": of_model(use_mla=True),
    "how it is loaded": lambda config: setattr(config.load_config, "load_format", "bitsandbytes"),
    "a draft model": lambda config: setattr(
        config, "speculative_config", SimpleNamespace(draft_model_config=copy.copy(config.model_config))
    ),
}


@pytest.mark.parametrize("change", MODEL)
def test_another_configuration_has_another_fingerprint(tmp_path, change):
    config = engine_config(checkpoint(str(tmp_path / "m")))
    before = identity.of_engine(config, LOG)
    MODEL[change](config)
    assert identity.of_engine(config, LOG).config != before.config


def test_what_does_not_change_the_kv_cache_is_no_part_of_it(tmp_path):
    config = engine_config(checkpoint(str(tmp_path / "m")))
    other = engine_config(
        checkpoint(str(tmp_path / "copied")),
        instance_id="other",
        model_config__max_model_len=8192,
        model_config__seed=7,
        load_config__download_dir="/elsewhere",
    )
    other.model_config.hf_config["transformers_version"] = "5"
    assert identity.of_engine(other, LOG)[1:] == identity.of_engine(config, LOG)[1:]
    longrope = {"rope_type": "longrope", "long_factor": [1.0]}
    for one in (config, other):
        one.model_config.hf_config["rope_scaling"] = longrope
    # There the longest sequence chooses the factors.
    assert identity.of_engine(other, LOG).config != identity.of_engine(config, LOG).config


def test_weights_that_cannot_be_told_are_said(tmp_path, caplog):
    config = engine_config(str(tmp_path / "nothing"))
    assert identity.of_engine(config, LOG).weights == ""
    assert "cannot be told from others by their files" in caplog.text
    config.load_config.load_format = "dummy"
    assert identity.of_engine(config, LOG).weights != ""


# -- the bytes of a block --------------------------------------------------------------------------


def text_of(dtypes, cache_dtype="auto", model=torch.bfloat16, **cache):
    layers = [Layer(f"l.{i}", [], [1], "", dtype) for i, dtype in enumerate(dtypes)]
    config = SimpleNamespace(
        instance_id=cache.pop("instance_id", "1a2b3"),
        model_config=SimpleNamespace(dtype=model),
        cache_config=SimpleNamespace(cache_dtype=cache_dtype, **cache),
    )
    return compat.layout_text(config, KvLayout(layers, "", {}, []))


def test_the_type_of_the_cache_is_part_of_the_layout_to_the_last_letter():
    own, bytes_of = torch.bfloat16, torch.uint8
    plain = [
        text_of([own, own]), text_of([own, own], "bfloat16"), text_of([own, bytes_of]),
    ]  # fmt: skip
    assert plain == ["", "", ""]
    others = [
        text_of([bytes_of] * 2, "fp8_e4m3"),
        text_of([bytes_of] * 2, "fp8_e5m2"),
        text_of([bytes_of] * 2, "fp8"),
        text_of([bytes_of] * 2, "auto"),
        text_of([own, bytes_of], "fp8_e4m3"),
        text_of([bytes_of, own], "fp8_e4m3"),
        text_of([torch.float32] * 2, "float32"),
        text_of([bytes_of] * 2, "fp8", calculate_kv_scales=True),
        text_of([bytes_of] * 2, "fp8", calculate_kv_scales=True, instance_id="other"),
    ]
    assert "" not in others and len(set(others)) == len(others)


# -- requests --------------------------------------------------------------------------------------


def adapter(path, number=1, **more):
    return SimpleNamespace(lora_name="sql", lora_int_id=number, lora_path=path, **more)


def test_an_adapter_is_its_files(tmp_path, caplog):
    first = checkpoint(str(tmp_path / "v1"), 1, adapter=True)
    second = checkpoint(str(tmp_path / "v2"), 2, adapter=True)
    same = checkpoint(str(tmp_path / "again"), 1, adapter=True)
    adapters = identity.Adapters(LOG)
    of = adapters.of(adapter(first))
    assert of and of == adapters.of(adapter(first)) == adapters.of(adapter(same, 2))
    assert of != adapters.of(adapter(second))
    # Other files under its path and its id: which ones are in memory is not known.
    shutil.rmtree(first)
    checkpoint(first, 3, adapter=True)
    assert adapters.of(adapter(first)) is None and adapters.of(adapter(first)) is None
    assert caplog.text.count("has changed since it was loaded") == 1
    # Loaded as a new adapter, or in place of the old one, they are known.
    assert adapters.of(adapter(first, 4)) not in (None, of)
    assert adapters.of(adapter(first, load_inplace=True)) == adapters.of(adapter(first, 4))


@pytest.mark.parametrize("path", ["/no/such/adapter", ""])
def test_an_adapter_that_cannot_be_read_has_no_hits_and_is_said_once(path, caplog):
    adapters = identity.Adapters(LOG)
    for _ in range(3):
        request = SimpleNamespace(lora_request=adapter(path))
        assert identity.of_request(request, adapters) is None
    assert caplog.text.count("neither found nor saved") == 1


def test_inputs_are_where_they_touch_the_prompt():
    place = SimpleNamespace(offset=5, length=9)
    new = SimpleNamespace(mm_features=[SimpleNamespace(identifier="i", mm_position=place)])
    old = SimpleNamespace(mm_hashes=["i"], mm_positions=[place])
    oldest = SimpleNamespace(mm_hashes=["i"], mm_positions=[{"offset": 5, "length": 9}])
    for request in (new, old, oldest):
        assert identity.of_request(request, identity.Adapters(LOG)).inputs == [Input("i", 5, 14)]
    unnamed = SimpleNamespace(mm_hashes=None, mm_positions=[place])
    assert identity.of_request(unnamed, identity.Adapters(LOG)) is None


# -- engines and a daemon --------------------------------------------------------------------------

CHANGES = {
    "nothing": ({}, {}),
    "weights under the same path": ({"weights": 1}, {}),
    "rope": ({"hf_config": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}}, {}),
    "quantisation": ({"quantization": "fp8"}, {}),
    "revision": ({"revision": "b"}, {}),
    "dtype": ({"dtype": "torch.float16"}, {}),
    "dtype of the cache": ({"cache": {"cache_dtype": "fp8_e5m2"}}, {}),
    "layout": ({"layout": "HND"}, {}),
    "size of a block": ({"block_size": 32}, {}),
    "ranks": ({"tp": 2}, {}),
    "adapter of the same name": ({}, {"adapter": 2}),
    "no adapter": ({}, {"adapter": 0}),
    "salt": ({}, {"cache_salt": "b"}),
    "image": ({}, {"image": "b"}),
    "place of the image": ({}, {"image_at": 1}),
}


def ask(daemon, name, more=(), weights=0, tp=1, layout="2BNHD", block_size=16, cache=(), **model):
    """Hits of a prompt in an engine of its own; all is as in `CHANGES`, or as it always is."""
    folder = checkpoint(os.path.join(daemon.folder, "model"), weights)
    for number in (1, 2):
        checkpoint(os.path.join(daemon.folder, f"v{number}"), number, adapter=True)
    asked = {"adapter": 1, "cache_salt": "a", "image": "a", "image_at": 0, **dict(more)}
    number = asked.pop("adapter")
    request = {"cache_salt": asked["cache_salt"]}
    if number:
        request["lora_request"] = adapter(os.path.join(daemon.folder, f"v{number}"))
    place = SimpleNamespace(offset=asked["image_at"], length=8)
    request["mm_features"] = [SimpleNamespace(identifier=asked["image"], mm_position=place)]
    transfer = dict(
        daemon.transfer(),
        model=folder,
        model_config={"hf_config": {}, "quantization": None, "revision": None, **model},
        cache_config=dict(cache),
    )
    if "dtype" in model:
        transfer["dtype"] = transfer["model_config"].pop("dtype")
    engine = ToyEngine(transfer, layout=layout, tp=tp, block_size=block_size, prefix_caching=False)
    engine.add(name, [7 * i % 50 for i in range(100)], **request)
    engine.run()
    settle(daemon)
    hits = engine.hits
    engine.close()
    return hits


@pytest.mark.parametrize("change", CHANGES)
def test_one_thing_is_changed_and_nothing_is_found(daemon, change):
    of_engine, of_request = CHANGES[change]
    assert ask(daemon, "first") == 0
    assert ask(daemon, "control") == 96
    assert ask(daemon, "changed", of_request, **of_engine) == (96 if change == "nothing" else 0)
    assert ask(daemon, "back") == 96


def test_by_path_weights_are_not_looked_at(daemon):
    """What `model_fingerprint: path` risks; config is between."""
    for mode, rope, weights in (("path", 96, 96), ("config", 0, 96), ("weights", 0, 0)):
        own = os.path.join(daemon.folder, mode)
        os.makedirs(os.path.join(own, "data"))
        daemon.folder, before = own, daemon.folder
        daemon.write_yaml("Posix", f"model_fingerprint: {mode}\n")
        assert ask(daemon, "first") == 0
        assert ask(daemon, "rope", hf_config={"rope_theta": 5.0}) == rope
        assert ask(daemon, "weights", weights=1) == weights
        daemon.folder = before


def test_a_second_image_finds_the_text_and_the_image_before_it(daemon):
    def image(name, offset):
        place = SimpleNamespace(offset=offset, length=8)
        return SimpleNamespace(identifier=name, mm_position=place)

    engine = ToyEngine(daemon.transfer(), prefix_caching=False)
    prompt = [7 * i % 50 for i in range(160)]
    engine.add("a", prompt[:96], mm_features=[image("one", 20)])
    engine.run()
    settle(daemon)
    engine.add("b", prompt, mm_features=[image("one", 20), image("two", 100)])
    engine.run()
    settle(daemon)
    assert engine.hits == 96
    # Another second image: what is before its first block. The toy's KV does not depend on images.
    engine.add("c", prompt, mm_features=[image("one", 20), image("three", 100)])
    engine.run()
    settle(daemon)
    assert engine.hits == 96 + 96
    # Another first one, in the second block: the first one.
    engine.add("d", prompt, mm_features=[image("other", 20), image("two", 100)])
    engine.run()
    settle(daemon)
    assert engine.hits == 96 + 96 + 16
    engine.close()


def test_two_engines_of_one_id_have_sessions_of_their_own(daemon):
    transfer = dict(daemon.transfer(), engine_id="same")
    first, second = (ToyEngine(transfer, prefix_caching=False) for _ in range(2))
    for engine in (first, second):
        assert engine.connector._scheduler._link.connected
        assert engine.ranks[0].connector._worker._link.connected
    prompt = [7 * i % 50 for i in range(100)]
    first.add("a", prompt)
    first.run()
    settle(daemon)
    for i in range(3):
        second.add(f"b{i}", prompt)
        second.run()
    assert second.hits == 3 * 96
    first.close()
    second.close()
