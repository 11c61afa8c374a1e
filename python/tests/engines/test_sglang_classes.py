"""Host pools and storages of each version of SGLang: each byte of a page, wherever it lies."""

import types

import psutil
import pytest
import sglang_pools
import torch
from sglang.srt.managers import cache_controller
from sglang_engine import storage
from sglang_pools import content, fill, indices, keys, make

COUNT = 12
SOURCE = [3, 7, 1, 9, 2, 12, 14, 5, 20, 22, 17, 30]
TARGET = list(range(31, 43))
LAYOUTS = ["page_first", "page_first_direct", "layer_first", "page_head"]


@pytest.fixture(autouse=True)
def roomy(monkeypatch):
    """SGLang leaves 10 GiB to others, more than a small machine has."""
    real = psutil.virtual_memory()
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: types.SimpleNamespace(available=1 << 40, total=real.total)
    )


@pytest.fixture
def attach(daemon):
    made = []

    def one(pool, **more):
        made.append(make("dynamic", pool, extra=storage(daemon), **more))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.mark.short
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["heads", "latents"])
def test_each_byte_comes_back_both_ways(attach, kind, layout):
    try:
        pool = getattr(sglang_pools, kind)(layout)
    except (ValueError, AssertionError) as refused:
        pytest.skip(f"this version has no such pool: {refused}")
    fill(pool, 1)
    ucm = attach(pool, mla=kind == "latents")
    first, second = keys("v1", COUNT), keys("generic", COUNT)
    wanted = [content(pool, page) for page in SOURCE]
    assert ucm.batch_exists(first) == 0
    assert ucm.batch_set_v1(first, indices(pool, SOURCE)) == [True] * COUNT
    size = pool.page_size
    assert ucm.batch_set(second, [pool.get_data_page(page * size) for page in SOURCE]) is True
    others = [page for page in range(pool.page_num) if page not in TARGET]
    before = {page: content(pool, page) for page in others}
    for chain in (first, second):
        assert ucm.batch_exists(chain + keys("none", 3)) == COUNT
        for page in TARGET:
            zeros = torch.zeros_like(pool.get_data_page(page * size))
            pool.set_from_flat_data_page(page * size, zeros)
        more = indices(pool, TARGET + [44, 45, 46])
        assert ucm.batch_get_v1(chain + keys("none", 3), more) == [True] * COUNT + [False] * 3
        assert all(torch.equal(content(pool, page), one) for page, one in zip(TARGET, wanted))
        tensors = ucm.batch_get(chain, [pool.get_dummy_flat_data_page() for _ in chain])
        assert all(torch.equal(one.view(torch.uint8), own) for one, own in zip(tensors, wanted))
    assert all(torch.equal(content(pool, page), one) for page, one in before.items())
    hole = first[:4] + keys("hole", 1) + first[5:]
    assert ucm.batch_exists(hole) == 4
    assert ucm.batch_get_v1(hole, indices(pool, TARGET)) == [True] * 4 + [False] * 8


@pytest.mark.short
def test_ranks_have_pages_of_their_own_unless_they_are_alike(attach):
    chain, places = keys("ranks", 4), range(4)
    heads = [sglang_pools.heads() for _ in range(2)]
    first, second = (attach(pool, rank=rank, size=2) for rank, pool in enumerate(heads))
    assert first.batch_set_v1(chain, indices(heads[0], places)) == [True] * 4
    assert (first.batch_exists(chain), second.batch_exists(chain)) == (4, 0)
    latents = [sglang_pools.latents() for _ in range(2)]
    fill(latents[0], 2)
    first, second = (attach(pool, rank=rank, size=2, mla=True) for rank, pool in enumerate(latents))
    assert second.batch_set_v1(chain, indices(latents[1], places)) == [True] * 4
    assert first.batch_exists(chain) == 0
    assert first.batch_set_v1(chain, indices(latents[0], places)) == [True] * 4
    assert second.batch_get_v1(chain, indices(latents[1], places)) == [True] * 4
    assert all(torch.equal(content(latents[0], page), content(latents[1], page)) for page in places)


@pytest.mark.short
def test_drafts_are_stored_by_the_controllers_own_calls(attach):
    controller = cache_controller.HiCacheController
    put = get = None
    # Later versions choose between ways of which this is that of a storage like UCM.
    for suffix in ("", "_generic"):
        put = getattr(controller, f"_draft_page_set{suffix}", None) or put
        get = getattr(controller, f"_draft_page_get{suffix}", None) or get
    if not hasattr(controller, "_draft_page_set"):
        pytest.skip("this version has no drafts that come as tensors")
    pool, draft = sglang_pools.heads(), sglang_pools.heads(layers=1)
    fill(draft, 3)
    here = types.SimpleNamespace(
        mem_pool_host_draft=draft, page_size=sglang_pools.PAGE, storage_backend=attach(pool)
    )
    chain, places = keys("draft", 4), indices(draft, range(4))
    wanted = [content(draft, page) for page in range(4)]
    put(here, chain, places)
    assert here.storage_backend.batch_exists(chain) == 0
    fill(draft, 4)
    get(here, chain, places)
    assert all(torch.equal(content(draft, page), one) for page, one in enumerate(wanted))
