"""KV tensors in every layout, with sizes that are all different: blocks 7, tokens 16, heads 3, 8 elements."""

import os

import pytest
import torch
from ucm import layout as layouts
from ucm import memory, staging
from ucm.protocol import Opened
from ucm.staging import Staging

B, N, H, D = 7, 16, 3, 8
NAMES = [f"model.layers.{i}.self_attn.attn" for i in range(11)]


def numbered(*shape, dtype=torch.int16, start=0):
    count = int(torch.tensor(shape).prod())
    return (torch.arange(count, dtype=torch.int64) + start).to(dtype).view(shape)


def classic(layer):
    """K and V of a layer: [2, B, N, H, D]."""
    return numbered(2, B, N, H, D, start=1000 * layer)


# What an engine registers for the values of `classic`.
OF_CLASSIC = {
    "2BNHD": lambda kv: kv,
    "B2NHD": lambda kv: kv.permute(1, 0, 2, 3, 4).contiguous(),
    "tuple": lambda kv: (kv[0].clone(), kv[1].clone()),
    "smaller kernel blocks": lambda kv: kv.reshape(2, 4 * B, N // 4, H, D),
    "K and V padded": lambda kv: torch.nn.functional.pad(
        kv.reshape(2, B, -1), (0, 8)
    ).as_strided((2, B, N, H, D), (B * (N * H * D + 8), N * H * D + 8, H * D, D, 1)),
    "view into an allocation": lambda kv: torch.cat(
        [torch.zeros(5, dtype=kv.dtype), kv.flatten()]
    )[5:].view(2, B, N, H, D),
}

OTHERS = {
    "HND": lambda kv: kv.permute(0, 1, 3, 2, 4).contiguous().permute(0, 1, 3, 2, 4),
    "B2HND": lambda kv: kv.permute(1, 0, 3, 2, 4).contiguous().permute(0, 1, 3, 2, 4),
    "packed": lambda kv: kv.permute(1, 2, 3, 0, 4).reshape(B, N, H, 2 * D).permute(0, 2, 1, 3),
    "packed HND": lambda kv: kv.permute(1, 3, 2, 0, 4).reshape(B, H, N, 2 * D),
    "K and V in a row": lambda kv: kv.permute(1, 2, 3, 0, 4).reshape(B, N, H, 2 * D),
    "smaller kernel blocks, B2NHD": lambda kv: kv.view(2, 4 * B, N // 4, H, D)
    .permute(1, 0, 2, 3, 4)
    .contiguous(),
}


def block_bytes(found, block):
    """A slot's bytes of a block."""
    return torch.cat([piece[block] for layer in found.layers for piece in layer.pieces])


def expected(kv, block):
    return kv[:, block].contiguous().view(-1).view(torch.uint8)


@pytest.mark.parametrize("form", OF_CLASSIC)
def test_classic_layouts_have_the_same_bytes(form):
    values = [classic(i) for i in range(3)]
    found = layouts.find(
        {NAMES[i]: OF_CLASSIC[form](kv) for i, kv in enumerate(values)}, B, False
    )
    assert found.text == ""
    assert found.tensor_bytes == [[2 * N * H * D] * 2] * 3
    for block in range(B):
        right = torch.cat([expected(kv, block) for kv in values])
        assert torch.equal(block_bytes(found, block), right)


@pytest.mark.parametrize("form", OTHERS)
def test_other_layouts_are_named_and_whole(form):
    kv = classic(0)
    tensor = OTHERS[form](kv)
    found = layouts.find({NAMES[0]: tensor}, B, False)
    assert found.text
    assert sum(found.tensor_bytes[0]) == 2 * 2 * N * H * D
    for block in range(B):
        # Its bytes in the order of the memory: all values of the block and no other.
        values = block_bytes(found, block).view(torch.int16).sort().values
        assert torch.equal(values, kv[:, block].flatten().sort().values)


def test_no_two_layouts_of_other_bytes_have_one_name():
    kv = classic(0)
    by_text = {}
    for form, make in {**OTHERS, **OF_CLASSIC}.items():
        found = layouts.find({NAMES[0]: make(kv)}, B, False)
        by_text.setdefault(found.text, set()).add(
            bytes(block_bytes(found, 3).tolist())
        )
    assert all(len(contents) == 1 for contents in by_text.values())


# vLLM's orders of the axes in memory: L layers, B blocks, H heads, N tokens, C elements of K and V.
VLLM_ORDERS = ["LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"]


def of_vllm(order, ratio, heads):
    """Layers as vLLM registers them since 0.29, with kernel blocks of a part of a block."""
    shape = {"L": 3, "B": B * ratio, "H": heads, "N": N // ratio, "C": 10}
    l, b, h, n, c = torch.meshgrid(*[torch.arange(shape[a]) for a in "LBHNC"], indexing="ij")
    # A value says which layer, token and head it is of, however it lies.
    values = (((l * heads + h) * B * N + b * shape["N"] + n) * shape["C"] + c).to(torch.int32)
    memory = values.permute(["LBHNC".index(a) for a in order]).contiguous()
    whole = memory.permute([order.index(a) for a in "LBHNC"])
    return {NAMES[i]: whole[i] for i in range(shape["L"])}


@pytest.mark.parametrize("heads", [4, 1])
def test_layouts_of_vllm_with_one_name_have_the_same_bytes(heads):
    contents = {}
    for order in VLLM_ORDERS:
        for ratio in (1, 4):
            found = layouts.find(of_vllm(order, ratio, heads), B, False)
            contents.setdefault(found.text, set()).add(block_bytes(found, 3).numpy().tobytes())
    assert [len(bytes_of) for bytes_of in contents.values()] == [1] * len(contents)
    # With one head, the heads are nowhere in the nesting.
    assert len({next(iter(bytes_of)) for bytes_of in contents.values()}) == (3 if heads > 1 else 1)
    assert "" not in contents


@pytest.mark.parametrize("order", VLLM_ORDERS)
@pytest.mark.parametrize("ratio", [1, 4])
def test_latent_attention_keeps_its_name_with_an_axis_of_one_head(order, ratio):
    found = layouts.find(of_vllm(order, ratio, 1), B, True)
    before = layouts.find(
        {name: t.squeeze(1) for name, t in of_vllm("LBHNC", 1, 1).items()}, B, True
    )
    assert found.text == before.text == ""
    assert torch.equal(block_bytes(found, 3), block_bytes(before, 3))


def test_layers_that_share_memory_are_kept_once():
    own, last = classic(0), classic(1)
    caches = {NAMES[0]: own, NAMES[1]: own[:], NAMES[2]: last, NAMES[3]: last.clone()}
    found = layouts.find(caches, B, False)
    assert [layer.name for layer in found.layers] == [NAMES[0], NAMES[2], NAMES[3]]
    assert found.shared == {NAMES[1]: NAMES[0]}


@pytest.mark.parametrize("sizes", [(B, N, 576), (4 * B, N // 4, 576), (B, N, 656)])
def test_latent_attention_is_one_tensor(sizes):
    tensor = numbered(*sizes, dtype=torch.uint8 if sizes[2] == 656 else torch.int16)
    found = layouts.find({NAMES[0]: tensor}, B, True)
    assert found.text == ""
    assert found.tensor_bytes == [[tensor.numel() * tensor.element_size() // B]]
    assert torch.equal(block_bytes(found, 2), tensor.view(B, -1)[2].view(torch.uint8))


def test_layers_that_lie_inside_one_another():
    # All layers of a block side by side: the block axis is the slowest in memory.
    whole = numbered(B, 4, 2, N, H, D)
    found = layouts.find({NAMES[i]: whole[:, i] for i in range(4)}, B, False)
    assert found.text == ""
    assert torch.equal(block_bytes(found, 5), whole[5].flatten().view(torch.uint8))


def test_layers_are_in_the_order_of_their_numbers():
    names = [NAMES[10], NAMES[9], NAMES[2]]
    found = layouts.find({name: classic(0) for name in names}, B, False)
    assert [layer.name for layer in found.layers] == [NAMES[2], NAMES[9], NAMES[10]]


def test_a_block_of_an_index_goes_with_its_layer():
    found = layouts.find(
        {
            "model.layers.0.self_attn.attn": numbered(B, N, 576),
            "model.layers.0.self_attn.indexer.k_cache": numbered(B, N, 132, dtype=torch.uint8),
        },
        B,
        True,
    )
    assert found.tensor_bytes == [[2 * N * 576], [N * 132]]


@pytest.mark.parametrize(
    "caches, blocks",
    [
        ({}, B),
        ({NAMES[0]: torch.zeros(2, B, N, H, D)}, 1000),
        ({NAMES[0]: torch.zeros(B * N * 8).as_strided((B, N, 8), (4, 8, 1))}, B),
        ({NAMES[0]: torch.zeros(B, N, H, 200)[..., ::2]}, B),
    ],
    ids=["none", "no block axis", "overlapping blocks", "thousands of pieces"],
)
def test_what_cannot_be_cut_is_refused_with_a_reason(caches, blocks):
    with pytest.raises(layouts.LayoutError, match="layer model|no KV tensors"):
        layouts.find(caches, blocks, False)


def segment(tmp_path, found, count, **more):
    path = str(tmp_path / "segment")
    stride = sum(map(sum, found.tensor_bytes)) + 100
    with open(path, "wb") as file:
        file.truncate(count * stride)
    os.chmod(path, 0o600)
    opened = Opened(1, path, count * stride, os.stat(path).st_ino, count, stride, 0, "", 0)
    return opened._replace(**more)


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("form", [*OF_CLASSIC, *OTHERS])
def test_blocks_come_back_as_they_went(tmp_path, monkeypatch, form, on_host):
    # PyTorch copies here as it does for tensors of a device.
    monkeypatch.setattr(staging, "_on_host", lambda piece: on_host)
    make = {**OF_CLASSIC, **OTHERS}[form]
    source = layouts.find({NAMES[i]: make(classic(i)) for i in range(3)}, B, False)
    target = layouts.find({NAMES[i]: make(classic(50 + i)) for i in range(3)}, B, False)
    before = [block_bytes(target, block).clone() for block in range(B)]
    slots = Staging(segment(tmp_path, source, 9))
    for layer in range(3):
        slots.save(source, [layer], [8, 0, 4], [1, 6, 3])
    slots.load(target, range(3), [0, 8, 4], [2, 5, 6])
    came = {2: 6, 5: 1, 6: 3}
    for block in range(B):
        right = block_bytes(source, came[block]) if block in came else before[block]
        assert torch.equal(block_bytes(target, block), right), block


@pytest.mark.parametrize("copiers", [1, 2, 3, 4])
def test_copies_by_several_threads_are_the_same(tmp_path, monkeypatch, copiers):
    monkeypatch.setattr(memory, "_COPIERS", copiers)
    monkeypatch.setattr(memory, "_COPIER_BYTES", 1)
    source, target = (
        layouts.find({NAMES[i]: classic(first + i) for i in range(3)}, B, False) for first in (0, 50)
    )
    blocks = list(range(B))
    slots = Staging(segment(tmp_path, source, B))
    slots.save(source, range(3), blocks[::-1], blocks)
    slots.load(target, range(3), blocks[::-1], blocks)
    assert all(torch.equal(block_bytes(source, b), block_bytes(target, b)) for b in blocks)
    slots.load(target, range(3), [], [])


@pytest.mark.parametrize("slot, block", [(9, 0), (-1, 0), (0, B), (0, -1)])
def test_slots_and_blocks_that_are_not_there_are_refused(tmp_path, slot, block):
    found = layouts.find({NAMES[0]: classic(0)}, B, False)
    slots = Staging(segment(tmp_path, found, 9))
    for copy in (slots.load, slots.save):
        with pytest.raises((OSError, IndexError), match=f"{slot}|{block}"):
            copy(found, [0], [0, slot], [0, block])


@pytest.mark.parametrize(
    "more",
    [{"size": 4096}, {"inode": 1}, {"slots": 10}, {"stride": 2**40}, {"path": "/dev/null"}],
    ids=lambda more: next(iter(more)),
)
def test_a_segment_that_is_not_as_the_daemon_said_is_not_mapped(tmp_path, more):
    found = layouts.find({NAMES[0]: classic(0)}, B, False)
    with pytest.raises(OSError, match="is not the segment"):
        Staging(segment(tmp_path, found, 9, **more))


def test_a_segment_that_others_may_read_is_not_mapped(tmp_path):
    found = layouts.find({NAMES[0]: classic(0)}, B, False)
    opened = segment(tmp_path, found, 9)
    os.chmod(opened.path, 0o644)
    with pytest.raises(OSError, match="is not the segment"):
        Staging(opened)


def test_a_link_is_not_followed_to_a_segment(tmp_path):
    found = layouts.find({NAMES[0]: classic(0)}, B, False)
    opened = segment(tmp_path, found, 9)
    os.symlink(opened.path, tmp_path / "link")
    with pytest.raises(OSError):
        Staging(opened._replace(path=str(tmp_path / "link")))
