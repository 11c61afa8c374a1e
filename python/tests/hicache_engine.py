"""The part of SGLang around a storage: ranks whose threads look pages up, read them and write them.

The bytes of a page are a function of its key and the rank. Each page that a storage says it has read is
compared, and memory that no page uses has to stay as it is.
"""

import hashlib
import queue
import random
import threading
import traceback

from sglang.srt.mem_cache.hicache_storage import (
    STORAGE_BATCH_SIZE,
    HiCacheStorageConfig,
    HiCacheStorageExtraInfo,
    StorageMetrics,
)
from sglang.srt.mem_cache.memory_pool_host import HostPool
from sglang.srt.mem_cache.storage import StorageBackendFactory


def keys(seed, count):
    """A chain of page hashes, as SGLang makes it of tokens."""
    found, last = [], str(seed).encode()
    for i in range(count):
        last = hashlib.sha256(last + i.to_bytes(4, "little")).digest()
        found.append(last.hex())
    return found


class Minimum:
    """The minimum over ranks, at which all of them meet."""

    def __init__(self, ranks):
        self._values = [0] * ranks
        self._barrier = threading.Barrier(ranks)

    def of(self, rank, value):
        self._values[rank] = value
        self._barrier.wait(120)
        found = min(self._values)
        self._barrier.wait(120)
        return found

    def abort(self):
        """Has the ranks that wait fail, as one of them has died."""
        self._barrier.abort()


class Worker(threading.Thread):
    """Does what is put into its queue; ends at the first exception, for good, as SGLang's threads do."""

    def __init__(self, name, dies):
        super().__init__(name=name, daemon=True)
        self._dies = dies
        self.queue = queue.Queue()
        self.died = None
        self.start()

    def run(self):
        while True:
            work = self.queue.get()
            if work is None:
                return
            act, answer = work
            try:
                answer.put(act())
            except BaseException:
                self.died = traceback.format_exc()
                self._dies()
                answer.put(None)
                return

    def begin(self, act):
        answer = queue.Queue()
        self.queue.put((act, answer))
        return answer


class Rank:
    def __init__(self, engine, rank):
        self.engine, self.rank = engine, rank
        self.pool = HostPool(engine.layout, engine.mla, **engine.pool)
        config = HiCacheStorageConfig(
            rank,
            engine.tp,
            0,
            1,
            0,
            1,
            engine.mla,
            False,
            engine.layout == "page_first",
            engine.model,
            extra_config=dict(engine.extra),
        )
        self.storage = StorageBackendFactory.create_backend("dynamic", config, self.pool)
        self.storage.register_mem_pool_host(self.pool)
        self.zero_copy = bool(engine.extra.get("interface_v1", 0))
        self.lookups, self.reads, self.backups = (
            Worker(f"{kind}-{rank}", engine.abort) for kind in ("prefetch", "io", "backup")
        )

    def content(self, key):
        return random.Random(f"{key}/{0 if self.engine.mla else self.rank}").randbytes(
            self.pool.get_size_per_token() * self.pool.page_size
        )

    # -- in the thread of backups ------------------------------------------------------------------

    def backup(self, hashes):
        """Stores pages batch by batch until one fails; how many were."""
        if self.engine.mla and self.rank != 0:
            return len(hashes)
        done = 0
        for start in range(0, len(hashes), STORAGE_BATCH_SIZE):
            batch = hashes[start : start + STORAGE_BATCH_SIZE]
            indices = self.pool.alloc(len(batch))
            for key, first in zip(batch, indices[:: self.pool.page_size]):
                self.pool.write(first, self.content(key))
            well = self._set(batch, indices)
            for key, first in zip(batch, indices[:: self.pool.page_size]):
                assert self.pool.read(first) == self.content(key)
            self.pool.free(indices)
            if not well:
                break
            done += len(batch)
        return done

    def _set(self, batch, indices):
        if self.zero_copy:
            results = self.storage.batch_set_v1(batch, indices, HiCacheStorageExtraInfo())
            assert len(results) == len(batch) and all(type(one) is bool for one in results)
            return all(results)
        pages = [self.pool.get_data_page(first) for first in indices[:: self.pool.page_size]]
        result = self.storage.batch_set(batch, pages)
        assert type(result) is bool
        return result

    # -- in the threads of prefetches --------------------------------------------------------------

    def hits(self, hashes):
        found = 0
        for start in range(0, len(hashes), STORAGE_BATCH_SIZE):
            batch = hashes[start : start + STORAGE_BATCH_SIZE]
            count = self.storage.batch_exists(batch, HiCacheStorageExtraInfo())
            assert type(count) is int and 0 <= count <= len(batch)
            found += count
            if count < len(batch):
                break
        return self.engine.hit_minimum.of(self.rank, found)

    def read(self, hashes):
        """Reads pages batch by batch until one is not there; how many all ranks have."""
        done = 0
        well = True
        for start in range(0, len(hashes), STORAGE_BATCH_SIZE):
            batch = hashes[start : start + STORAGE_BATCH_SIZE]
            indices = self.pool.alloc(len(batch))
            count = self._get(batch, indices) if well else 0
            well = count == len(batch)
            for key, first in zip(batch[:count], indices[:: self.pool.page_size]):
                self.engine.compared += 1
                assert self.pool.read(first) == self.content(key), f"wrong bytes of page {key}"
            done = self.engine.read_minimum.of(self.rank, done + count)
            self.pool.free(indices)
        return done

    def _get(self, batch, indices):
        if self.zero_copy:
            results = self.storage.batch_get_v1(batch, indices, HiCacheStorageExtraInfo())
            assert len(results) == len(batch) and all(type(one) is bool for one in results)
            return results.index(False) if False in results else len(results)
        pages = [self.pool.get_dummy_flat_data_page() for _ in batch]
        found = self.storage.batch_get(batch, pages)
        count = 0
        for first, page in zip(indices[:: self.pool.page_size], found):
            if page is None:
                break
            self.pool.set_from_flat_data_page(first, page)
            count += 1
        return count


class HiCacheEngine:
    """Ranks of one model, each with threads of its own, which meet as SGLang's do."""

    def __init__(
        self, extra, layout="page_first", tp=1, mla=False, model="Qwen/QwQ-32B", zero_copy=True, **pool
    ):
        self.layout, self.tp, self.mla, self.model, self.pool = layout, tp, mla, model, pool
        self.extra = {
            "backend_name": "ucm",
            "module_path": "ucm.integration.sglang.hicache",
            "class_name": "UcmHiCache",
            **({"interface_v1": 1} if zero_copy else {}),
            **extra,
        }
        self.hit_minimum, self.read_minimum = Minimum(tp), Minimum(tp)
        self.compared = 0
        self.ranks = [Rank(self, rank) for rank in range(tp)]

    def backup(self, hashes):
        """Stores pages on all ranks; how many the one with the fewest has stored."""
        answers = [rank.backups.begin(lambda rank=rank: rank.backup(hashes)) for rank in self.ranks]
        return min(self._answers(answers))

    def prefetch(self, hashes):
        """Reads the first pages that all ranks find; how many were found, and how many read."""
        answers = [rank.lookups.begin(lambda rank=rank: rank.hits(hashes)) for rank in self.ranks]
        found = min(self._answers(answers))
        some = hashes[:found]
        answers = [rank.reads.begin(lambda rank=rank: rank.read(some)) for rank in self.ranks]
        return found, min(self._answers(answers))

    def _answers(self, answers):
        found = [answer.get() for answer in answers]
        self.assert_alive()
        return found

    def abort(self):
        self.hit_minimum.abort()
        self.read_minimum.abort()

    def assert_alive(self):
        workers = [one for rank in self.ranks for one in (rank.lookups, rank.reads, rank.backups)]
        died = [worker.died for worker in workers if worker.died is not None]
        assert not died, "\n".join(died)
        for rank in self.ranks:
            stats = rank.storage.get_stats()
            assert stats is None or isinstance(stats, StorageMetrics)

    def close(self):
        for rank in self.ranks:
            for worker in (rank.lookups, rank.reads, rank.backups):
                worker.queue.put(None)
                worker.join()
            rank.storage.close()
            rank.pool.assert_unused()
        self.assert_alive()
