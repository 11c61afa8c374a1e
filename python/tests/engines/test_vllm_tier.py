"""UcmTier behind vLLM's native offloading: the bytes are right or they are not found."""

import multiprocessing
import os
import random
import traceback

import pytest
import vllm_engine

if vllm_engine.version() < (0, 26):
    pytest.skip("vLLM before 0.26 configures its offloading otherwise", allow_module_level=True)

SIZE, COUNT = 64 << 10, 24


def in_a_process(function, *arguments, asked=None):
    """What a function returns in a forked process; `ask(text)` there has the test do something."""
    # What takes seconds to import is there before the fork.
    import offloading  # noqa: F401

    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_run, args=(there, function, arguments), daemon=True
    )
    process.start()
    there.close()
    try:
        while True:
            kind, what = here.recv()
            if kind == "asked":
                here.send(asked[what]())
            else:
                assert kind == "returned", what
                return what
    finally:
        process.kill()
        process.join()


def _run(connection, function, arguments):
    def ask(text):
        connection.send(("asked", text))
        return connection.recv()

    try:
        connection.send(("returned", function(ask, *arguments)))
    except BaseException:
        connection.send(("failed", traceback.format_exc()))
    os._exit(0)


def ours(daemon):
    return {
        "type": "UcmTier",
        "module_path": "ucm.integration.vllm.tier",
        "config_file": daemon.yaml,
        "ucm_socket": daemon.socket,
        "ucm_start_daemon": False,
    }


full = pytest.mark.full


@pytest.fixture(params=["region", pytest.param("slots", marks=full)])
def way(request):
    """The daemon moves chunks by itself, or through its slots."""
    return request.param


def begin(tier, way, **more):
    import offloading
    from ucm import chunks

    if way == "slots":
        chunks.region_of = lambda view: None
    found = offloading.Offloading(tier, SIZE, COUNT, **more)
    if way in ("region", "slots"):
        assert bool(found.tier._chunks._pidfds) == (way == "region")
    return found


def store_and_find(ask, tier, way, model="model"):
    from offloading import key

    engine = begin(tier, way, model=model)
    keys = [key(i) for i in range(1, 4 * COUNT)]
    before = len(engine.load(keys[:8]))
    for at in range(0, len(keys), 8):
        assert engine.store(keys[at : at + 8])
        engine.settle()
    found = [len(engine.load(keys[at : at + 8])) for at in range(0, len(keys), 8)]
    engine.close()
    return before, sum(found), len(keys)


@pytest.mark.short
def test_chunks_are_found_by_the_next_engine_and_not_by_another_model(daemon, way):
    before, found, stored = in_a_process(store_and_find, ours(daemon), way)
    assert (before, found) == (0, stored)
    daemon.restart()
    before, found, _ = in_a_process(store_and_find, ours(daemon), way)
    assert (before, found) == (8, stored)
    before, found, _ = in_a_process(store_and_find, ours(daemon), way, "other")
    assert (before, found) == (0, stored)


@full
def test_the_tier_of_vllm_finds_as_much(daemon, tmp_path):
    tier = {"type": "fs", "root_dir": str(tmp_path / "fs")}
    assert in_a_process(store_and_find, tier, "fs")[1:] == in_a_process(
        store_and_find, ours(daemon), "region"
    )[1:]


def reset(ask, tier, way):
    from offloading import key

    engine = begin(tier, way)
    keys = [key(i) for i in range(1, 9)]
    engine.store(keys)
    engine.settle()
    engine.manager.reset_cache()
    found = len(engine.load(keys))
    engine.store(keys[:4])
    engine.settle()
    after = len(engine.load(keys))
    engine.close()
    return found, after


def test_what_was_stored_before_a_reset_is_not_found(daemon, way):
    assert in_a_process(reset, ours(daemon), way) == (0, 4)
    before, _, _ = in_a_process(store_and_find, ours(daemon), way)
    assert before == 0


def at_once(ask, tier, way):
    """Whether look-ups of own chunks find all at their first call: stored, after a reset, and so again."""
    import vllm.v1.kv_offload.base as base
    from offloading import key

    engine = begin(tier, way)
    keys = [key(i) for i in range(1, 9)]

    def finds_all():
        request = engine.request()
        found = {engine.tier.lookup(one, request) for one in keys}
        engine.step()
        engine.manager.on_request_finished(request)
        return found == {base.LookupResult.HIT}

    found = []
    for _ in range(2):
        engine.store(keys)
        engine.settle()
        found.append(finds_all())
        engine.manager.reset_cache()
        found.append(finds_all())
    engine.close()
    return found


@pytest.mark.short
def test_an_engine_finds_at_once_what_it_has_stored_but_not_after_a_reset(daemon, way):
    assert in_a_process(at_once, ours(daemon), way) == [True, False, True, False]


def damaged(ask, tier, way):
    """Chunks are stored, some of them damaged in their files; the others are found."""
    from offloading import key

    engine = begin(tier, way)
    keys = [key(i) for i in range(1, 2 * COUNT)]
    for at in range(0, len(keys), 8):
        engine.store(keys[at : at + 8])
        engine.settle()
    ask("damage")
    # None of them is left in the memory before the tier.
    for at in range(0, 2 * COUNT, 8):
        engine.store([key(1000 + at + i) for i in range(8)])
        engine.settle()
    found = sum(len(engine.load(keys[at : at + 8])) for at in range(0, len(keys), 8))
    engine.close()
    return found, len(keys)


@full
def test_a_damaged_chunk_is_not_given_and_the_others_are(daemon, way):
    def damage():
        changed = 0
        for folder, _, names in os.walk(os.path.join(daemon.folder, "data")):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.getsize(path) >= SIZE and changed < 5:
                    with open(path, "r+b") as file:
                        file.seek(SIZE // 2)
                        byte = file.read(1)
                        file.seek(SIZE // 2)
                        file.write(bytes([byte[0] ^ 1]))
                    changed += 1
        return changed

    found, stored = in_a_process(damaged, ours(daemon), way, asked={"damage": damage})
    assert found == stored - 5


def random_calls(ask, tier, way, seed, rounds, kills):
    from offloading import key

    engine = begin(tier, way)
    choice = random.Random(seed)
    hits = stored = resets = 0
    for _ in range(rounds):
        act = choice.random()
        names = [key(choice.randrange(1, 5 * COUNT)) for _ in range(choice.randrange(1, 9))]
        if act < 0.45:
            stored += engine.store(list(dict.fromkeys(names)))
        elif act < 0.95:
            hits += len(engine.load(list(dict.fromkeys(names))))
        elif act < 0.97:
            engine.manager.reset_cache()
            resets += 1
        elif kills:
            ask("kill")
    engine.settle()
    engine.close()
    return hits, stored, resets


@pytest.mark.parametrize("kills", [pytest.param(False, marks=full), True], ids=["calm", "kills"])
def test_random_calls_never_get_a_wrong_chunk(daemon, way, kills):
    def kill():
        daemon.kill()
        # `start` returns when the new one has made it again.
        os.unlink(daemon.socket)
        daemon.start()

    for seed in range(2):
        hits, stored, resets = in_a_process(
            random_calls, ours(daemon), way, seed, 200, kills, asked={"kill": kill}
        )
        assert hits > 50 and stored > 20 and resets > 0


@full
def test_a_full_store_takes_no_more_and_keeps_what_it_has(daemon, way):
    daemon.write_yaml("Posix", more="posix_capacity_gb: 0.001\n      posix_gc_enable: false")
    found = in_a_process(random_calls, ours(daemon), way, 5, 100, False)
    assert found[0] > 20


def wrong(ask, tier):
    from offloading import Offloading, key

    engine = Offloading(tier, SIZE, COUNT)
    keys = [key(i) for i in range(1, 9)]
    engine.store(keys)
    engine.settle()
    found = len(engine.load([key(99), *keys]))
    engine.close()
    return found


@pytest.mark.parametrize(
    "key",
    ["config_file", pytest.param("ucm_socket", marks=full), pytest.param("colour", marks=full)],
)
def test_with_a_wrong_configuration_the_engine_works_without_the_tier(daemon, key):
    tier = {**ours(daemon), key: "nowhere"}
    # These are in the memory before it.
    assert in_a_process(wrong, tier) == 8


def changed_chunk(ask, tier, way):
    """The negative control: the tier fills another chunk than it was asked for."""
    engine = begin(tier, way)
    from offloading import key

    keys = [key(i) for i in range(1, 9)]
    engine.store(keys)
    engine.settle()
    for at in range(0, COUNT, 8):
        engine.store([key(1000 + at + i) for i in range(8)])
        engine.settle()
    load = engine.tier._chunks.load
    engine.tier._chunks.load = lambda ids, numbers: load(ids, list(numbers)[::-1])
    engine.load(keys)


def test_a_chunk_in_the_wrong_place_is_noticed(daemon, way):
    with pytest.raises(AssertionError, match="a wrong chunk"):
        in_a_process(changed_chunk, ours(daemon), way)
