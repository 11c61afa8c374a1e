"""Real SGLang with its hierarchical cache on a CPU: pages of an engine that has ended come back."""

import pytest
import sglang_engine
from daemons import end, processes_of
from forked import cached, difference
from sglang_engine import (
    NOTHING,
    PAGES,
    WANTED,
    files,
    forget,
    full_pages,
    generate,
    once,
    storage,
    stored,
    until,
)


@pytest.fixture
def sglang(tmp_path, model):
    """Makes engines: `sglang(scenario, extra)`; see `sglang_engine.Forked`."""
    made = []

    def make(scenario, extra=None, **more):
        log = tmp_path / f"engine-{len(made)}.log"
        made.append(sglang_engine.Forked(scenario, log, extra, **{"model_path": model, **more}))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def store(run, daemon, pages=PAGES):
    first = run.receive()
    until(lambda: len(files(daemon)) >= pages, f"{pages} pages in files")
    run.send("stored")
    return first


def equal(found, expected):
    assert difference(found, expected) is None


def damage(path):
    with open(path, "r+b") as file:
        file.seek(4096)
        byte = file.read(1)
        file.seek(4096)
        file.write(bytes([byte[0] ^ 1]))


@pytest.fixture(scope="module")
def reference():
    """Answers without UCM: `reference(sglang)`."""
    found = []

    def find(sglang):
        if not found:
            found.append(sglang(once).result())
            assert cached(found[0]) == NOTHING
        return found[0]

    return find


@pytest.mark.short
@pytest.mark.parametrize(
    "v1, layout", [(1, "page_first"), (0, "layer_first")], ids=["v1", "generic and by layers"]
)
def test_pages_come_back_after_restarts_and_not_when_damaged(sglang, daemon, reference, v1, layout):
    extra = storage(daemon, interface_v1=v1)
    expected = reference(sglang)
    run = sglang(stored, extra, hicache_mem_layout=layout)
    first = store(run, daemon)
    assert cached(first) == NOTHING
    equal(first, expected)
    second = run.result()
    # SGLang said of which files the model is.
    assert "SGLang does not say" not in run.log() and "UCM: connected to the daemon" in run.log()
    assert cached(second) == full_pages(WANTED)
    equal(second, expected)
    daemon.restart()
    found = sglang(once, extra, hicache_mem_layout=layout).result()
    assert cached(found) == full_pages(WANTED)
    equal(found, expected)
    if not v1:
        # Damage is the daemon's to find, whatever asks it.
        return
    daemon.stop()
    damage(files(daemon)[PAGES // 2])
    daemon.start()
    found = sglang(once, extra, hicache_mem_layout=layout).result()
    assert sum(cached(found)) < sum(full_pages(WANTED))
    equal(found, expected)


@pytest.mark.short
def test_a_model_with_sliding_windows_finds_pages_of_both_pools(sglang, daemon, folder):
    about = dict(model_path=folder("mellum"))
    extra = storage(daemon)
    expected = sglang(once, **about).result()
    run = sglang(stored, extra, **about)
    # Of windows no more is stored than a hit needs: the last pages.
    first = store(run, daemon, PAGES + 2 * len(WANTED))
    assert "pools=Full + SWA" in run.log()
    equal(first, expected)
    second = run.result()
    assert cached(second) == full_pages(WANTED)
    equal(second, expected)
    daemon.restart()
    found = sglang(once, extra, **about).result()
    assert cached(found) == full_pages(WANTED)
    equal(found, expected)
    wrong = sglang(once, extra, before=first_page_everywhere, **about).result()
    assert cached(wrong) == full_pages(WANTED)
    assert difference(wrong, expected) is not None


def cleared(engine, tell, hear):
    """Answers before and after the storage is cleared, as with new weights, and when it is full again."""
    answers = [generate(engine, WANTED)]
    tell("stored")
    hear()
    engine.loop.run_until_complete(engine.tokenizer_manager.clear_hicache_storage())
    for step in ("cleared", "stored again"):
        forget(engine)
        answers.append(generate(engine, WANTED))
        tell(step)
        hear()
    return answers


@pytest.mark.short
def test_what_was_stored_before_it_was_cleared_is_not_found(sglang, daemon):
    extra = storage(daemon)
    run = sglang(cleared, extra)
    assert run.receive() == "stored"
    until(lambda: len(files(daemon)) >= PAGES, "pages in files")
    run.send("")
    assert run.receive() == "cleared"
    until(lambda: len(files(daemon)) >= 2 * PAGES, "pages stored again")
    run.send("")
    assert run.receive() == "stored again"
    run.send("")
    first, after, again = run.result()
    assert cached(after) == NOTHING
    assert cached(again) == full_pages(WANTED)
    for found in (after, again):
        equal(found, first)
    # Later launches find none of it either.
    assert cached(sglang(once, extra).result()) == NOTHING


def first_page_everywhere():
    """The negative control: each page gets the bytes of the first one.

    Pages in another order would not show, as attention asks for no order: positions are in the bytes.
    """
    from ucm.pages import Pages

    get = Pages.get
    Pages.get = lambda self, ids, pages: get(self, ids[:1] * len(ids), pages)


@pytest.mark.short
def test_wrong_pages_show(sglang, daemon):
    run = sglang(stored, storage(daemon), before=first_page_everywhere)
    first = store(run, daemon)
    second = run.result()
    assert cached(second) == full_pages(WANTED)
    assert difference(second, first) is not None


def around(engine, tell, hear):
    """Answers before, while and after the daemon is away."""
    answers = [generate(engine, WANTED)]
    for step in ("stored", "killed", "back"):
        tell(step)
        hear()
        forget(engine)
        answers.append(generate(engine, WANTED))
    return answers


@pytest.mark.short
def test_a_killed_daemon_costs_no_request(sglang, daemon):
    run = sglang(around, storage(daemon))
    assert run.receive() == "stored"
    until(lambda: len(files(daemon)) >= PAGES, "pages in files")
    run.send("")
    assert run.receive() == "killed"
    daemon.kill()
    until(lambda: "is gone" in run.log(), "line of the daemon's end")
    run.send("")
    assert run.receive() == "back"
    daemon.start()
    until(lambda: run.log().count("UCM: connected to the daemon") == 2, "second connection")
    run.send("")
    first, before, away, after = run.result()
    for found, there in ((first, NOTHING), (away, NOTHING)):
        assert cached(found) == there
    for found in (before, after):
        assert cached(found) == full_pages(WANTED)
    for found in (before, away, after):
        equal(found, first)


@pytest.mark.short
def test_a_daemon_that_an_engine_starts_outlives_it(sglang, daemon):
    # SGLang kills all descendants when it ends, with SIGKILL.
    daemon.stop()
    extra = storage(daemon, ucm_start_daemon=True)
    try:
        run = sglang(stored, extra)
        first = store(run, daemon)
        equal(run.result(), first)
        (pid,) = processes_of(daemon.socket)
        found = sglang(once, storage(daemon)).result()
        assert cached(found) == full_pages(WANTED)
        equal(found, first)
        assert processes_of(daemon.socket) == [pid]
    finally:
        end(daemon.socket)
