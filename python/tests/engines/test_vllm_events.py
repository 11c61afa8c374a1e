"""KV events: what the engine publishes of the blocks that UCM holds."""

import pytest
import vllm_engine
from vllm_engine import BLOCK, cached, forget, full_blocks, generate, prompts

WANTED = prompts(seed=31, count=1)
BLOCKS = len(WANTED[0]["prompt_token_ids"]) // BLOCK


def published(llm, tell, hear):
    """Events with UCM's medium, of a prompt computed, found again, and disowned; and its own hashes."""
    scheduler, seen = watched(llm)
    store(llm, seen)
    own = [one for one in seen if type(one).__name__ == "BlockStored" and one.medium != "STORAGE"]
    stored = ours(seen)
    forget(llm)
    found = cached(generate(llm, WANTED))
    again = ours(seen)[len(stored):]
    scheduler.connector.reset_cache()
    generate(llm, prompts(seed=33, count=1, length=20, shared=10))
    return plain(own), plain(stored), plain(again), plain(ours(seen, "BlockRemoved")), found


def watched(llm):
    """The engine's scheduler, and a list that gets what it publishes."""
    seen = []
    scheduler = llm.llm_engine.engine_core.engine_core.scheduler
    scheduler.kv_event_publisher.publish = lambda batch: seen.extend(batch.events)
    return scheduler, seen


def store(llm, seen):
    """Computes the prompt; saves end beside the engine's steps, and each step brings what has ended."""
    generate(llm, WANTED)
    while not ours(seen):
        generate(llm, prompts(seed=32, count=1, length=20, shared=10))


def ours(seen, kind="BlockStored"):
    return [one for one in seen if type(one).__name__ == kind and one.medium == "STORAGE"]


def plain(events):
    return [
        (list(one.block_hashes), getattr(one, "parent_block_hash", None), list(getattr(one, "token_ids", [])))
        for one in events
    ]


def hashes(events):
    return [one for block_hashes, _, _ in events for one in block_hashes]


def on():
    from vllm.config import KVEventsConfig

    return {"kv_events_config": KVEventsConfig(enable_kv_cache_events=True, publisher="null")}


def test_routers_see_what_is_stored_and_what_is_disowned(engine, daemon):
    if vllm_engine.version() < (0, 13):
        pytest.skip("events of connectors are not asked for")
    own, stored, again, removed, found = engine(published, daemon, **on()).result()
    assert found == full_blocks(WANTED)
    # The engine's own names, one chain from the root on.
    assert hashes(stored) == hashes(own)[:BLOCKS] and len(hashes(stored)) == BLOCKS
    assert stored[0][1] is None
    tokens = [token for _, _, of in stored for token in of]
    assert tokens == WANTED[0]["prompt_token_ids"][: BLOCKS * BLOCK]
    assert again == []
    assert sorted(map(str, hashes(removed))) == sorted(map(str, hashes(stored)))


def shorter(llm, tell, hear):
    """Removals after a prompt too short to be looked up has asked for the first blocks of a stored one."""
    _, seen = watched(llm)
    store(llm, seen)
    forget(llm)
    generate(llm, [{"prompt_token_ids": WANTED[0]["prompt_token_ids"][: 3 * BLOCK]}])
    return ours(seen, "BlockRemoved")


def test_a_prompt_that_is_not_looked_up_removes_nothing(engine, daemon):
    if vllm_engine.version() < (0, 13):
        pytest.skip("events of connectors are not asked for")
    daemon.write_yaml("Posix", "use_layerwise: false\npersist_token_threshold: 500\n")
    assert engine(shorter, daemon, **on()).result() == []


def none(llm, tell, hear):
    """The negative control: what is published without events."""
    _, seen = watched(llm)
    generate(llm, WANTED)
    forget(llm)
    return len(seen), cached(generate(llm, WANTED))


def test_without_events_nothing_is_published(engine, daemon):
    assert engine(none, daemon).result() == (0, full_blocks(WANTED))
