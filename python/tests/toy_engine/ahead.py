"""Asynchronous scheduling: a step is scheduled before the tokens of the one before it are known."""

from collections import deque

from . import kv
from .engine import FINISHED, RUNNING, ToyEngine


class AheadEngine(ToyEngine):
    """The ranks compute with the true tokens; the scheduler learns them a step later.

    A request whose end is not known yet is scheduled once more, and that result is dropped.
    """

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.in_flight = deque()

    def _uncomputed(self, request):
        return request.num_tokens + request.num_output_placeholders - request.num_computed_tokens

    def _preempt(self, request, preempted):
        super()._preempt(request, preempted)
        request.num_output_placeholders = 0

    def step(self):
        scheduled, results = self._execute()
        sampled = []
        for request, computed, new in scheduled:
            request.num_computed_tokens = computed + new
            if self._uncomputed(request) == 0:
                request.num_output_placeholders += 1
                sampled.append(request)
                # What the device has: known tokens, and those of steps in flight.
                known = request.all_token_ids + [t for r, t in self._unknown() if r is request]
                token = int(request.hashes[-1] % self.vocabulary)
                request.hashes = kv.prefix_hashes(known + [token], request.salt)
                request.unknown = getattr(request, "unknown", []) + [token]
        self.in_flight.append((scheduled, results, sampled))
        if len(self.in_flight) > 1 or not scheduled:
            self._learn(*self.in_flight.popleft())
        return len(scheduled)

    def _unknown(self):
        return [
            (request, token)
            for _, _, sampled in self.in_flight
            for request in sampled
            for token in request.unknown
        ]

    def _learn(self, scheduled, results, sampled):
        sent, received = self._report(scheduled, results)
        for request in sampled:
            token = request.unknown.pop(0)
            if request.status == FINISHED:
                continue
            request.num_output_placeholders = max(0, request.num_output_placeholders - 1)
            request._all_token_ids.append(token)
            if len(request.output_token_ids) >= request.max_tokens:
                self._finish(request)
        for request, _, _ in scheduled:
            if request.status == RUNNING:
                self._cache(request)
        self._end_transfers(sent, received)

    def _cache(self, request):
        known = min(request.num_computed_tokens, request.num_tokens) // self.n
        for i in range(known):
            self.pool.cache(request.table[i], int(request.hashes[(i + 1) * self.n - 1]))

    def run(self, seconds=100):
        super().run(seconds)
        while self.in_flight:
            self._learn(*self.in_flight.popleft())
