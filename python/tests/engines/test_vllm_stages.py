"""Pipeline parallelism, with vLLM's scheduler and the connector's worker sides of two stages."""

import random

import pytest
import vllm_engine
from forked import apart
from vllm.config import KVTransferConfig

if vllm_engine.version() < (0, 31):
    pytest.skip("written for the scheduler of vLLM 0.31 and later", allow_module_level=True)


def prompts(count=4, length=330, shared=170):
    choice = random.Random(2)
    head = [choice.randrange(1000) for _ in range(shared)]
    return [head + [choice.randrange(1000) for _ in range(length - shared)] for _ in range(count)]


FOUND = [(len(one) - 1) // 16 * 16 for one in prompts()]


def pipeline(model, daemon, stages):
    from stages import Pipeline

    return Pipeline(model, KVTransferConfig(**daemon.transfer()), stages)


def twice(model, daemon, stages, groups):
    made = pipeline(model, daemon, stages)
    assert made.groups == groups
    assert made.run(prompts()[:1]) == [0]
    made.run(prompts()[1:])
    made.forget()
    assert made.run(prompts()) == FOUND
    made.close()


def again(model, daemon, stages):
    made = pipeline(model, daemon, stages)
    assert made.run(prompts()) == FOUND
    made.close()


def not_at_all(model, daemon, stages):
    made = pipeline(model, daemon, stages)
    assert made.run(prompts()[:1]) == [0]
    made.close()


def swapped(model, daemon, stages):
    """The negative control: a stage loads the slots of a request in another order."""
    from ucm.staging import Staging

    load = Staging.load

    def wrong(self, layout, group, slots, blocks):
        return load(self, layout, group, slots[::-1], blocks)

    Staging.load = wrong
    made = pipeline(model, daemon, stages)
    with pytest.raises(AssertionError, match="holds wrong bytes"):
        made.run(prompts())


@pytest.mark.parametrize(
    "stages, groups",
    [
        # One group; stages of unequal size; windows, of which one stage has none; a group in one stage alone.
        pytest.param(["ff", "ff"], 1, marks=pytest.mark.full),
        pytest.param(["fff", "ff"], 1, marks=pytest.mark.full),
        (["wwf", "wwwf"], 4),
        pytest.param(["ff", "ww"], 2, marks=pytest.mark.full),
    ],
)
def test_each_stage_finds_its_part_of_each_block(model, daemon, stages, groups):
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    apart(twice, model, daemon, stages, groups)
    apart(again, model, daemon, stages)
    # Cut otherwise, a model has other blocks.
    apart(not_at_all, model, daemon, ["".join(stages)])
    apart(swapped, model, daemon, stages)
