"""Models that answer with an embedding: served where a prompt can be continued, else left alone."""

import pytest
import vllm_engine
from vllm_engine import full_blocks, prompts

pytestmark = pytest.mark.skipif(vllm_engine.version() < (0, 31), reason="other arguments of its class LLM")

WANTED = prompts(seed=31, count=2, shared=0)
ROUNDS = 10


def forget(llm):
    """Empties the engine's own prefix cache, with a prompt of this kind of model."""
    while llm.reset_prefix_cache() is False:
        llm.embed([{"prompt_token_ids": list(range(20, 30))}], use_tqdm=False)


def embedded(llm, tell, hear):
    """Embeddings and cached tokens, again and again without the engine's own cache until all is found.

    Such a request ends with its first step; one that the daemon plans late is not saved.
    """
    found = []
    for _ in range(ROUNDS):
        answers = llm.embed(WANTED, use_tqdm=False)
        found.append([(one.outputs.embedding, one.num_cached_tokens) for one in answers])
        if [cached for _, cached in found[-1]] == full_blocks(WANTED):
            break
        forget(llm)
    return found


def pooled(kind):
    return {"runner": "pooling", "convert": "embed", "pooler_config": {"pooling_type": kind}}


def far(found, expected):
    """The largest difference of a number."""
    return max(abs(a - b) for (one, _), (other, _) in zip(found, expected) for a, b in zip(one, other))


@pytest.mark.full
def test_of_its_last_token(engine, daemon):
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    expected = engine(embedded, **pooled("LAST")).result()[0]
    *computed, loaded = engine(embedded, daemon, **pooled("LAST")).result()
    assert [cached for _, cached in loaded] == full_blocks(WANTED)
    assert all(far(each, expected) < 1e-4 for each in (*computed, loaded))
    # Another prompt's would show.
    assert far(loaded[:1], expected[1:]) > 1e-2


def test_of_all_tokens(engine, daemon):
    expected = engine(embedded, **pooled("MEAN")).result()[0]
    made = engine(embedded, daemon, **pooled("MEAN"))
    found = made.result()
    assert "MEAN pooling) is not supported" in made.log() and "Traceback" not in made.log()
    assert len(found) == ROUNDS
    assert all(far(each, expected) < 1e-4 and not any(cached for _, cached in each) for each in found)
