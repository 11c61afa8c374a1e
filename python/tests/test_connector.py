"""The connector without a daemon: what each call costs, and what it does when nothing is as it should be."""

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from toy_engine import ToyEngine, config
from ucm import protocol
from ucm.client import Gone
from ucm.integration import stores
from ucm.integration.vllm import compat, engine, metadata
from ucm.integration.vllm.scheduler import SchedulerSide
from ucm.integration.vllm.ucm_connector import UCMConnector
from ucm.integration.vllm.worker import WorkerSide

HERE = os.path.dirname(os.path.abspath(__file__))


def transfer(tmp_path, **extra):
    return {
        "kv_connector": "UCMConnector",
        "kv_connector_module_path": "ucm.integration.vllm.ucm_connector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {
            "ucm_socket": str(tmp_path / "ucm.sock"),
            "ucm_start_daemon": False,
            "ucm_connector_name": "UcmNfsStore",
            **extra,
        },
    }


class FakeConnection:
    """Records what is sent; answers with what it is given."""

    def __init__(self, generation=1):
        self.generation = generation
        self.lingers = False
        self.sent = []
        # What was waited for, and how much had been sent before.
        self.asked = []
        self.frames = []
        self.planned = None
        self.sequence = 0

    def send(self, kind, body, answered=True):
        self.sent.append((kind, protocol.split(bytearray(body.frame(kind, 0))).body))
        self.sequence += 1
        return self.sequence if answered else 0

    def poll(self, seconds=0.0):
        return self.frames.pop(0) if self.frames else None

    def wait_if(self, sequence, expected, seconds):
        body, self.planned = self.planned, None
        return None if body is None else protocol.Frame(protocol.PLANNED, sequence, body)

    def ask(self, kind, body, expected, seconds):
        self.asked.append((kind, len(self.sent)))

    def kinds(self):
        return [kind for kind, _ in self.sent]


class FakeLink:
    def __init__(self, connection):
        self.epoch, self.connection, self.causes = 1, connection, []

    @property
    def connected(self):
        return self.connection is not None

    def get(self):
        if self.connection is None:
            raise Gone("test")
        return self.connection

    def lost(self, connection, why):
        self.connection = None
        self.causes.append(str(why))

    def close(self):
        pass


@pytest.fixture
def connection():
    return FakeConnection()


@pytest.fixture
def side(tmp_path, connection, monkeypatch):
    """A scheduler side with a connection that a test plays the daemon of."""
    monkeypatch.setattr("ucm.integration.vllm.scheduler.Link.start", lambda self, seconds: None)
    made = SchedulerSide(config.make(transfer(tmp_path), 1, 64, 16, False), None)
    made._link = FakeLink(connection)
    # What the daemon would have said: not layer by layer.
    made._asynchronous = made._may_load_beside
    return made


def request(request_id="a", tokens=100):
    return SimpleNamespace(
        request_id=request_id,
        prompt_token_ids=list(range(tokens)),
        all_token_ids=list(range(tokens)),
        num_tokens=tokens,
        num_prompt_tokens=tokens,
        num_output_placeholders=0,
        max_tokens=4,
    )


def found(handle, sequence, slots, tokens=None, hold=5, prompt_blocks=6):
    body = protocol.Writer().u32(handle).u32(16 * len(slots) if tokens is None else tokens)
    body.u64(hold if slots else 0).u32(1).u32s(slots).u32(prompt_blocks).u32(len(slots))
    body.u32(0)  # No groups.
    return protocol.split(bytearray(body.frame(protocol.FOUND, sequence)))


def planned(*saves):
    body = protocol.Writer().u32(1).u32(len(saves))
    for handle, save, first, slots in saves:
        body.u32(handle).u64(save).u32(first).u32s(slots)
    body.u32s([0] * len(saves))  # Their groups.
    return protocol.split(bytearray(body.frame(protocol.PLANNED, 0))).body


def output(new=(), cached=()):
    """A step: (id, blocks, computed, new tokens) of each request."""
    return SimpleNamespace(
        scheduled_new_reqs=[
            SimpleNamespace(req_id=i, block_ids=(blocks,), num_computed_tokens=computed)
            for i, blocks, computed, _ in new
        ],
        scheduled_cached_reqs=SimpleNamespace(
            req_ids=[c[0] for c in cached],
            new_block_ids=[c[1] and (c[1],) for c in cached],
            num_computed_tokens=[c[2] for c in cached],
            resumed_req_ids=set(),
        ),
        num_scheduled_tokens={i: tokens for i, _, _, tokens in [*new, *cached]},
        preempted_req_ids=None,
    )


def blocks(*table):
    return SimpleNamespace(get_block_ids=lambda: (list(table),))


def ask(side, connection, asked, slots, computed=0):
    """A look-up and its answer."""
    first = side.matched_tokens(asked, computed)
    handle = side._requests[asked.request_id].handle
    connection.frames.append(found(handle, connection.sequence, slots))
    return first, side.matched_tokens(asked, computed)


deferred = pytest.mark.skipif(
    not compat.features().deferred_lookup, reason="this version waits for look-ups"
)


# -- look-ups --------------------------------------------------------------------------------------


@deferred
def test_a_prompt_is_sent_once_however_often_it_is_asked_for(side, connection):
    first, second = ask(side, connection, request(), [3, 4])
    assert first == (None, False)
    assert second == (32, True)
    for _ in range(5):
        assert side.matched_tokens(request(), 0) == (32, True)
    assert connection.kinds() == [protocol.LOOKUP]


@deferred
@pytest.mark.parametrize("generated", [0, 1])
@pytest.mark.parametrize("keeps", [False, True], ids=["forgets", "keeps"])
def test_a_preempted_request_is_loaded_in_its_step_where_vllm_forgets_what_it_generated(
    side, connection, generated, keeps
):
    side._features = side._features._replace(fences_preemptions=keeps)
    asked = request()
    asked.num_prompt_tokens -= generated
    beside = keeps or generated == 0
    assert ask(side, connection, asked, [3, 4])[1] == (32, beside)
    side.allocated(asked, blocks(5, 6, 7), 32)
    (load,) = side.build_meta(output()).loads
    assert load.asynchronous is beside


@deferred
def test_another_number_of_computed_tokens_is_asked_for_without_the_tokens(side, connection):
    ask(side, connection, request(), [3, 4])
    _, second = ask(side, connection, request(), [4], computed=16)
    assert second == (16, True)
    reader = protocol.Reader(connection.sent[-1][1])
    reader.u32(), reader.string()
    assert (reader.u32(), reader.u32(), reader.u32()) == (16, 100, 4)
    assert reader.u32() == 0  # Variants.
    assert (reader.u32(), reader.u32s()) == (100, [])


@deferred
def test_a_promise_does_not_outlive_its_connection(side, connection):
    ask(side, connection, request(), [3, 4])
    side._link.connection = None
    assert side.matched_tokens(request(), 0) == (0, False)
    # The next daemon knows nothing of it: all tokens are sent again.
    side._link.connection, side._link.epoch = connection, 2
    assert side.matched_tokens(request("b"), 0) == (None, False)
    assert side.matched_tokens(request("a", 101), 0) == (None, False)
    reader = protocol.Reader(connection.sent[-1][1])
    reader.u32(), reader.string(), reader.u32(), reader.u32(), reader.u32(), reader.u32()
    assert reader.u32() == 0
    assert len(reader.u32s()) == 101


@deferred
def test_tokens_are_sent_again_to_a_daemon_that_kept_none(side, connection):
    side.matched_tokens(request(), 0)
    connection.frames.append(found(1, connection.sequence, [], prompt_blocks=0))
    assert side.matched_tokens(request(), 0) == (0, False)
    side.matched_tokens(request(tokens=130), 16)
    reader = protocol.Reader(connection.sent[-1][1])
    reader.u32(), reader.string(), reader.u32(), reader.u32(), reader.u32(), reader.u32()
    assert reader.u32() == 0


@deferred
def test_an_id_that_comes_back_at_once_is_a_new_request(side, connection):
    ask(side, connection, request(), [])
    side.finished(request())
    side.matched_tokens(request(), 0)
    # The daemon forgets the old one first.
    assert connection.kinds() == [protocol.LOOKUP, protocol.PLAN, protocol.LOOKUP]


def received(*ids):
    return SimpleNamespace(finished_sending=None, finished_recving=set(ids), invalid_block_ids=set())


@deferred
def test_a_request_without_room_does_not_keep_loaded_ones_from_running(side, connection):
    """The engine stops at the first waiting request without room, so loaded ones behind it go first."""
    for one in (request("a"), request("b")):
        assert ask(side, connection, one, [3, 4])[1] == (32, True)
        side.allocated(one, blocks(7, 8), 32)
    assert ask(side, connection, request("c"), [5, 6])[1] == (32, True)
    side.worker_output(received("a", "b"))
    assert side.matched_tokens(request("c"), 0) == (None, False)
    side.allocated(request("a"), blocks(7, 8), 0)
    assert side.matched_tokens(request("c"), 0) == (None, False)
    side.finished(request("b"))
    assert side.matched_tokens(request("c"), 0) == (32, True)


@deferred
def test_requests_are_loaded_at_once_only_if_all_of_them_can_run(side, connection):
    """vLLM preempts none that were loaded and have not run: each would wait for the others' blocks."""
    # Of 64 blocks, a prompt of 400 tokens needs 25, and one more for what it generates.
    for one in (request("a", 400), request("b", 400)):
        assert ask(side, connection, one, [3, 4])[1] == (32, True)
        side.allocated(one, blocks(7, 8), 32)
    assert ask(side, connection, request("c", 160), [5, 6])[1] == (32, True)
    # A block more is one too many; and what comes later does not pass it.
    assert ask(side, connection, request("d", 161), [5, 6])[1] == (None, False)
    assert side.matched_tokens(request("c", 160), 0) == (None, False)
    side.worker_output(received("a", "b"))
    for name in "ab":
        assert side.matched_tokens(request("d", 161), 0) == (None, False)
        side.allocated(request(name, 400), blocks(7, 8), 0)
    # Those that run can be preempted.
    assert side.matched_tokens(request("d", 161), 0) == (32, True)
    side.allocated(request("d", 161), blocks(7, 8), 32)
    assert side.matched_tokens(request("c", 160), 0) == (32, True)


@deferred
def test_one_that_waits_for_room_and_ends_holds_up_nobody(side, connection):
    ask(side, connection, request("a", 900), [3, 4])
    side.allocated(request("a", 900), blocks(7, 8), 32)
    assert ask(side, connection, request("b", 900), [5, 6])[1] == (None, False)
    assert ask(side, connection, request("c", 40), [5, 6])[1] == (None, False)
    side.finished(request("b", 900))
    side.worker_output(received("a"))
    side.allocated(request("a", 900), blocks(7, 8), 0)
    assert side.matched_tokens(request("c", 40), 0) == (32, True)
    side.allocated(request("c", 40), blocks(7, 8), 32)
    assert ask(side, connection, request("d", 40), [5, 6])[1] == (32, True)


@deferred
def test_requests_whose_loads_failed_are_computed_and_do_not_wait_for_each_other(side, connection):
    for one in (request("a"), request("b")):
        ask(side, connection, one, [3, 4])
        side.allocated(one, blocks(7, 8), 32)
    side.worker_output(received("a", "b"))
    for one in (request("a"), request("b"), request("a")):
        answer = ask(side, connection, one, [3, 4])
    # What failed once may fail each time: another load would be no end of it.
    assert answer[1] == (0, False)
    assert ask(side, connection, request("b"), [3, 4])[1] == (0, False)
    side.allocated(request("a"), blocks(7, 8), 0)
    assert (5, 0) in side._taken


@deferred
def test_a_look_up_that_is_not_answered_counts_as_nothing_found(side, connection, monkeypatch):
    assert side.matched_tokens(request(), 0) == (None, False)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 0.9)
    assert side.matched_tokens(request(), 0) == (None, False)
    monkeypatch.setattr(time, "monotonic", lambda: now + 1.1)
    assert side.matched_tokens(request(), 0) == (0, False)
    # What arrives later is given back.
    connection.frames.append(found(1, connection.sequence, [3, 4], hold=77))
    side.matched_tokens(request("b"), 0)
    side.build_meta(output())
    reader = protocol.Reader(connection.sent[-1][1])
    reader.u32()
    assert (reader.u32(), reader.u64(), reader.u32()) == (1, 77, 0)


@deferred
def test_a_step_that_computes_nothing_waits_for_the_answer(side, connection):
    side.matched_tokens(request(), 0)
    answer, waited = found(1, connection.sequence, [3, 4]), []
    connection.poll = lambda seconds=0.0: waited.append(seconds) or (answer if seconds else None)
    # One with tokens does not.
    side.build_meta(output(cached=[("other", None, 16, 1)]))
    assert not any(waited)
    side.build_meta(output())
    assert [one for one in waited if one] == [0.005]
    assert side.matched_tokens(request(), 0) == (32, True)
    waited.clear()
    side.build_meta(output())
    assert waited == []


@deferred
def test_an_answer_that_comes_too_late_gives_its_hold_back(side, connection):
    side.matched_tokens(request(), 0)
    late = found(1, connection.sequence, [3, 4], hold=77)
    side.finished(request())
    side.matched_tokens(request("b"), 0)
    connection.frames.append(late)
    side.matched_tokens(request("b"), 0)
    side.build_meta(output())
    reader = protocol.Reader(connection.sent[-1][1])
    reader.u32()
    assert (reader.u32(), reader.u64(), reader.u32()) == (1, 77, 0)


# -- steps -----------------------------------------------------------------------------------------


@deferred
def test_a_load_pairs_blocks_with_slots_and_leaves_the_null_block_alone(side, connection):
    _, (tokens, _) = ask(side, connection, request(), [30, 31], computed=32)
    side.allocated(request(), blocks(7, 8, 9, 0, 11), tokens)
    (load,) = side.build_meta(output()).loads
    assert (metadata.unpack(load.blocks), metadata.unpack(load.slots)) == ([9], [30])
    assert load.asynchronous


@deferred
def test_a_step_saves_what_the_daemon_plans(side, connection):
    ask(side, connection, request(), [])
    side.allocated(request(), blocks(5, 6, 7), 0)
    connection.planned = planned((1, 9, 1, [40, protocol.NO_SLOT]))
    (save,) = side.build_meta(output(new=[("a", [5, 6, 7], 0, 48)])).saves
    assert (save.save, metadata.unpack(save.blocks), metadata.unpack(save.slots)) == (9, [6], [40])


@deferred
@pytest.mark.parametrize("table", [[5, 6], [5, 0, 7]], ids=["missing", "null"])
def test_a_save_of_blocks_that_the_engine_does_not_have_is_given_up(side, connection, table):
    ask(side, connection, request(), [])
    side.allocated(request(), blocks(*table), 0)
    connection.planned = planned((1, 9, 0, [40, 41, 42]))
    (save,) = side.build_meta(output(new=[("a", table, 0, 48)])).saves
    assert (save.save, save.blocks, save.slots) == (9, b"", b"")


def scheduled(connection):
    """(handle, computed, new) of the last plan."""
    reader = protocol.Reader(connection.sent[-1][1])
    reader.u32()
    for _ in range(reader.u32()):
        reader.u64(), reader.u32()
    reader.u32s()
    return [(reader.u32(), reader.u32(), reader.u32()) for _ in range(reader.u32())]


def begin_late(side, connection):
    """A plan that is not answered in time; its number."""
    ask(side, connection, request(), [])
    side.allocated(request(), blocks(5, 6, 7, 8, 9, 10, 11), 0)
    assert side.build_meta(output(new=[("a", [5, 6, 7, 8, 9, 10, 11], 0, 16)])).saves == []
    return connection.sequence


@deferred
def test_a_late_plan_is_used_and_what_was_computed_meanwhile_is_offered(side, connection):
    late = begin_late(side, connection)
    # While the daemon is behind, steps do not wait for it.
    count = len(connection.sent)
    assert side.build_meta(output(cached=[("a", None, 16, 16)])).saves == []
    assert side.build_meta(output(cached=[("a", None, 32, 16)])).saves == []
    assert len(connection.sent) == count + 2
    connection.frames.append(protocol.Frame(protocol.PLANNED, late, planned((1, 9, 0, [40]))))
    connection.planned = planned((1, 10, 1, [41, 42, 43]))
    meta = side.build_meta(output(cached=[("a", None, 48, 16)]))
    first, others = meta.saves
    assert scheduled(connection) == [(1, 16, 48)]
    assert (first.save, metadata.unpack(first.blocks)) == (9, [5])
    assert (others.save, metadata.unpack(others.blocks)) == (10, [6, 7, 8])
    assert side._link.causes == []
    assert "unsaved_blocks" not in meta.counts


@deferred
def test_what_is_owed_is_offered_while_a_request_decodes(side, connection):
    late = begin_late(side, connection)
    side.build_meta(output(cached=[("a", None, 16, 84)]))
    connection.frames.append(protocol.Frame(protocol.PLANNED, late, planned((1, 9, 0, [40]))))
    # Older versions do not save in a step that computes nothing.
    assert side.build_meta(output()).saves == []
    connection.planned = planned((1, 10, 1, [41, 42, 43, 44, 45]))
    assert [save.save for save in side.build_meta(output(cached=[("a", None, 100, 1)])).saves] == [9, 10]
    assert scheduled(connection) == [(1, 16, 84)]
    side.build_meta(output(cached=[("a", None, 101, 1)]))
    assert scheduled(connection) == [(1, 16, 84)]


@deferred
@pytest.mark.parametrize("how", ["finished", "preempted", "returned"])
def test_a_late_plan_for_blocks_that_are_gone_is_given_up_and_counted(side, connection, caplog, how):
    late = begin_late(side, connection)
    step = output(cached=[("other", None, 16, 1)])
    side.build_meta(output(cached=[("a", None, 16, 32)]))
    if how == "preempted":
        step.preempted_req_ids = {"a"}
    else:
        side.finished(request())
    if how == "returned":
        side.matched_tokens(request(), 0)
    connection.frames.append(protocol.Frame(protocol.PLANNED, late, planned((1, 9, 0, [40]))))
    meta = side.build_meta(step)
    (save,) = meta.saves
    assert (save.save, save.blocks) == (9, b"")
    # One of the late plan, two that no plan has named.
    assert meta.counts["unsaved_blocks"] == 3
    assert len([r for r in caplog.records if "ucm_unsaved_blocks" in r.getMessage()]) == 1


@deferred
def test_what_is_late_when_the_connection_ends_is_counted(side, connection):
    begin_late(side, connection)
    side.build_meta(output(cached=[("a", None, 16, 32)]))
    side._link.connection = None
    meta = side.build_meta(output(cached=[("a", None, 48, 16)]))
    assert meta.counts["unsaved_blocks"] == 3


@deferred
def test_a_daemon_that_hangs_is_left_after_two_seconds(side, connection, monkeypatch):
    ask(side, connection, request(), [])
    side.build_meta(output(new=[("a", [5, 6, 7], 0, 16)]))
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3)
    side.build_meta(output(cached=[("a", None, 16, 16)]))
    assert side._link.causes == ["it did not answer within 2 s"]
    assert side.matched_tokens(request("b"), 0) == (0, False)


def test_a_decoding_step_sends_nothing(side, connection):
    ids = [f"request-{i}" for i in range(256)]
    for i in ids:
        side._state(request(i))
    side.build_meta(output(cached=[(i, None, 1000, 1) for i in ids]))
    assert connection.sent == []


def test_a_decoding_step_is_idle_on_both_sides(side, worker, connector):
    meta = pickle.loads(pickle.dumps(side.build_meta(output(cached=[("a", None, 1000, 1)]))))
    assert meta is metadata.IDLE
    worker.layerwise = True
    connector.handle_preemptions(meta)
    connector.bind_connector_metadata(meta)
    connector.start_load_kv(None)
    assert not connector.has_connector_metadata()
    connector.wait_for_save()
    assert connector.get_finished(set()) == (None, None)
    connector.clear_connector_metadata()
    assert worker.step is None


@deferred
@pytest.mark.parametrize(
    "work",
    "load take forget prompt delayed decode count late owed lost resumed empty".split(),
)
def test_a_step_with_work_is_not_idle(side, connection, work):
    step = output(cached=[("a", None, 16, 1)])
    if work == "load":
        side._step_loads.append("load")
    elif work == "take":
        side._take(5, 0)
    elif work == "forget":
        side._forgotten.append(1)
    elif work == "prompt":
        ask(side, connection, request(), [])
    elif work == "delayed":
        side._delayed.append("b")
    elif work == "decode":
        side._state(request())
        side._decoding["a"] = 32
    elif work == "count":
        side._count("saved_blocks", 1)
    elif work == "late":
        side._late.add(1, time.monotonic(), [], {})
    elif work == "owed":
        side._late.owe([("a", 0, 16)])
        side._state(request())
    elif work == "lost":
        step.preempted_req_ids = {"a"}
    elif work == "resumed":
        step.scheduled_cached_reqs.resumed_req_ids = {"a"}
    else:
        step = output()
    assert side.build_meta(step) is not metadata.IDLE


@deferred
def test_the_metadata_is_small(side, connection):
    count, table = 50, list(range(1, 51))
    for i in range(count):
        asked = request(f"request-{i:030}", 16 * len(table))
        ask(side, connection, asked, table)
        side.allocated(asked, blocks(*table), 16 * len(table))
    meta = side.build_meta(output())
    assert len(meta.loads) == count
    empty = len(pickle.dumps(metadata.UCMConnectorMetadata(), pickle.HIGHEST_PROTOCOL))
    size = len(pickle.dumps(meta, pickle.HIGHEST_PROTOCOL)) - empty
    # The id of a request is not counted.
    assert size / count < 100 + 38 + 8 * len(table), size / count


# -- the worker ------------------------------------------------------------------------------------


@pytest.fixture
def worker(tmp_path, connection, monkeypatch):
    monkeypatch.setattr("ucm.integration.vllm.worker.Link.start", lambda self, seconds: None)
    made = WorkerSide(config.make(transfer(tmp_path), 1, 8, 16, False), None)
    made.register({f"model.layers.{i}.attn": torch.zeros(2, 8, 16, 3, 8) for i in range(2)})
    made._link = FakeLink(connection)
    return made


def load(generation, asynchronous=False):
    blocks, slots = metadata.pack([3, 4]), metadata.pack([0, 1])
    return metadata.Load("a", 5, generation, asynchronous, blocks, slots, time.monotonic())


def save(generation, number=9, slot=0, age=0.0):
    blocks, slots = metadata.pack([6]), metadata.pack([slot])
    return metadata.Save("a", number, generation, blocks, slots, time.monotonic() - age)


def slots_of(saved):
    """A segment that notes which slots are written."""
    return SimpleNamespace(
        save=lambda layout, group, slots, blocks: saved.append(slots),
        segment=SimpleNamespace(filling=lambda slots: contextlib.nullcontext()),
    )


def test_a_load_from_an_unknown_segment_is_reported(worker, connection):
    worker.start_load(metadata.UCMConnectorMetadata([load(1)], []))
    worker.wait_for_save()
    assert worker.take_errors() == {3, 4}
    assert worker.take_errors() == set()
    assert connection.sent == [(protocol.LOADED, _numbers([], [5]))]


def test_an_asynchronous_load_from_an_unknown_segment_is_reported_once_and_ends(worker, connection):
    worker.start_load(metadata.UCMConnectorMetadata([load(1, asynchronous=True)], []))
    deadline = time.monotonic() + 60
    received = None
    while received is None and time.monotonic() < deadline:
        _, received = worker.take_finished()
    assert received == {"a"}
    assert worker.take_errors() == {3, 4}
    assert connection.sent == [(protocol.LOADED, _numbers([], [5]))]
    assert worker.take_finished() == (None, None)
    worker.close()


def test_numbers_of_a_session_that_ended_are_not_told_to_the_next_one(worker, connection):
    saves = [save(2)]
    worker.start_load(metadata.UCMConnectorMetadata([load(2)], saves))
    worker.wait_for_save()
    worker.close()
    # That a load failed is told, without a number that could be another hold's.
    assert connection.sent == [(protocol.LOADED, _numbers([], [0]))]


def test_saves_of_a_step_with_a_failed_load_are_given_up(worker, connection):
    saves = [save(1)]
    worker._staging[1] = None  # Not copied from: the step has failed before.
    worker.start_load(metadata.UCMConnectorMetadata([load(7)], saves))
    worker.wait_for_save()
    worker.close()
    assert connection.sent[-1] == (protocol.SAVED, _numbers([], [9]))


def test_slots_that_may_have_another_use_by_now_are_not_written(worker, connection):
    saved = []
    worker._staging[1] = slots_of(saved)
    worker.start_load(metadata.UCMConnectorMetadata([], [save(1, number=8, age=60.0), save(1, slot=1)]))
    worker.wait_for_save()
    worker.close()
    assert connection.sent[-1] == (protocol.SAVED, _numbers([9], [8]))
    assert {slot for slots in saved for slot in slots} == {1}


def test_a_save_that_was_given_up_before_the_step_is_not_one_that_fails_layer_by_layer(worker, connection):
    saved = []
    worker._staging[1] = slots_of(saved)
    worker.layerwise, worker._saves_beside = True, False
    given_up = metadata.Save("", 8, 1, b"", b"", time.monotonic() - 60.0)
    worker.start_load(metadata.UCMConnectorMetadata([], [given_up, save(1)]))
    for name in ("model.layers.0.attn", "model.layers.1.attn"):
        worker.save_layer(name)
    worker.wait_for_save()
    worker.close()
    assert connection.sent[-1] == (protocol.SAVED, _numbers([9], [8]))
    assert len(saved) == 2


fences = pytest.mark.skipif(
    not compat.features().fences_preemptions, reason="this version's saves end with their step"
)


@fences
@pytest.mark.parametrize("next_call", ["start_load", "await_saves", "close"])
def test_saves_begin_after_the_step_has_sampled(worker, connection, next_call):
    saves = [save(1)]
    worker.start_load(metadata.UCMConnectorMetadata([], saves))
    worker.wait_for_save()
    worker.take_finished()
    assert worker._saver._jobs.empty()
    assert connection.sent == []
    if next_call == "start_load":
        worker.start_load(metadata.UCMConnectorMetadata([], []))
    elif next_call == "await_saves":
        worker.await_saves()
    worker.close()
    assert connection.sent == [(protocol.SAVED, _numbers([], [9]))]
    # Else the end of the scheduler's side could be heard before, and what was saved be dropped.
    assert connection.asked == [(protocol.PING, 1)]


@fences
def test_an_idle_step_begins_the_saves_of_the_one_before(worker, connection, connector):
    saves = [save(1)]
    worker.start_load(metadata.UCMConnectorMetadata([], saves))
    worker.wait_for_save()
    worker.end_step()
    assert worker.deferred
    connector.bind_connector_metadata(metadata.IDLE)
    connector.start_load_kv(None)
    assert not worker.deferred
    worker.close()
    assert connection.sent == [(protocol.SAVED, _numbers([], [9]))]


@pytest.fixture
def slow(worker, connection, monkeypatch):
    """A save that is under way until the test lets it end; its metadata came in the step before."""
    may_end, begun = threading.Event(), threading.Event()

    def copy(save, layers):
        begun.set()
        return may_end.wait(60)

    monkeypatch.setattr(worker, "_copy_out", copy)
    saves = [save(1)]
    worker.start_load(metadata.UCMConnectorMetadata([], saves))
    worker.wait_for_save()
    worker.start_load(metadata.UCMConnectorMetadata())
    assert begun.wait(60)
    yield SimpleNamespace(end=may_end.set)
    may_end.set()
    worker.close()


class Waits(Exception):
    pass


@pytest.fixture
def connector(worker, monkeypatch):
    """The worker's connector, which says when it would wait for saves."""
    made = UCMConnector.__new__(UCMConnector)
    made._worker, made._scheduler = worker, None
    monkeypatch.setattr("ucm.integration.vllm.copies.Copier.drain", mock_wait)
    return made


def mock_wait(_):
    raise Waits


@fences
@pytest.mark.parametrize(
    "preempted, waits",
    [
        (metadata.UCMConnectorMetadata(), False),
        (metadata.UCMConnectorMetadata(empty=True), False),
        (metadata.UCMConnectorMetadata(fences=True), True),
        ({"a"}, True),
    ],
    ids=["nobody", "empty", "metadata", "ids"],
)
def test_a_step_waits_for_saves_only_when_a_request_was_preempted(slow, connector, preempted, waits):
    if not waits:
        connector.handle_preemptions(preempted)
        return
    with pytest.raises(Waits):
        connector.handle_preemptions(preempted)


@fences
@pytest.mark.parametrize("told", ["fences", "last"])
def test_a_step_that_is_the_last_or_uses_blocks_again_waits_where_it_begins(slow, connector, told):
    meta = metadata.UCMConnectorMetadata()
    connector._worker.start_load(meta)
    setattr(meta, told, True)
    with pytest.raises(Waits):
        connector._worker.start_load(meta)


@fences
def test_an_empty_step_waits_for_the_end_of_a_copy(slow, worker):
    worker.start_load(metadata.UCMConnectorMetadata(delayed=["a"], empty=True))
    assert worker.take_finished() == (None, None)
    slow.end()
    found = None
    while found is None:
        worker.start_load(metadata.UCMConnectorMetadata(empty=True))
        found, _ = worker.take_finished()
    assert found == {"a"}


@fences
def test_the_last_step_names_the_requests_that_were_kept(worker, connection):
    saves = [save(1)]
    worker.start_load(metadata.UCMConnectorMetadata([], saves))
    worker.wait_for_save()
    assert worker.take_finished() == (None, None)
    worker.start_load(metadata.UCMConnectorMetadata(delayed=["a"], empty=True, last=True))
    assert worker.take_finished() == ({"a"}, None)


@fences
@deferred
def test_the_metadata_says_whose_blocks_may_be_used_again(side, connection):
    def step(preempted=None, resumed=()):
        made = output(cached=[("a", None, 100, 1)])
        made.preempted_req_ids = preempted
        made.scheduled_cached_reqs.resumed_req_ids = set(resumed)
        return side.build_meta(made).fences

    assert not step()
    assert step({"a"})
    assert not step(resumed={"a"})
    # Up to 0.18, a reset of the engine's own cache does not tell whom it preempts.
    assert step(resumed={"a"})
    assert not step()


@fences
@deferred
def test_an_engine_goes_on_while_it_keeps_blocks(side, connection):
    ask(side, connection, request(), [])
    side.allocated(request(), blocks(5, 6, 7), 0)
    connection.planned = planned((1, 9, 0, [40]))
    side.build_meta(output(new=[("a", [5, 6, 7], 0, 100)]))
    assert not side.keeps_blocks
    assert side.finished(request())
    assert side.keeps_blocks
    meta = side.build_meta(output())
    assert (meta.delayed, meta.empty, meta.last) == (["a"], True, True)
    side.worker_output(SimpleNamespace(finished_sending={"a"}, finished_recving=None))
    assert not side.keeps_blocks


@fences
@deferred
def test_with_the_worker_in_its_process_a_request_ends_after_its_saves(side, connection):
    ask(side, connection, request(), [])
    side.allocated(request(), blocks(5, 6, 7), 0)
    connection.planned = planned((1, 9, 0, [40]))
    side.build_meta(output(new=[("a", [5, 6, 7], 0, 100)]))
    waited = []
    assert not side.finished(request(), lambda: waited.append("a"))
    assert (waited, side.keeps_blocks) == (["a"], False)


def test_hooks_may_come_without_metadata(worker):
    worker.wait_for_layer_load("model.layers.0.attn")
    worker.save_layer("model.layers.0.attn")
    worker.wait_for_save()


def _numbers(well, failed):
    return b"".join(
        len(some).to_bytes(4, "little") + b"".join(n.to_bytes(8, "little") for n in some)
        for some in (well, failed)
    )


@pytest.mark.parametrize(
    "cache_dtype, model_dtype, classic",
    [("auto", "torch.float32", True), ("fp8_e4m3", "torch.bfloat16", False)],
)
def test_a_cache_of_another_type_than_the_model_has_names_of_its_own(
    worker, cache_dtype, model_dtype, classic
):
    worker._config.model_config.dtype = model_dtype
    worker._config.cache_config.cache_dtype = cache_dtype
    text = compat.layout_text(worker._config, worker._layout)
    assert (text == "") == classic
    assert (cache_dtype in text) != classic


# -- engines that cannot be served, and configurations ---------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"decode_context_parallel_size": 2},
        {"prefill_context_parallel_size": 2},
    ],
    ids=lambda more: next(iter(more)),
)
def test_what_is_not_supported_is_said_once_and_finds_nothing(tmp_path, caplog, more):
    made = config.make(transfer(tmp_path), 1, 64, 16, False)
    vars(made.parallel_config).update(more)
    side = SchedulerSide(made, None)
    for _ in range(3):
        assert side.matched_tokens(request(), 0) == (0, False)
        side.allocated(request(), blocks(1), 0)
        side.build_meta(output(new=[("a", [1], 0, 100)]))
    side.finished(request())
    assert [r.getMessage() for r in caplog.records if "not supported" in r.getMessage()] == [
        f"UCM: {compat.refusal(made, None)}, so nothing is found or saved"
    ]
    side.close()


@pytest.mark.parametrize("kind", ["groups", "mamba"])
def test_hybrid_models_are_not_served(tmp_path, kind):
    class FullAttentionSpec:
        pass

    class MambaSpec:
        pass

    spec = MambaSpec() if kind == "mamba" else FullAttentionSpec()
    group = SimpleNamespace(kv_cache_spec=spec)
    groups = [group, group] if kind == "groups" else [group]
    made = config.make(transfer(tmp_path), 1, 64, 16, False)
    assert compat.refusal(made, SimpleNamespace(kv_cache_groups=groups)) is not None
    good = SimpleNamespace(kv_cache_groups=[SimpleNamespace(kv_cache_spec=FullAttentionSpec())])
    assert compat.refusal(made, good) is None


_CONNECTOR = (
    "ucm_connector_name: UcmPipelineStore\n"
    "ucm_connector_config: {store_pipeline: Posix, storage_backends: /tmp}\n"
)


@pytest.mark.parametrize(
    "text, layerwise",
    [
        ("use_layerwise: true\n" + _CONNECTOR, True),
        (_CONNECTOR, True),
        ("use_layerwise: false\n" + _CONNECTOR, False),
        (
            '{"use_layerwise": false, "ucm_connector_name": "UcmPipelineStore",'
            ' "ucm_connector_config": {"store_pipeline": "Posix", "storage_backends": "/tmp"}}',
            False,
        ),
    ],
)
def test_the_mode_is_what_the_daemon_reads(daemon, tmp_path, text, layerwise):
    path = tmp_path / "ucm.yaml"
    path.write_text(text, encoding="utf-8")
    extra = {"UCM_CONFIG_FILE": str(path), "ucm_socket": daemon.socket}
    assert UCMConnector.requires_piecewise_for_cudagraph(extra) is layerwise
    assert engine.store_config(extra) == (str(path), text)


@pytest.mark.parametrize("layerwise", [True, False])
def test_the_mode_of_an_inline_configuration(daemon, layerwise):
    extra = {
        "ucm_socket": daemon.socket,
        "use_layerwise": layerwise,
        "ucm_connector_name": "UcmPipelineStore",
        "ucm_connector_config": {"store_pipeline": "Posix", "storage_backends": "/tmp"},
    }
    assert UCMConnector.requires_piecewise_for_cudagraph(extra) is layerwise


def test_where_no_daemon_can_be_asked_the_graphs_are_the_safe_ones(tmp_path, daemon):
    path = tmp_path / "ucm.yaml"
    path.write_text("use_layerwise: false\n" + _CONNECTOR)
    alone = {"UCM_CONFIG_FILE": str(path), "ucm_start_daemon": False}
    asked = {**alone, "ucm_socket": daemon.socket}
    assert UCMConnector.requires_piecewise_for_cudagraph(asked) is False
    none = {**alone, "ucm_socket": str(tmp_path / "none.sock")}
    assert UCMConnector.requires_piecewise_for_cudagraph(none) is True
    missing = {**asked, "UCM_CONFIG_FILE": str(tmp_path / "none.yaml")}
    assert UCMConnector.requires_piecewise_for_cudagraph(missing) is True
    path.write_text("use_layerwise: [")
    assert UCMConnector.requires_piecewise_for_cudagraph(asked) is True


def test_a_file_that_cannot_be_read_is_one_line_that_says_what_to_do(tmp_path, monkeypatch):
    def refusal(path):
        with pytest.raises(stores.ConfigurationError) as caught:
            engine.store_config({"UCM_CONFIG_FILE": str(path)})
        assert "\n" not in str(caught.value)
        return str(caught.value)

    missing = tmp_path / "none.yaml"
    assert refusal(missing) == (
        f"UCM_CONFIG_FILE names {missing}, which cannot be read (No such file or directory; this is user"
        f" {os.geteuid()}): mend that, and start the engine again"
    )
    assert "is no regular file" in refusal(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "is no regular file" in refusal(pipe)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "it is not UTF-8" in refusal(binary)
    # A relative name is that of a file beside the engine; the daemon is told the whole path.
    (tmp_path / "ucm.yaml").write_text("a: 1")
    monkeypatch.chdir(tmp_path)
    assert engine.store_config({"UCM_CONFIG_FILE": "ucm.yaml"}) == (str(tmp_path / "ucm.yaml"), "a: 1")


def test_an_inline_configuration_is_given_to_the_daemon_without_our_keys():
    extra = {"ucm_socket": "/x", "ucm_async_load": False, "ucm_connector_name": "UcmNfsStore"}
    name, text = engine.store_config(extra)
    assert (name, text) == ("kv_connector_extra_config", '{"ucm_connector_name": "UcmNfsStore"}')


def test_no_configuration_is_a_nfs_store():
    assert "UcmNfsStore" in engine.store_config({})[1]


def test_an_engine_runs_without_a_daemon(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    toy = ToyEngine(transfer(tmp_path))
    for i in range(6):
        toy.add(f"r{i}", range(50 + i))
    toy.run()
    assert (len(toy.outputs), toy.hits) == (6, 0)
    toy.close()
    lines = [r.getMessage() for r in caplog.records if "no daemon at" in r.getMessage()]
    assert len(lines) == 2, lines  # One of each side.


IMPORT = """
import sys, threading
# What an engine has imported anyway.
import enum, inspect, json, logging, re, struct, typing
import {vllm}
before, files = set(sys.modules), len(__import__("os").listdir("/proc/self/fd"))
import ucm.integration.vllm.ucm_connector as module
import ucm.integration.vllm.uc_connector
module.UCMConnector.requires_piecewise_for_cudagraph(
    {{"use_layerwise": True, "ucm_socket": "/nowhere", "ucm_start_daemon": False}}
)
assert threading.active_count() == 1
assert len(__import__("os").listdir("/proc/self/fd")) == files
assert not {{"torch", "torch.cuda"}} & (set(sys.modules) - before), "torch is imported"
"""


def test_importing_the_module_begins_nothing():
    code = IMPORT.format(vllm="vllm.distributed.kv_transfer.kv_connector.v1.base")
    subprocess.check_call([sys.executable, "-c", code], env=os.environ)
