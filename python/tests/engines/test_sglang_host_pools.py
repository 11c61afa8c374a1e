"""Models with several host pools: SGLang's own pools, and answers as those of SGLang's own file storage."""

import contextlib
import random

import pytest
import sglang_pools
import torch
from sglang.srt.mem_cache.hicache_storage import PoolHitPolicy, PoolName, PoolTransfer
from sglang.srt.runtime_context import get_context
from sglang_engine import storage
from sglang_pools import PAGES, content, fill, indices, keys, make
from ucm.client import Link
from ucm.pages import REGISTER_SECONDS

ALL, TRAILING = PoolHitPolicy.ALL_PAGES, PoolHitPolicy.TRAILING_PAGES
DTYPES = {"e5m2": "e5m2", "e4m3": "e4m3fn"}
# Where pages are read to.
SPARE = PAGES - 2

MODELS = {
    "sliding windows": (sglang_pools.heads, {PoolName.SWA: lambda: sglang_pools.heads(layers=5)}),
    "states": (sglang_pools.heads, {PoolName.MAMBA: sglang_pools.states}),
    "latents, states and an index": (
        sglang_pools.latents,
        {PoolName.MAMBA: sglang_pools.states, PoolName.INDEXER: sglang_pools.compressed},
    ),
    "a draft in place": (sglang_pools.heads, {PoolName.DRAFT: lambda: sglang_pools.heads(layers=1)}),
}


class Site:
    """A rank with UCM, and one with SGLang's files, which use the same pools."""

    def __init__(self, daemon, anchor, pools, **more):
        self.pools = {PoolName.KV: anchor, **pools}
        for seed, pool in enumerate(self.pools.values()):
            if getattr(pool, "size_per_token", 0):
                fill(pool, seed)
        self.ucm = make("dynamic", anchor, pools, storage(daemon), **more)

    def transfer(self, name, chain, pages, **more):
        return PoolTransfer(name, host_indices=indices(self.pools[name], pages), keys=chain, **more)

    def close(self):
        self.ucm.close()


@pytest.fixture
def site(daemon):
    made = []

    def make_site(anchor, pools, **more):
        made.append(Site(daemon, anchor, pools, **more))
        return made[-1]

    yield make_site
    for one in made:
        one.close()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """SGLang's own storage of the same pools."""
    monkeypatch.setenv("SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR", str(tmp_path / "files"))

    def of(site, **more):
        anchor = site.pools[PoolName.KV]
        return make("file", anchor, {n: p for n, p in site.pools.items() if p is not anchor}, **more)

    return of


@pytest.fixture
def launched():
    """Sets what SGLang was started with."""
    with contextlib.ExitStack() as undone:
        yield lambda **said: undone.enter_context(get_context().override_server_args(**said))


def told(result):
    hits = {str(getattr(name, "value", name)): pages for name, pages in result.extra_pool_hit_pages.items()}
    return result.kv_hit_pages, hits, result.restorable_prefix_pages


@pytest.mark.short
@pytest.mark.parametrize("model", MODELS)
def test_random_pages_are_answered_as_by_files_and_have_right_bytes(site, files, model):
    anchor, beside = MODELS[model]
    here = site(anchor(), {name: pool() for name, pool in beside.items()}, mla="latents" in model)
    both = (here.ucm, files(here, mla="latents" in model))
    choice = random.Random(1)
    found_some = 0
    for case in range(20):
        chain = keys(case, choice.randrange(1, 12))
        places = choice.sample(range(PAGES // 2), len(chain))
        there = {name: [i for i in range(len(chain)) if choice.random() < 0.8] for name in beside}
        there[PoolName.KV] = list(range(choice.randrange(len(chain) + 1)))
        for name, numbers in there.items():
            for number in numbers:
                one = [here.transfer(name, [chain[number]], [places[number]])]
                assert [each.batch_set_v2(one) for each in both] == [{name: [True]}] * 2
        for policy, last in ((ALL, len(chain)), (TRAILING, 1), (TRAILING, 3)):
            asked = [PoolTransfer(name, keys=chain[-last:], hit_policy=policy) for name in beside]
            ours, theirs = (told(each.batch_exists_v2(chain, asked)) for each in both)
            assert ours == theirs
            found_some += ours[0]
        for name, numbers in there.items():
            pool = here.pools[name]
            for number in numbers:
                wanted = content(pool, places[number])
                fill_page = content(pool, SPARE)
                assert not torch.equal(wanted, fill_page)
                one = [here.transfer(name, [chain[number]], [SPARE])]
                assert here.ucm.batch_get_v2(one) == {name: [True]}
                assert torch.equal(content(pool, SPARE), wanted)
                pool.set_from_flat_data_page(SPARE * pool.page_size, fill_page.view(pool.dtype))
    assert found_some


@pytest.mark.short
def test_of_a_latent_model_states_and_heads_are_of_a_rank_and_the_rest_of_all(site):
    pools = {
        PoolName.MAMBA: sglang_pools.states,
        PoolName.DRAFT: lambda: sglang_pools.heads(layers=1),
        PoolName.INDEXER: sglang_pools.compressed,
        PoolName.DRAFT_SWA: lambda: sglang_pools.latents(layers=1),
    }
    chain = keys("ranks", 2)
    anchor = sglang_pools.latents
    first, second = (
        site(anchor(), {name: pool() for name, pool in pools.items()}, rank=rank, size=2, mla=True)
        for rank in range(2)
    )
    for name in (PoolName.KV, *pools):
        stored = first.ucm.batch_set_v2([first.transfer(name, chain, [1, 2])])
        assert stored == {name: [True, True]}
    for name in (PoolName.KV, *pools):
        shared = name not in (PoolName.MAMBA, PoolName.DRAFT)
        read = second.ucm.batch_get_v2([second.transfer(name, chain, [11, 12])])
        assert read == {name: [shared] * 2}, name
        if shared:
            assert torch.equal(content(second.pools[name], 11), content(first.pools[name], 1))
    # SGLang has each rank store its states.
    second.ucm.batch_set_v2([second.transfer(PoolName.MAMBA, chain, [3, 4])])
    before = content(second.pools[PoolName.MAMBA], 3)
    second.ucm.batch_get_v2([second.transfer(PoolName.MAMBA, chain, [11, 12])])
    assert torch.equal(content(second.pools[PoolName.MAMBA], 11), before)


@pytest.mark.short
def test_states_of_other_types_or_shapes_are_others(site):
    chain = keys("types", 1)
    first = site(sglang_pools.heads(), {PoolName.MAMBA: sglang_pools.states()})
    assert first.ucm.batch_set_v2([first.transfer(PoolName.MAMBA, chain, [1])]) == {PoolName.MAMBA: [True]}
    again = site(sglang_pools.heads(), {PoolName.MAMBA: sglang_pools.states()})
    assert again.ucm.batch_get_v2([again.transfer(PoolName.MAMBA, chain, [2])]) == {PoolName.MAMBA: [True]}
    other = site(sglang_pools.heads(), {PoolName.MAMBA: sglang_pools.states(state=torch.int32)})
    assert other.ucm.batch_get_v2([other.transfer(PoolName.MAMBA, chain, [2])]) == {PoolName.MAMBA: [False]}


@pytest.mark.short
def test_where_the_pool_of_the_cache_has_no_bytes_the_others_say_what_is_there(site, launched):
    """DeepSeek V4: the KV cache is in pools beside one that only counts tokens."""
    launched(kv_cache_dtype="fp8_e4m3")
    chain = keys("v4", 4)
    here = site(
        sglang_pools.counting(),
        {PoolName.DEEPSEEK_V4_C4: sglang_pools.compressed(), PoolName.SWA: sglang_pools.compressed(3)},
    )
    kv = indices(here.pools[PoolName.KV], range(4))
    asked = [
        PoolTransfer(PoolName.DEEPSEEK_V4_C4, keys=chain, hit_policy=ALL),
        PoolTransfer(PoolName.SWA, keys=chain[-1:], hit_policy=TRAILING),
    ]
    assert here.ucm.batch_exists_v2(chain, asked).kv_hit_pages == 0
    here.ucm.batch_set_v2([here.transfer(PoolName.DEEPSEEK_V4_C4, chain[:3], [0, 1, 2])])
    here.ucm.batch_set_v2([here.transfer(PoolName.SWA, chain[1:2], [1])])
    assert here.ucm.batch_set_v1(chain, kv) == [True] * 4
    found = here.ucm.batch_exists_v2(chain, asked)
    assert (found.kv_hit_pages, found.restorable_prefix_pages) == (2, [2])
    assert here.ucm.batch_get_v1(chain[:2], kv[:128]) == [True] * 2
    # Without the others' word nothing is there.
    assert here.ucm.batch_exists(chain) == 0
    assert here.ucm.batch_exists_v2(chain, asked[1:]).kv_hit_pages == 0


@pytest.mark.short
@pytest.mark.parametrize("mark", ["d:{}", "{}.draft"], ids=["0.5.12", "0.5.16"])
def test_pages_of_a_draft_that_come_in_tensors_are_pages_of_their_own(site, mark):
    here = site(sglang_pools.heads(), {})
    draft = sglang_pools.heads(layers=1)
    fill(draft, 9)
    chain = keys("draft", 5)
    marked = [mark.format(key) for key in chain]
    assert here.ucm.batch_set(marked, [draft.get_data_page(page * 64) for page in range(5)]) is True
    assert here.ucm.batch_exists(chain) == 0
    target = indices(here.pools[PoolName.KV], range(5))
    assert here.ucm.batch_set_v1(chain, target) == [True] * 5
    again = site(here.pools[PoolName.KV], {})
    found = again.ucm.batch_get(marked, [draft.get_dummy_flat_data_page() for _ in marked])
    for page, one in enumerate(found):
        assert torch.equal(one.view(torch.uint8), content(draft, page))
    other = sglang_pools.heads(layers=2)
    wrong = [other.get_dummy_flat_data_page() for _ in marked]
    assert site(here.pools[PoolName.KV], {}).ucm.batch_get(marked, wrong) == [None] * 5


@pytest.mark.short
def test_types_of_eight_bits_are_told_apart_by_sglangs_arguments(site, launched):
    chain = keys("fp8", 2)

    def found(kind):
        launched(kv_cache_dtype=f"fp8_{kind}")
        pool = sglang_pools.heads(dtype=getattr(torch, f"float8_{DTYPES[kind]}"))
        assert pool.dtype is torch.uint8
        here = site(pool, {})
        pages = here.ucm.batch_exists(chain)
        here.ucm.batch_set_v1(chain, indices(pool, [1, 2]))
        return pages

    assert [found("e5m2"), found("e4m3"), found("e5m2"), found("e4m3")] == [0, 0, 2, 2]


@pytest.mark.short
@pytest.mark.parametrize("wrong", ["pool", "indices", "policy"])
def test_what_cannot_be_served_is_nothing_and_never_raises(site, wrong):
    here, chain = site(sglang_pools.heads(), {PoolName.SWA: sglang_pools.heads(layers=1)}), keys("wrong", 2)
    assert here.ucm.batch_set_v2([here.transfer(PoolName.KV, chain, [0, 1])]) == {PoolName.KV: [True] * 2}
    if wrong == "pool":
        kv = here.pools[PoolName.KV]
        transfer = PoolTransfer(PoolName.MAMBA, host_indices=indices(kv, [0]), keys=chain[:1])
    elif wrong == "indices":
        transfer = PoolTransfer(PoolName.SWA, host_indices=torch.arange(3), keys=chain[:1])
    else:
        transfer = PoolTransfer(PoolName.SWA, keys=chain[:1], hit_policy="of another version")
    if wrong != "policy":
        assert here.ucm.batch_set_v2([transfer]) == {transfer.name: [False]}
        assert here.ucm.batch_get_v2([transfer]) == {transfer.name: [False]}
    assert here.ucm.batch_exists_v2(chain, [transfer]).kv_hit_pages == 0
    assert here.ucm.batch_exists_v2(chain).kv_hit_pages == 2
    here.ucm.register_mem_host_pool_v2(object(), PoolName.MAMBA)
    assert here.ucm.batch_exists_v2(chain).kv_hit_pages == 2


@pytest.mark.short
def test_a_daemon_that_does_not_answer_is_waited_for_once(site, monkeypatch):
    waited = []
    monkeypatch.setattr(Link, "start", lambda self, seconds: waited.append(seconds))
    pools = {PoolName.SWA: sglang_pools.heads(layers=1), PoolName.MAMBA: sglang_pools.states()}
    here = site(sglang_pools.heads(), pools)
    assert waited == [REGISTER_SECONDS, 0, 0]
    assert here.ucm.batch_exists_v2(keys("alone", 2)).kv_hit_pages == 0
