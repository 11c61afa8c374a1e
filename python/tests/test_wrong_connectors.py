"""Connectors that break one rule each: the toy engine finds every one of them out."""

from dataclasses import replace

import pytest
from test_end_to_end import prompts, settle
from toy_engine import ToyEngine
from ucm.integration.vllm import scheduler, worker
from vllm import PROFILE

pytestmark = pytest.mark.skipif(PROFILE < (0, 18), reason="the rules of the newest version")


def drive(daemon, seconds=20):
    """Hits, chunks, preemptions and aborts; returns normally when nothing was found to be wrong."""
    engine = ToyEngine(daemon.transfer(), num_blocks=20, budget=48, prefix_caching=False)
    for turn in range(3):
        for i, prompt in enumerate(prompts(5, 12, prefixes=2, longest=100)):
            engine.add(f"{turn}-{i}", prompt, max_tokens=12)
            engine.step()
            if i % 5 == 4:
                engine.abort(f"{turn}-{i}")
        engine.run(seconds)
        settle(daemon)
    assert engine.hits > 0, "nothing is found"
    engine.close()


def after(owner, name, change):
    """Replaces what a method returns."""
    call = getattr(owner, name)
    return lambda self, *args: change(self, call(self, *args))


def copies_nothing(self, load, layers):
    return True


def copies_one_layer_less(call):
    return lambda self, load, layers: call(self, load, list(layers)[:-1])


def into_the_next_block(call):
    def copy(self, load, layers):
        blocks = [block % 19 + 1 for block in worker.unpack(load.blocks)]
        packed = bytes(b for block in blocks for b in block.to_bytes(4, "little"))
        return call(self, replace(load, blocks=packed), layers)

    return copy


def shifted(call):
    def copy(self, save, layers):
        packed = save.blocks[4:] + save.blocks[:4]
        return call(self, replace(save, blocks=packed), layers)

    return copy


def raises(*_):
    raise RuntimeError("a connector may not raise")


SCHEDULER, WORKER = scheduler.SchedulerSide, worker.WorkerSide
WRONG = {
    "promises more than the prompt": (SCHEDULER, "matched_tokens", lambda s, r: (10_000, r[1])),
    "promises what it does not have": (
        SCHEDULER,
        "matched_tokens",
        lambda s, r: (16, True) if r[0] == 0 else r,
    ),
    "never answers": (SCHEDULER, "matched_tokens", lambda s, r: (None, False)),
    "delays what is never sent": (SCHEDULER, "finished", lambda s, r: True),
    "has no metadata": (SCHEDULER, "build_meta", lambda s, r: None),
    "forgets that a load has ended": (WORKER, "take_finished", lambda s, r: (r[0], None)),
    "forgets that a save has ended": (WORKER, "take_finished", lambda s, r: (None, r[1])),
    "reports an unknown id": (
        WORKER,
        "take_finished",
        lambda s, r: (r[0], (r[1] or set()) | {"no-request"}),
    ),
    "reports a load too early": (
        WORKER,
        "take_finished",
        lambda s, r: (r[0], (r[1] or set()) | set(s._loading) or None),
    ),
}
WRONG_CALLS = {
    "loads nothing": (WORKER, "_copy_in", lambda call: copies_nothing),
    "leaves a layer out": (WORKER, "_copy_in", copies_one_layer_less),
    "loads into other blocks": (WORKER, "_copy_in", into_the_next_block),
    "saves blocks under other names": (WORKER, "_copy_out", shifted),
    "raises when a load begins": (WORKER, "start_load", lambda call: raises),
    "raises at the end of a step": (WORKER, "wait_for_save", lambda call: raises),
    "raises when asked for hits": (SCHEDULER, "matched_tokens", lambda call: raises),
}


def test_the_right_connector_passes(daemon):
    drive(daemon)


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_is_found_out(own_daemon, monkeypatch, what):
    owner, name, change = WRONG[what]
    monkeypatch.setattr(owner, name, after(owner, name, change))
    with pytest.raises((AssertionError, AttributeError)):
        # Those that wait for ever are found out by nothing else.
        drive(own_daemon, seconds=2)


@pytest.mark.parametrize("what", WRONG_CALLS)
def test_a_wrong_call_is_found_out(own_daemon, monkeypatch, what):
    owner, name, wrong = WRONG_CALLS[what]
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    with pytest.raises((AssertionError, RuntimeError)):
        drive(own_daemon)
