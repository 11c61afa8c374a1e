"""The scheduler side: asks the daemon what of a prompt can be loaded, and plans each step.

All methods are called by the one thread of the engine's loop, for which each microsecond counts: a
step that only decodes sends nothing, and no call waits longer than its bound.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ucm import protocol
from ucm.client import Connection, Gone, Link
from ucm.integration.vllm import compat, engine, events, groups, identity
from ucm.integration.vllm.generation import Generation
from ucm.integration.vllm.metadata import IDLE, Load, Save, UCMConnectorMetadata
from ucm.integration.vllm.plans import Entry, LatePlans, Owner
from ucm.integration.vllm.requests import Request, packed
from ucm.protocol import Found, ProtocolError, Refused

LOOKUP_SECONDS = 1.0
# How long a step that computes nothing waits for the answer to a look-up.
EMPTY_STEP_SECONDS = 0.005
PLAN_SECONDS = 0.2
HUNG_SECONDS = 2.0
PROMISE_SECONDS = 60.0
# No segment has it: it is no u32.
NO_GENERATION = -1
_NO_STATES: Mapping[groups.State, int] = {}
_FAILURES = (OSError, Gone, ProtocolError, Refused)


class SchedulerSide:
    """One for each engine."""

    def __init__(self, vllm_config: Any, kv_cache_config: Any) -> None:
        self._log = compat.logger()
        self._features = compat.features()
        self._adapters = identity.Adapters(self._log)
        self._generation = Generation(identity.launch(vllm_config), self._log)
        self._tokens = 1
        # Of the engine's KV cache; one of them is nobody's. None where vLLM does not say it.
        self._blocks: Optional[int] = None
        self._may_load_beside = False
        # Of a hybrid model's KV cache groups: blocks of a request that goes on may be given to others in
        # its next step. None for other models.
        self._rules: List[protocol.Rule] = []
        self._states: Set[int] = set()
        # The group whose blocks stand for those of the prompt where they are counted.
        self._main = 0
        # The daemon says whether loads go layer by layer instead.
        self._asynchronous = False
        self._loads = False
        self._saves = False
        self._requests: Dict[str, Request] = {}
        self._by_sequence: Dict[int, str] = {}
        self._unsaved: Set[str] = set()
        # Requests whose prompt is saved: how many tokens end the next block. Only if those are saved.
        self._decoding: Dict[str, int] = {}
        self._saves_generated = False
        # With the blocks that each needs to run.
        self._loading: Dict[str, int] = {}
        self._waits_for_room: Optional[str] = None
        # Requests whose load has ended and that have not run since.
        self._arrived: Set[str] = set()
        self._next_handle = 0
        self._step = 0
        self._taken: List[Tuple[int, int]] = []
        self._taken_epoch = 0
        self._forgotten: List[int] = []
        self._step_loads: List[Load] = []
        self._late = LatePlans(self._log, self._count)
        self._delayed: List[str] = []
        # Requests that have ended, and whose blocks the engine keeps until the workers name them.
        self._kept: Set[str] = set()
        self._preempted: Set[str] = set()
        self._counts: Dict[str, int] = {}
        self._events: Optional[events.Events] = None
        self._link: Optional[Link] = None
        with engine.goes_on(self._log):
            self._begin(vllm_config, kv_cache_config)

    def _begin(self, vllm_config: Any, kv_cache_config: Any) -> None:
        refusal = compat.refusal(vllm_config, kv_cache_config)
        if refusal is not None:
            raise compat.NotServed(refusal)
        self._engine = engine.describe(vllm_config)
        self._tokens = self._late.block_tokens = self._engine.block_tokens
        extra = engine.extra_config(vllm_config)
        self._may_load_beside = compat.loads_beside(vllm_config)
        self._blocks = compat.known_blocks(vllm_config, kv_cache_config)
        self._rules = compat.rules(kv_cache_config)
        self._states = compat.states(kv_cache_config) if self._rules else set()
        self._main = next((i for i, rule in enumerate(self._rules) if rule.kind == protocol.ALL), 0)
        self._loads = self._engine.role != 1
        self._saves = self._engine.role != 2
        if events.are_on(vllm_config):
            ranks = 1 if self._engine.mla else self._engine.tp_size
            ranks *= compat.stages(vllm_config.parallel_config)
            self._events = events.Events(self._tokens, ranks)
        self._link = Link(extra, protocol.SCHEDULER, "scheduler", self._open, self._log)
        self._link.start(5.0)

    def _open(self, connection: Connection) -> None:
        self._generation.identify(connection)
        body = self._engine.write(protocol.Writer())
        answer = connection.ask(protocol.OPEN_SCHEDULER, body, protocol.OPENED_SCHEDULER, 60.0)
        self._generation.opened(connection)
        settings = protocol.read_settings(answer.body)
        self._saves_generated = self._saves and bool(settings & protocol.SAVES_GENERATED)
        layerwise = bool(settings & protocol.LAYERWISE) and not self._rules
        self._asynchronous = self._may_load_beside and not layerwise

    # -- look-ups ----------------------------------------------------------------------------------

    def matched_tokens(self, request: Any, computed: int) -> Tuple[Optional[int], bool]:
        """How many tokens can be loaded beyond those computed; None when that is not known yet."""
        # One that is asked for has no blocks: if it was loaded, the load failed.
        failed = request.request_id in self._arrived
        self._arrived.discard(request.request_id)
        if self._link is None or not compat.can_be_named(request):
            return 0, False
        state = self._state(request)
        state.kept_at = time.monotonic()
        # It is computed then: what failed once may fail each time.
        state.is_computed |= failed
        if not self._loads and not self._saves:
            return 0, False
        if self._must_ask(state, request, computed):
            self._ask(state, request, computed)
        found = self._answer(state)
        if found is None or self._arrived:
            # A request without room ends the engine's round over those that wait. One whose load
            # has ended may wait behind it, and would keep its blocks for ever: it goes first.
            return None, False
        count = found.tokens if self._loads and not state.is_computed else 0
        if count == 0:
            return 0, False
        if not self._loads_beside(request):
            return count, False
        if not self._has_room(request):
            return None, False
        if self._rules:
            # All of it or nothing: a hit cannot end elsewhere.
            return (count, True) if computed + count < request.num_tokens else (0, False)
        count = len(found.slots) * self._tokens
        # The scheduler takes the last token of a full hit back itself.
        return min(count, request.num_tokens - computed), True

    def _has_room(self, request: Any) -> bool:
        """Whether a request can run beside those that are being loaded, whatever else it waits for.

        vLLM preempts only requests that run: those that were loaded and lack a block would wait for each
        other. None passes one that waits for room, and asks first when nothing is loaded any more.
        """
        if self._loading and self._blocks is not None:
            fits = sum(self._loading.values()) + self._needed(request) < self._blocks
            if not fits or self._waits_for_room not in (None, request.request_id):
                self._waits_for_room = self._waits_for_room or request.request_id
                return False
        self._waits_for_room = None
        return True

    def _needed(self, request: Any) -> int:
        """The most blocks that a request needs to run on, with one of each group for what it generates."""
        sizes = [rule.block_tokens for rule in self._rules] or [self._tokens]
        return sum(-(-request.num_tokens // tokens) + 1 for tokens in sizes)

    def _loads_beside(self, request: Any) -> bool:
        """Whether a request is loaded beside the engine's steps.

        One that was preempted would be a new one to vLLM up to 0.13, and lose the tokens that it has
        generated (0.14 is not told apart).
        """
        resumes = self._features.fences_preemptions or request.num_tokens == request.num_prompt_tokens
        return self._asynchronous and bool(resumes)

    def _state(self, request: Any) -> Request:
        state = self._requests.get(request.request_id)
        if state is None:
            self._next_handle = (self._next_handle + 1) & 0x7FFFFFFF
            state = self._requests[request.request_id] = Request(self._next_handle)
        return state

    def _must_ask(self, state: Request, request: Any, computed: int) -> bool:
        if state.asked != computed or state.asked_tokens != request.num_tokens:
            return True
        if state.found is None or state.found.hold == 0:
            return False
        link = self._link
        assert link is not None
        return (
            not link.connected
            or state.epoch != link.epoch
            or time.monotonic() - state.asked_at > PROMISE_SECONDS
        )

    def _ask(self, state: Request, request: Any, computed: int) -> None:
        state.asked = computed
        state.asked_tokens = request.num_tokens
        state.asked_at = time.monotonic()
        state.found = None
        state.full_blocks = request.num_tokens // self._tokens
        self._by_sequence.pop(state.sequence, None)
        state.sequence = 0
        link = self._link
        assert link is not None
        named = identity.of_request(request, self._adapters)
        if named is None:
            self._unsaved.discard(request.request_id)
            self._decoding.pop(request.request_id, None)
            self._nothing(state)
            return
        try:
            connection = link.get()
        except Gone:
            self._nothing(state)
            return
        if state.epoch != link.epoch:
            state.epoch, state.sent_tokens = link.epoch, 0
        if self._forgotten:
            # An id may come back before the next step.
            self._flush(connection)
        known = compat.known_tokens(request)
        tokens = request.all_token_ids[min(state.sent_tokens, known) : known]
        message = protocol.lookup(
            state.handle,
            request.request_id,
            computed,
            min(request.num_prompt_tokens, known),
            int(getattr(request, "max_tokens", 0) or 0),
            named.variants,
            min(state.sent_tokens, known),
            tokens,
            named.inputs,
        )
        try:
            state.sequence = connection.send(protocol.LOOKUP, message)
        except _FAILURES as error:
            link.lost(connection, error)
            self._nothing(state)
            return
        state.sent_tokens = known
        self._by_sequence[state.sequence] = request.request_id
        self._decoding.pop(request.request_id, None)
        if self._saves:
            self._unsaved.add(request.request_id)
            state.request = request if self._saves_generated else None
        if self._events is not None:
            state.request = request

    def _nothing(self, state: Request) -> None:
        self._by_sequence.pop(state.sequence, None)
        state.sequence = 0
        state.found = Found(state.handle, 0, 0, 0, [], 0, 0)

    def _answer(self, state: Request) -> Optional[Found]:
        if state.found is not None:
            return state.found
        link = self._link
        assert link is not None
        wait = 0.0 if self._features.deferred_lookup else LOOKUP_SECONDS
        deadline = time.monotonic() + wait
        while state.found is None:
            if state.epoch != link.epoch or not link.connected:
                self._nothing(state)
                break
            connection = link.get()
            try:
                frame = connection.poll(max(0.0, deadline - time.monotonic()))
                if frame is not None:
                    self._receive(frame)
                    continue
            except _FAILURES as error:
                link.lost(connection, error)
                continue
            if time.monotonic() - state.asked_at > LOOKUP_SECONDS:
                self._log.warning(
                    "UCM: a look-up was not answered in %g s: it counts as 0 hits", LOOKUP_SECONDS
                )
                self._nothing(state)
            break
        return state.found

    def _receive(self, frame: protocol.Frame) -> None:
        if self._late.answered(frame):
            return
        request_id = self._by_sequence.pop(frame.sequence, None)
        state = self._requests.get(request_id) if request_id is not None else None
        if frame.kind == protocol.REFUSED:
            raise protocol.read_refused(frame.body)
        if frame.kind != protocol.FOUND:
            return
        found = protocol.read_found(frame.body)
        if state is None or state.sequence != frame.sequence or state.found is not None:
            # Too late: what it holds is given back.
            if found.hold:
                self._take(found.hold, 0)
            return
        state.sequence = 0
        state.found = found
        if found.prompt_blocks == 0:
            # The daemon keeps no tokens before all ranks have registered.
            state.sent_tokens = 0
        else:
            self._log.info(
                "request_id: %s, total_blocks_num: %d, hit hbm: %d, hit external: %d, total tokens: %d",
                request_id,
                found.prompt_blocks,
                (state.asked or 0) // self._tokens,
                found.found_blocks,
                state.asked_tokens,
            )
            self._count("prompt_blocks", found.prompt_blocks)
            self._count("external_hit_blocks", found.found_blocks)
            # After a reset, what was asked before is not known of any more.
            if self._events is not None and state.asked is not None:
                self._events.found(state.request, state.asked // self._tokens, found.found_blocks)

    # -- steps -------------------------------------------------------------------------------------

    def allocated(self, request: Any, blocks: Any, external_tokens: int) -> None:
        """The engine has blocks for a request, and takes some tokens from outside."""
        self._arrived.discard(request.request_id)
        state = self._requests.get(request.request_id)
        if state is None:
            return
        tables = compat.tables(blocks)
        if tables and any(tables):
            state.tables = tables
        found = state.found
        if found is None:
            return
        if external_tokens == 0:
            if found.hold:
                # The engine computes it rather.
                self._take(found.hold, 0)
                state.asked = None
            return
        first, wanted, generation = state.asked or 0, -(-external_tokens // self._tokens), found.generation
        if self._rules:
            count = len(found.slots)
            parts = groups.loaded(self._rules, state.tables, found, first, external_tokens)
            if not parts:
                self._log.warning("UCM: request %s has got other blocks than were found", request.request_id)
                # No worker has such slots, so the engine is told that the load has failed.
                count, generation, parts = 0, NO_GENERATION, [[]]
        else:
            count = min(wanted, len(found.slots))
            begin = first // self._tokens
            parts = [
                [(block, slot) for block, slot in zip(table[begin:], found.slots[:count]) if block != 0]
                for table in state.tables
            ]
        self._take(found.hold, count)
        beside = self._loads_beside(request)
        one, *more = [packed(pairs) for pairs in parts] or [(b"", b"")]
        self._step_loads.append(
            Load(request.request_id, found.hold, generation, beside, *one, state.kept_at, tuple(more))
        )
        self._count("loaded_blocks", min(wanted, count))
        if beside:
            self._loading[request.request_id] = self._needed(request)
        # The promise is used up; a preempted request asks again.
        state.asked = None
        state.found = None

    def _take(self, hold: int, blocks: int) -> None:
        link = self._link
        assert link is not None
        if self._taken_epoch != link.epoch:
            # Holds of a connection that is lost have ended, and their numbers may be given again.
            self._taken, self._taken_epoch = [], link.epoch
        self._taken.append((hold, blocks))

    def build_meta(self, output: Any) -> UCMConnectorMetadata:
        """What the workers do in a step."""
        self._step += 1
        if self._is_idle(output):
            return IDLE
        if self._late:
            self._hear(0.0)
        meta = UCMConnectorMetadata(self._step_loads, [], self._delayed)
        self._step_loads, self._delayed = [], []
        requests = compat.scheduled(output, self._unsaved) if self._unsaved else []
        decoded = compat.advanced(output, self._decoding) if self._decoding else []
        meta.fences = self._preempt(output)
        entries: List[Entry] = []
        generated: List[Tuple[int, int, Sequence[int]]] = []
        computed_now = {one.request_id: one.computed for one in (*requests, *decoded)}
        for one in decoded:
            self._decode(one, entries, generated)
        meta.empty = not output.num_scheduled_tokens
        if meta.empty:
            meta.last = not self._requests
            if not self._loading and any(state.sequence for state in self._requests.values()):
                self._hear(EMPTY_STEP_SECONDS)
        else:
            # Older versions do not save in a step that computes nothing.
            self._save_late(output, meta)
        owes = self._late.owes and not meta.empty
        if requests or entries or self._taken or self._forgotten or owes:
            states = compat.handed_off(output) if self._states else {}
            self._plan(requests, entries, generated, meta, computed_now, states)
        if self._counts:
            meta.counts, self._counts = self._counts, {}
        return meta

    def _is_idle(self, output: Any) -> bool:
        """Whether a step has nothing for the daemon or the workers: those that only decode end here."""
        return not (
            self._taken
            or self._forgotten
            or self._step_loads
            or self._delayed
            or self._decoding
            or self._counts
            or self._late.has_work
            or not output.num_scheduled_tokens
            or self._unsaved and not output.num_scheduled_tokens.keys().isdisjoint(self._unsaved)
            or getattr(output, "preempted_req_ids", None)
            or getattr(output.scheduled_cached_reqs, "resumed_req_ids", None)
        )

    def _preempt(self, output: Any) -> bool:
        """Notes which requests lost their blocks; whether these may be overwritten in this step."""
        told = getattr(output, "preempted_req_ids", None) or ()
        lost = list(told)
        if self._features.fences_preemptions:
            # Up to 0.18, those that a reset of the engine's own cache preempts are not told.
            resumed = getattr(output.scheduled_cached_reqs, "resumed_req_ids", ())
            lost += [one for one in resumed if one not in self._preempted]
            self._preempted.update(told)
            self._preempted.difference_update(resumed)
        for request_id in lost:
            state = self._requests.get(request_id)
            if state is not None:
                state.asked = None
                state.is_computed = False
                state.stay += 1
                self._decoding.pop(request_id, None)
                self._late.drop(request_id)
        return bool(lost)

    def _save_late(self, output: Any, meta: UCMConnectorMetadata) -> None:
        """Late answers are used by requests that still have their blocks."""
        answers = self._late.answers()
        if not answers:
            return
        running = compat.scheduled(output, {answer.owner.request_id for answer in answers})
        now = {one.request_id: one.computed for one in running}
        for owner, planned, generation, since in answers:
            state, request_id = self._requests.get(owner.request_id), owner.request_id
            # What a group has let go of by now is known of a request that is in this step.
            lets_go = bool(self._rules) and self._rules[planned.group].kind != protocol.ALL
            if state is owner.state and state.stay == owner.stay and (request_id in now or not lets_go):
                meta.saves.append(
                    self._save(request_id, planned, generation, since, now.get(request_id, 0))
                )
                meta.lets_go |= lets_go
            else:
                meta.saves.append(Save("", planned.save, generation, b"", b"", since))
                self._late.lost(sum(slot != protocol.NO_SLOT for slot in planned.slots))

    def _decode(
        self,
        one: compat.Scheduled,
        entries: List[Entry],
        generated: List[Tuple[int, int, Sequence[int]]],
    ) -> None:
        """Adds the blocks of generated tokens that a request completes."""
        state = self._requests[one.request_id]
        state.extend(one)
        start = self._decoding.get(one.request_id, 0) - self._tokens
        # A token that is computed ahead of its value, or may be taken back, is not known.
        known = min(one.computed + one.new, compat.known_tokens(state.request))
        end = known // self._tokens * self._tokens
        if start < 0 or end <= start or self._late:
            return
        self._decoding[one.request_id] = end + self._tokens
        tokens = state.request.all_token_ids[state.sent_tokens : end]
        generated.append((state.handle, state.sent_tokens, tokens))
        entries.append((one.request_id, start, end - start))
        state.sent_tokens = end

    def _plan(
        self,
        requests: List[compat.Scheduled],
        entries: List[Entry],
        generated: List[Tuple[int, int, Sequence[int]]],
        meta: UCMConnectorMetadata,
        computed_now: Mapping[str, int],
        states: Mapping[groups.State, int],
    ) -> None:
        link = self._link
        assert link is not None
        for one in requests:
            state = self._requests[one.request_id]
            state.extend(one)
            if one.computed + one.new >= state.full_blocks * self._tokens:
                self._unsaved.discard(one.request_id)
                if self._saves_generated and state.request is not None:
                    self._decoding[one.request_id] = (state.full_blocks + 1) * self._tokens
            if state.epoch == link.epoch:
                entries.append((one.request_id, one.computed, one.new))
        try:
            connection = link.get()
        except Gone:
            self._taken, self._forgotten = [], []
            self._late.clear()
            return
        if self._late.epoch != link.epoch:
            self._late.clear()
            self._late.epoch = link.epoch
        if self._late:
            # The daemon is behind, and no step waits for it: these blocks are offered later.
            self._late.owe(entries)
            entries, generated = [], []
        elif not meta.empty:
            entries = self._late.with_owed(entries)
        since = time.monotonic()
        sequence = self._flush(connection, entries, generated)
        if sequence == 0:
            self._late.lose(entries)
            return
        owners = {}
        for request_id, _, _ in entries:
            state = self._requests[request_id]
            owners[state.handle] = Owner(request_id, state, state.stay)
        try:
            frame = connection.wait_if(sequence, protocol.PLANNED, PLAN_SECONDS)
            if frame is None:
                self._late.add(sequence, since, entries, owners)
                return
            generation, planned = protocol.read_planned(frame.body)
        except _FAILURES as error:
            self._late.lose(entries)
            link.lost(connection, error)
            return
        ends = {request_id: computed + new for request_id, computed, new in entries}
        for save in planned:
            request_id = owners[save.handle].request_id
            # Of a request that is not in this step, all that is computed was so before it.
            now = computed_now.get(request_id, ends[request_id])
            meta.saves.append(self._save(request_id, save, generation, since, now, states))
            meta.lets_go |= bool(self._rules) and self._rules[save.group].kind != protocol.ALL

    def _flush(
        self,
        connection: Connection,
        entries: Sequence[Entry] = (),
        generated: Sequence[Tuple[int, int, Sequence[int]]] = (),
    ) -> int:
        """Sends what there is to say of holds, requests that ended, and a step; the number of the frame."""
        link = self._link
        assert link is not None
        taken = self._taken if self._taken_epoch == link.epoch else []
        scheduled = [(self._requests[one].handle, computed, new) for one, computed, new in entries]
        message = protocol.plan(self._step, taken, self._forgotten, scheduled, generated)
        self._taken, self._forgotten = [], []
        try:
            return connection.send(protocol.PLAN, message, answered=bool(entries))
        except _FAILURES as error:
            link.lost(connection, error)
            return 0

    def _hear(self, seconds: float) -> None:
        """Reads what has come, or comes within the time; a daemon that owes a plan for long hangs."""
        link = self._link
        assert link is not None
        if self._late.epoch != link.epoch or not link.connected:
            self._late.clear()
        try:
            connection = link.get()
        except Gone:
            return
        try:
            frame = connection.poll(seconds)
            while frame is not None:
                self._receive(frame)
                frame = connection.poll()
            if self._late.age > HUNG_SECONDS:
                raise Gone(f"it did not answer within {HUNG_SECONDS:g} s")
        except _FAILURES as error:
            self._late.clear()
            link.lost(connection, error)

    def _save(
        self,
        request_id: str,
        planned: protocol.Planned,
        generation: int,
        since: float,
        computed: int = 0,
        states: Mapping[groups.State, int] = _NO_STATES,
    ) -> Save:
        """The copies of a plan; a save without blocks is given up."""
        state = self._requests[request_id]
        if planned.group in self._states:
            rule = self._rules[planned.group]
            pairs = groups.saved_states(rule, states, request_id, planned)
        else:
            pairs = groups.saved(self._rules, state.tables, planned, computed)
        if planned.group == self._main:
            self._count("saved_blocks", len(pairs))
            if pairs and self._events is not None:
                first, count = planned.first_block, len(planned.slots)
                self._events.planned(state.request, generation, planned.save, first, count)
        if pairs and self._features.fences_preemptions:
            state.saved = True
        return Save(request_id, planned.save, generation, *packed(pairs), since, planned.group)

    def worker_output(self, output: Any) -> None:
        """What the workers of all ranks reported."""
        received = getattr(output, "finished_recving", None)
        if received:
            arrived = self._loading.keys() & received
            for request_id in arrived:
                del self._loading[request_id]
            self._arrived |= arrived
        sent = getattr(output, "finished_sending", None)
        if sent:
            self._kept.difference_update(sent)
        if self._events is not None:
            self._events.handed_over(getattr(output, "kv_cache_events", None))
        if getattr(output, "invalid_block_ids", None) or getattr(output, "failed_recving", None):
            self._send(protocol.ERRORS_SEEN, protocol.Writer())

    @property
    def keeps_blocks(self) -> bool:
        """Whether blocks of requests that have ended are still copied, and will be free soon."""
        return bool(self._kept)

    def finished(self, request: Any, await_saves: Optional[Callable[[], None]] = None) -> bool:
        """A request has ended; whether its blocks are kept until nothing copies them.

        With the worker in this process, `await_saves` is its own: such an engine makes no step after
        its last request, in which the worker could name it.
        """
        request_id = request.request_id
        state = self._requests.pop(request_id, None)
        self._unsaved.discard(request_id)
        self._preempted.discard(request_id)
        self._decoding.pop(request_id, None)
        if state is None:
            return False
        self._by_sequence.pop(state.sequence, None)
        self._late.drop(request_id)
        if state.epoch:
            self._forgotten.append(state.handle)
        loading = request_id in self._loading
        self._loading.pop(request_id, None)
        self._arrived.discard(request_id)
        if loading and self._features.keeps_blocks_of_aborted_loads:
            return False
        if state.saved and not loading and await_saves is not None:
            await_saves()
            return False
        if loading or state.saved:
            self._delayed.append(request_id)
            self._kept.add(request_id)
            return True
        return False

    def reset(self) -> bool:
        """Nothing that was stored is found by this engine any more, also if no daemon hears of it now."""
        if self._link is None:
            return True
        for state in self._requests.values():
            # What was found before is asked for again.
            state.asked = None
        self._generation.begin(self._link)
        if self._events is not None:
            self._events.cleared()
        return True

    def take_events(self) -> Sequence[Any]:
        """vLLM's events since the last call."""
        return () if self._events is None else self._events.take()

    def _send(self, kind: int, body: protocol.Writer) -> None:
        link = self._link
        if link is None:
            return
        try:
            connection = link.get()
        except Gone:
            return
        try:
            connection.send(kind, body, answered=False)
        except _FAILURES as error:
            link.lost(connection, error)

    def _count(self, name: str, blocks: int) -> None:
        self._counts[name] = self._counts.get(name, 0) + blocks

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
