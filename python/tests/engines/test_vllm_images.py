"""Images in prompts: an image is part of the blocks that it touches and of those after them alone."""

import pytest
import vllm_engine
from vllm_engine import BLOCK, cached, difference, forget, generate

if vllm_engine.version() < (0, 31):
    pytest.skip("the tiny model with images is written by transformers 5", allow_module_level=True)

PIXELS = 112
# Of an image, with those around it, once vLLM has put them in the place of its one token.
IMAGE_TOKENS = 199
IMAGE = 3
TEXT = [10 + number * 7 % 1400 for number in range(900)]
# Not at a block's edge.
BEFORE = 300


def picture(seed):
    import numpy
    from PIL import Image

    noise = numpy.random.default_rng(seed).integers(0, 256, (PIXELS, PIXELS, 3), dtype=numpy.uint8)
    return Image.fromarray(noise)


def prompt(*seeds, after=250):
    """Text, an image, text, an image, text and so on."""
    tokens = TEXT[:BEFORE]
    for number in range(len(seeds)):
        start = BEFORE + number * 200
        tokens = [*tokens, IMAGE, *TEXT[start : start + 200]]
    return {
        "prompt_token_ids": [*tokens, *TEXT[-after:]],
        "multi_modal_data": {"image": [picture(seed) for seed in seeds]},
    }


def whole(number):
    """Tokens in full blocks."""
    return number // BLOCK * BLOCK


def answers(*wanted):
    """Of each alone: the engine's own cache has no part in what is found."""

    def scenario(llm, tell, hear):
        found = []
        for one in wanted:
            forget(llm)
            found += generate(llm, [one])
        return found

    return scenario


def blind():
    from ucm.integration.vllm import identity

    identity._inputs = lambda request: []


@pytest.fixture
def kind(folder):
    return {"model": folder("idefics3"), "limit_mm_per_prompt": {"image": 2}}


@pytest.mark.parametrize("layerwise", [False, pytest.param(True, marks=pytest.mark.full)])
def test_the_same_image_is_found_and_another_one_is_not(engine, daemon, kind, layerwise):
    daemon.write_yaml("Posix", f"use_layerwise: {str(layerwise).lower()}\n")
    one, other = prompt(1), prompt(2)
    expected = engine(answers(one, other), **{**kind, "enable_prefix_caching": False}).result()
    assert difference(expected[:1], expected[1:]) is not None
    assert cached(engine(answers(one), daemon, **kind).result()) == [0]
    found = engine(answers(one, other), daemon, **kind).result()
    # What is before the image is the same.
    assert cached(found) == [whole(BEFORE + IMAGE_TOKENS + 200 + 250 - 1), whole(BEFORE)]
    assert difference(found, expected) is None
    # The negative control: an image that is in no name.
    blindly = engine(answers(one, other), daemon, before=blind, **kind).result()[1:]
    assert cached(blindly)[0] > whole(BEFORE)
    assert difference(blindly, expected[1:]) is not None


@pytest.mark.full
def test_the_next_turn_of_a_chat_brings_another_image(engine, daemon, kind):
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    turn, next_turn = prompt(1, after=0), prompt(1, 2)
    engine(answers(turn), daemon, **kind).result()
    found = engine(answers(next_turn), daemon, **kind).result()
    assert cached(found) == [whole(BEFORE + IMAGE_TOKENS + 200)]
    assert difference(found, engine(answers(next_turn), **kind).result()) is None
