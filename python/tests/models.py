"""Checkpoints as small as they can be: files that look like those of a model or an adapter."""

import json
import os
import random
import struct


def tensors(path, names, seed, size=20_000):
    """A safetensors file with random bytes in each tensor."""
    header = {
        name: {"dtype": "U8", "shape": [size], "data_offsets": [i * size, (i + 1) * size]}
        for i, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(len(names)):
            file.write(random.Random(f"{seed}/{i}").randbytes(size))


def checkpoint(folder, seed=0, adapter=False):
    """A model of two files, or an adapter; the same bytes for the same seed. Returns the folder."""
    os.makedirs(folder, exist_ok=True)
    if adapter:
        tensors(os.path.join(folder, "adapter_model.safetensors"), ["q.lora_A", "q.lora_B"], seed)
        with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
            json.dump({"r": 8, "lora_alpha": 16}, file)
        return folder
    for part in (1, 2):
        names = [f"layers.{2 * part + i}.weight" for i in (0, 1)]
        tensors(os.path.join(folder, f"model-{part}.safetensors"), names, f"{seed}/{part}")
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"num_hidden_layers": 4}, file)
    return folder


def poke(file, at, value=0x55):
    """Changes one byte."""
    with open(file, "r+b") as opened:
        opened.seek(at)
        old = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([old ^ value]))
