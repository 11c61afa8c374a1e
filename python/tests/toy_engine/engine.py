"""The toy engine: a scheduler with vLLM's rules over ranks that check every byte they use.

Not friendlier than vLLM: what vLLM asserts of a connector is asserted here.
"""

import pickle
import time
from collections import deque
from types import SimpleNamespace

from . import config as configs
from . import kv
from .worker import Rank, RankProcess, Work

WAITING, REMOTE, RUNNING, PREEMPTED, FINISHED = "waiting", "remote", "running", "preempted", "done"


class Request:
    """What a connector may read of a request, and what the scheduler keeps."""

    def __init__(self, request_id, prompt, max_tokens, more):
        self.request_id = request_id
        self.prompt_token_ids = list(prompt)
        self._all_token_ids = list(prompt)
        self.max_tokens = max_tokens
        self.num_computed_tokens = 0
        self.num_output_placeholders = 0
        self.lora_request = more.get("lora_request")
        self.mm_features = more.get("mm_features", [])
        self.cache_salt = more.get("cache_salt")
        self.prompt_embeds = more.get("prompt_embeds")
        self.skip_reading_prefix_cache = more.get("skip_reading_prefix_cache", False)
        self.kv_transfer_params = None
        self.salt = more.get("salt", 0)
        self.status = WAITING
        self.table = []
        self.loaded = False
        self.hashes = self._hash()

    def _hash(self):
        return kv.prefix_hashes(self._all_token_ids, self.salt)

    all_token_ids = property(lambda self: self._all_token_ids)
    num_tokens = property(lambda self: len(self._all_token_ids))
    num_prompt_tokens = property(lambda self: len(self.prompt_token_ids))
    output_token_ids = property(lambda self: self._all_token_ids[len(self.prompt_token_ids) :])

    def append(self, token):
        self._all_token_ids.append(token)
        self.hashes = self._hash()


class Blocks:
    """KVCacheBlocks of one group."""

    def __init__(self, table):
        self._table = list(table)

    def get_block_ids(self, allow_none=False):
        return (list(self._table),)


class BlockPool:
    """Blocks with reference counts; the block that was freed first is used first. Block 0 is null."""

    def __init__(self, count):
        self.free = deque(range(1, count))
        self.references = [0] * count
        self.by_hash, self.hash_of = {}, {}

    def allocate(self, count):
        if count > len(self.free):
            return None
        taken = [self.free.popleft() for _ in range(count)]
        for block in taken:
            self.forget(block)
            assert self.references[block] == 0
            self.references[block] = 1
        return taken

    def forget(self, block):
        old = self.hash_of.pop(block, None)
        if old is not None and self.by_hash.get(old) == block:
            del self.by_hash[old]

    def cache(self, block, content):
        if block not in self.hash_of and content not in self.by_hash:
            self.hash_of[block] = content
            self.by_hash[content] = block

    def share(self, block):
        if self.references[block] == 0:
            self.free.remove(block)
        self.references[block] += 1

    def release(self, blocks):
        for block in reversed(blocks):
            self.references[block] -= 1
            assert self.references[block] >= 0
            if self.references[block] == 0:
                self.free.append(block)


class ToyEngine:
    """An engine of `pp` stages of `tp` ranks; with one rank, the connector's both sides live in this process.

    Stages have some layers each, the first one more than the last.
    """

    request_type = Request
    rank_type = Rank

    def __init__(
        self,
        kv_transfer_config,
        layout="2BNHD",
        tp=1,
        pp=1,
        block_size=16,
        num_blocks=64,
        budget=64,
        max_num_seqs=8,
        prefix_caching=True,
        vocabulary=50,
        v2_runner=False,
        one_process=False,
    ):
        from vllm import PROFILE
        from vllm.distributed.kv_transfer.kv_connector.factory import create_connector
        from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
        from vllm.v1 import kv_cache_interface as interface

        self.profile = PROFILE
        self.v2_runner = v2_runner
        self.n = block_size
        self.budget, self.max_num_seqs = budget, max_num_seqs
        self.prefix_caching, self.vocabulary = prefix_caching, vocabulary
        mla = layout == "mla"
        self.config = configs.make(kv_transfer_config, tp, num_blocks, block_size, mla, pp)
        kind = interface.MLAAttentionSpec if mla else interface.FullAttentionSpec
        layers, page = self._shape()
        names = [f"model.layers.{i}.self_attn.attn" for i in range(layers)]

        def of_stage(stage):
            each = -(-layers // pp)
            own = names[stage * each : (stage + 1) * each]
            groups = [interface.KVCacheGroupSpec(own, kind(block_size, block_size * page))]
            return interface.KVCacheConfig(num_blocks, [], groups)

        kv_cache_config = of_stage(0)
        self.pool = BlockPool(num_blocks)
        if tp * pp == 1:
            self.ranks = [self.rank_type(self.config, 0, layout, kv_cache_config)]
        else:
            self.ranks = [RankProcess(self.config, r, layout, of_stage(r // tp)) for r in range(tp * pp)]
            for rank in self.ranks:
                rank.ready()
        self.connector = create_connector(self.config, KVConnectorRole.SCHEDULER, kv_cache_config)
        if not one_process:
            # As if the worker were not here; vLLM's are in processes of their own.
            self.connector._key = None
        self.waiting, self.running = deque(), []
        self.requests, self.outputs, self.hits = {}, {}, 0
        self.finished_ids = set()
        self.delayed, self.aborted_loads = {}, {}
        self.reports = {}

    def _shape(self):
        """Layers, and bytes of a token in one of them."""
        return kv.LAYERS, 2 * kv.HEADS * kv.DIM * 2

    # -- requests ----------------------------------------------------------------------------------

    def add(self, request_id, prompt, max_tokens=4, **more):
        request = self.request_type(request_id, prompt, max_tokens, more)
        self.requests[request_id] = request
        self.waiting.append(request)
        if self.profile >= (0, 24):
            self.connector.on_new_request(request)

    def abort(self, request_id):
        request = self.requests.get(request_id)
        if request is not None:
            self._finish(request)

    def _finish(self, request):
        was_remote = request.status == REMOTE and not request.loaded
        delay, _ = self.connector.request_finished(request, list(request.table))
        self.outputs[request.request_id] = request.output_token_ids
        self.finished_ids.add(request.request_id)
        del self.requests[request.request_id]
        if request in self.running:
            self.running.remove(request)
        if request in self.waiting:
            self.waiting.remove(request)
        request.status = FINISHED
        if was_remote and self.profile >= (0, 16):
            assert not delay, "blocks of an aborted load are kept by the scheduler itself"
            self.aborted_loads[request.request_id] = request
        elif delay:
            self.delayed[request.request_id] = request
        else:
            self.pool.release(request.table)

    # -- a step ------------------------------------------------------------------------------------

    def step(self):
        """One step; returns how many requests were scheduled."""
        scheduled, results = self._execute()
        self._update(scheduled, results)
        return len(scheduled)

    def _execute(self):
        output, scheduled, preempted = self._schedule()
        meta = self.connector.build_connector_meta(output)
        assert meta is not None
        copy = pickle.dumps(meta, pickle.HIGHEST_PROTOCOL)
        self.last_meta_bytes = len(copy)
        works = [self._work(*one) for one in scheduled]
        message = (meta, works, output.finished_req_ids, preempted)
        if len(self.ranks) == 1:
            results = [self.ranks[0].execute(*message)]
        else:
            for rank in self.ranks:
                rank.begin(*message)
            results = [rank.end() for rank in self.ranks]
        assert pickle.dumps(meta, pickle.HIGHEST_PROTOCOL) == copy, "a worker changed the metadata"
        return scheduled, results

    def _work(self, request, computed, new):
        hashes = request.hashes[: computed + new]
        return Work(request.request_id, hashes, list(request.table), computed, new)

    def _schedule(self):
        budget = self.budget
        scheduled, new_reqs, cached, preempted = [], [], [], set()
        for request in list(self.running):
            if request not in self.running:
                continue
            new = min(self._uncomputed(request), budget)
            if new <= 0:
                continue
            while True:
                blocks = self._extend(request, request.num_computed_tokens + new)
                if blocks is not None:
                    break
                victim = self.running.pop()
                self._preempt(victim, preempted)
                entry = [s for s in scheduled if s[0] is victim]
                if entry:
                    scheduled.remove(entry[0])
                    cached[:] = [c for c in cached if c[0] is not victim]
                    budget += entry[0][2]
                if victim is request:
                    break
            if request.status == RUNNING:
                cached.append((request, blocks, False))
                scheduled.append((request, request.num_computed_tokens, new))
                budget -= new
        skipped = deque()
        while self.waiting and budget > 0 and len(self.running) < self.max_num_seqs and not preempted:
            request = self.waiting.popleft()
            if request.status == REMOTE and not request.loaded:
                skipped.append(request)
                continue
            entry = self._admit(request, budget)
            if entry == "later":
                skipped.append(request)
                continue
            if entry is None:
                skipped.append(request)
                break
            if entry == "remote":
                skipped.append(request)
                continue
            new, resumed = entry
            if resumed and not self.v2_runner:
                cached.append((request, list(request.table), True))
            else:
                new_reqs.append(request)
            scheduled.append((request, request.num_computed_tokens, new))
            budget -= new
        self.waiting = skipped + self.waiting
        return self._output(scheduled, new_reqs, cached, preempted), scheduled, preempted

    def _uncomputed(self, request):
        return request.num_tokens - request.num_computed_tokens

    def _extend(self, request, tokens):
        missing = -(-tokens // self.n) - len(request.table)
        blocks = self.pool.allocate(max(0, missing))
        if blocks is not None:
            request.table += blocks
        return blocks

    def _preempt(self, request, preempted):
        self.pool.release(request.table)
        request.table, request.num_computed_tokens = [], 0
        request.status, request.loaded = PREEMPTED, False
        self.waiting.appendleft(request)
        preempted.add(request.request_id)

    def _admit(self, request, budget):
        """(new tokens, resumed), or "later", "remote", or None when there is no room."""
        resumed = request.status == PREEMPTED
        if request.loaded:
            computed = request.num_computed_tokens
            if computed == request.num_tokens:
                computed -= 1
            new = min(request.num_tokens - computed, budget)
            if self._extend(request, computed + new) is None:
                return None
            request.num_computed_tokens = computed
            self.connector.update_state_after_alloc(request, Blocks(request.table), 0)
            request.status, request.loaded = RUNNING, False
            self.running.append(request)
            return new, resumed
        local = self._local_hits(request)
        computed = len(local) * self.n
        found, later = self.connector.get_num_new_matched_tokens(request, computed)
        if found is None:
            assert self.profile >= (0, 11), "this version has no deferred look-up"
            return "later"
        assert isinstance(found, int) and 0 <= found <= request.num_tokens - computed
        assert found > 0 or not later
        if not later:
            assert computed + found < request.num_tokens, "a new token must be scheduled"
        new = 0 if later else min(request.num_tokens - computed - found, budget)
        if later and not self._fits_beside_loads(request, len(local)):
            return None
        for block in local:
            self.pool.share(block)
        request.table = list(local)
        if self._extend(request, computed + found + new) is None:
            self.pool.release(request.table)
            request.table = []
            return None
        self.connector.update_state_after_alloc(request, Blocks(request.table), found)
        request.num_computed_tokens = computed + found
        self.hits += found
        if later:
            request.status = REMOTE
            request.remote_from = computed
            return "remote"
        request.status = RUNNING
        self.running.append(request)
        return new, resumed

    def _fits_beside_loads(self, request, local):
        """Loads in flight hold blocks and run nothing: all of them must fit, to their ends."""
        missing = -(-(request.num_tokens + 1) // self.n) - local
        for other in self.waiting_loads():
            missing += max(0, -(-(other.num_tokens + 1) // self.n) - len(other.table))
        return missing <= len(self.pool.free)

    def waiting_loads(self):
        return [r for r in self.requests.values() if r.status == REMOTE]

    def _local_hits(self, request):
        local = []
        if not self.prefix_caching:
            return local
        for i in range((request.num_tokens - 1) // self.n):
            block = self.pool.by_hash.get(int(request.hashes[(i + 1) * self.n - 1]))
            if block is None:
                break
            local.append(block)
        return local

    def _output(self, scheduled, new_reqs, cached, preempted):
        new_data = [
            SimpleNamespace(
                req_id=r.request_id,
                prompt_token_ids=r.prompt_token_ids,
                block_ids=(list(r.table),),
                num_computed_tokens=r.num_computed_tokens,
                lora_request=r.lora_request,
                prefill_token_ids=list(r.all_token_ids) if self.v2_runner else None,
            )
            for r in new_reqs
        ]
        data = SimpleNamespace(
            req_ids=[r.request_id for r, _, _ in cached],
            new_block_ids=[
                (list(b),) if b or self.profile < (0, 11) else None for _, b, _ in cached
            ],
            num_computed_tokens=[r.num_computed_tokens for r, _, _ in cached],
            new_token_ids=[],
        )
        if self.profile >= (0, 12):
            data.resumed_req_ids = {r.request_id for r, _, resumed in cached if resumed}
        else:
            data.resumed_from_preemption = [resumed for _, _, resumed in cached]
        finished, self.finished_ids = self.finished_ids, set()
        output = SimpleNamespace(
            scheduled_new_reqs=new_data,
            scheduled_cached_reqs=data,
            num_scheduled_tokens={r.request_id: new for r, _, new in scheduled},
            total_num_scheduled_tokens=sum(new for _, _, new in scheduled),
            finished_req_ids=finished,
        )
        if self.profile >= (0, 12):
            output.preempted_req_ids = preempted or None
        return output

    # -- results -----------------------------------------------------------------------------------

    def _update(self, scheduled, results):
        sent, received = self._report(scheduled, results)
        for request, computed, new in scheduled:
            if request.status == RUNNING and request.num_computed_tokens == computed:
                request.num_computed_tokens += new
                self._cache(request)
                if request.num_computed_tokens == request.num_tokens:
                    self._sample(request)
        self._end_transfers(sent, received)

    def _report(self, scheduled, results):
        invalid = set().union(*(result.invalid for result in results))
        sent = self._aggregate("sent", [result.sent for result in results])
        received = self._aggregate("received", [result.received for result in results])
        if (invalid or sent or received) and self.profile >= (0, 11):
            output = SimpleNamespace(
                finished_sending=sent or None, finished_recving=received or None
            )
            if self.profile >= (0, 12):
                output.invalid_block_ids = invalid
            self.connector.update_connector_output(output)
        self._cut(scheduled, invalid)
        return sent, received

    def _end_transfers(self, sent, received):
        for request_id in received:
            self._received(request_id)
        for request_id in sent:
            request = self.delayed.pop(request_id, None)
            assert request is not None, f"{request_id} was reported as sent and was not delayed"
            self.pool.release(request.table)
        if self.profile >= (0, 11):
            assert list(self.connector.take_events()) == []

    def _aggregate(self, what, reported):
        """Ids that all ranks have reported, each rank once."""
        done = set()
        for rank, ids in enumerate(reported):
            for request_id in ids or ():
                seen = self.reports.setdefault((what, request_id), set())
                assert rank not in seen, f"rank {rank} reports {request_id} as {what} twice"
                seen.add(rank)
                if len(seen) == len(self.ranks):
                    del self.reports[(what, request_id)]
                    done.add(request_id)
        return done

    def _cut(self, scheduled, invalid):
        """Requests that used bad blocks compute again from the first of them."""
        if not invalid:
            return
        for request, _, _ in scheduled:
            bad = [i for i, block in enumerate(request.table) if block in invalid]
            if request.status == RUNNING and bad and bad[0] * self.n < request.num_computed_tokens:
                request.num_computed_tokens = bad[0] * self.n
        for request in self.requests.values():
            if request.status == REMOTE:
                bad = [i for i, block in enumerate(request.table) if block in invalid]
                if bad:
                    request.num_computed_tokens = min(
                        request.num_computed_tokens, bad[0] * self.n
                    )

    def _received(self, request_id):
        aborted = self.aborted_loads.pop(request_id, None)
        if aborted is not None:
            self.pool.release(aborted.table)
            return
        request = self.requests.get(request_id)
        assert request is not None and request.status == REMOTE, f"{request_id} does not wait"
        if request.num_computed_tokens == 0:
            self.pool.release(request.table)
            request.table, request.status = [], WAITING
            return
        request.loaded = True
        self._cache(request)

    def _cache(self, request):
        if not self.prefix_caching:
            return
        for i in range(request.num_computed_tokens // self.n):
            self.pool.cache(request.table[i], int(request.hashes[(i + 1) * self.n - 1]))

    def _sample(self, request):
        request.append(int(request.hashes[-1] % self.vocabulary))
        if len(request.output_token_ids) >= request.max_tokens:
            self._finish(request)

    def run(self, seconds=100):
        """Steps until nothing is left to do; a step without tokens is followed by a pause, as in vLLM."""
        deadline = time.monotonic() + seconds
        while self.requests or self.delayed or self.aborted_loads or self.finished_ids:
            if not self.step():
                time.sleep(0.001)
            assert time.monotonic() < deadline, f"requests are stuck: {self.requests}"

    def reset_prefix_cache(self):
        """The device forgets; what is stored elsewhere stays."""
        self.pool.by_hash.clear()
        self.pool.hash_of.clear()

    def close(self):
        """Nothing is leaked."""
        assert not self.delayed and not self.aborted_loads and not self.reports
        assert not any(self.pool.references), "blocks are leaked"
        for rank in self.ranks:
            rank.close()
        if self.profile >= (0, 11):
            self.connector.shutdown()
