"""Models with more than one host pool: what is found is what each pool's policy asks for, and its bytes."""

import random

import pytest
import torch
from hicache_engine import HiCacheEngine, keys
from sglang.srt.mem_cache.hicache_storage import PoolHitPolicy, PoolName, PoolTransfer
from sglang.srt.mem_cache.memory_pool_host import HostPool
from test_end_to_end import settle
from test_sglang import extra, wait_connected

SWA = dict(page_size=4, pages=64, layers=2, heads=3, dim=8)


class Site:
    """A rank with a pool of the KV cache and one of sliding windows."""

    def __init__(self, daemon, swa=SWA, tp=1, mla=False):
        self.engine = HiCacheEngine(extra(daemon), mla=mla, tp=tp)
        self.storages = [rank.storage for rank in self.engine.ranks]
        self.pools = []
        for rank in self.engine.ranks:
            pools = {PoolName.KV: rank.pool, PoolName.SWA: HostPool("page_first", **swa)}
            for name, pool in pools.items():
                rank.storage.register_mem_host_pool_v2(pool, name)
            self.pools.append(pools)
        wait_connected(self.engine)

    def indices(self, name, pages, rank=0):
        size = self.pools[rank][name].page_size
        return torch.tensor([page * size + i for page in pages for i in range(size)])

    def fill(self, name, chain, rank=0):
        for page, key in enumerate(chain):
            self.pools[rank][name].set_from_flat_data_page(
                self.indices(name, [page])[0], self.content(name, key, rank)
            )

    def content(self, name, key, rank=0):
        pool = self.pools[rank][name]
        page = pool.get_dummy_flat_data_page()
        noise = torch.Generator().manual_seed(hash((name.value, key, rank)) % (1 << 40))
        return torch.randn(page.shape, generator=noise).to(page.dtype)

    def transfer(self, name, chain, numbers, rank=0):
        return PoolTransfer(name, self.indices(name, numbers, rank), [chain[i] for i in numbers])

    def store(self, name, chain, numbers, rank=0):
        if numbers:
            done = self.storages[rank].batch_set_v2([self.transfer(name, chain, numbers, rank)])
            assert done == {name: [True] * len(numbers)}

    def close(self):
        self.engine.close()


def expected(chain, stored, policy, last):
    """What SGLang's file backend answers: usable pages, hits of each pool, and all usable prefixes."""
    kv = 0
    while kv < len(chain) and kv in stored[PoolName.KV]:
        kv += 1
    if policy is PoolHitPolicy.ALL_PAGES:
        fits = [n for n in range(1, kv + 1) if all(i in stored[PoolName.SWA] for i in range(n))]
    else:
        fits = [
            n
            for n in range(1, kv + 1)
            if all(i in stored[PoolName.SWA] for i in range(max(0, n - last), n))
        ]
    hits = {**({"kv": kv} if kv else {}), **({"swa": fits[-1]} if fits else {})}
    return (fits[-1] if fits else 0), hits, fits


def test_random_pages_are_found_by_each_policy_and_have_right_bytes(daemon):
    site, choice = Site(daemon), random.Random(1)
    for case in range(40):
        chain = keys(f"case {case}", choice.randrange(1, 12))
        stored = {
            PoolName.KV: set(range(choice.randrange(len(chain) + 1))),
            PoolName.SWA: {i for i in range(len(chain)) if choice.random() < 0.7},
        }
        for name, numbers in stored.items():
            site.fill(name, chain)
            site.store(name, chain, sorted(numbers))
        policies = ((PoolHitPolicy.ALL_PAGES, len(chain)), (PoolHitPolicy.TRAILING_PAGES, 1))
        for policy, last in (*policies, (PoolHitPolicy.TRAILING_PAGES, 3)):
            transfer = PoolTransfer(PoolName.SWA, keys=chain[-last:], hit_policy=policy)
            found = site.storages[0].batch_exists_v2(chain, [transfer])
            usable, hits, fits = expected(chain, stored, policy, min(last, len(chain)))
            assert (found.kv_hit_pages, found.restorable_prefix_pages) == (usable, fits)
            assert found.extra_pool_hit_pages == hits
        for name, numbers in stored.items():
            pool = site.pools[0][name]
            for number in sorted(numbers):
                target = site.indices(name, [63])
                loaded = site.storages[0].batch_get_v2([PoolTransfer(name, target, [chain[number]])])
                assert loaded == {name: [True]}
                assert torch.equal(
                    pool.get_data_page(target[0]), site.content(name, chain[number])
                )
    for storage in site.storages:
        storage.close()
    settle(daemon)


def test_a_pool_has_pages_of_its_own_also_of_another_shape_or_rank(daemon):
    chain = keys("own", 3)
    first = Site(daemon, tp=2, mla=True)
    first.fill(PoolName.SWA, chain, rank=0)
    first.store(PoolName.SWA, chain, [0, 1, 2], rank=0)
    transfers = [PoolTransfer(PoolName.SWA, first.indices(PoolName.SWA, [9]), chain[:1])]
    assert first.storages[0].batch_get_v2(transfers) == {PoolName.SWA: [True]}
    # The same heads are not there on another rank, though all have the same latent.
    assert first.storages[1].batch_get_v2(transfers) == {PoolName.SWA: [False]}
    assert first.storages[0].batch_exists(chain) == 0
    # As many bytes in another shape.
    other = Site(daemon, swa={**SWA, "layers": 3, "heads": 2})
    transfers = [PoolTransfer(PoolName.SWA, other.indices(PoolName.SWA, [9]), chain[:1])]
    assert other.storages[0].batch_get_v2(transfers) == {PoolName.SWA: [False]}
    for site in (first, other):
        for storage in site.storages:
            storage.close()


@pytest.mark.parametrize("wrong", ["pool", "indices", "policy"])
def test_what_cannot_be_served_is_nothing_and_never_raises(daemon, wrong):
    site, chain = Site(daemon), keys("wrong", 2)
    site.fill(PoolName.KV, chain)
    site.store(PoolName.KV, chain, [0, 1])
    storage = site.storages[0]
    if wrong == "pool":
        transfer = PoolTransfer(PoolName.MAMBA, site.indices(PoolName.KV, [0]), chain[:1])
    elif wrong == "indices":
        transfer = PoolTransfer(PoolName.SWA, torch.arange(3), chain[:1])
    else:
        transfer = PoolTransfer(PoolName.SWA, keys=chain[:1], hit_policy="of another version")
    if wrong != "policy":
        assert storage.batch_set_v2([transfer]) == {transfer.name: [False]}
        assert storage.batch_get_v2([transfer]) == {transfer.name: [False]}
    found = storage.batch_exists_v2(chain, [transfer])
    assert found.kv_hit_pages == 0
    assert storage.batch_exists_v2(chain).kv_hit_pages == 2
    storage.register_mem_host_pool_v2(object(), PoolName.MAMBA)
    assert storage.batch_exists_v2(chain).kv_hit_pages == 2
    storage.close()
