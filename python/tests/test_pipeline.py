"""Pipeline parallelism: each rank of each stage keeps its part of a block, of some of the layers."""

import pytest
from test_end_to_end import settle, status
from toy_engine import ToyEngine
from ucm import protocol
from ucm.client import Connection
from ucm.protocol import Refused

pytestmark = pytest.mark.usefixtures("patient")

PROMPT = list(range(100))


def run(daemon, *names, **more):
    """Answers, and how many tokens came from the store."""
    engine = ToyEngine(daemon.transfer(), prefix_caching=False, **more)
    for name in names:
        engine.add(name, PROMPT)
        engine.run()
        settle(daemon)
    assert more.get("pp", 1) in [one["pipeline_parallel_size"] for one in status(daemon)]
    engine.close()
    return engine.outputs, engine.hits


@pytest.mark.parametrize("layerwise", ["false", "true"])
@pytest.mark.parametrize("layout, tp", [("2BNHD", 1), ("packed", 2), ("mla", 2)])
def test_all_stages_find_their_layers(daemon, layout, tp, layerwise):
    daemon.write_yaml("Cache|Posix", f"use_layerwise: {layerwise}\n")
    shape = dict(layout=layout, tp=tp, pp=2)
    first, hits = run(daemon, "a", "b", **shape)
    assert hits == 96
    assert first["a"] == first["b"]
    assert run(daemon, "a", **shape)[1] == 96


def test_a_model_that_is_cut_otherwise_has_other_blocks(daemon):
    daemon.write_yaml("Posix", "use_layerwise: false\n")
    assert run(daemon, "a", pp=2)[1] == 0
    for shape in (dict(pp=3), dict(tp=2), dict(tp=2, pp=2), {}):
        assert run(daemon, "a", **shape)[1] == 0, shape
    # Each finds its own.
    for shape in (dict(pp=2), dict(pp=3), dict(tp=2), {}):
        assert run(daemon, "a", **shape)[1] == 96, shape


def test_a_stage_that_is_none_is_refused(daemon):
    connection = Connection(daemon.socket, protocol.WORKER, "test", 60.0)
    with pytest.raises(Refused, match="found stage 2 of 2"):
        connection.ask(protocol.STAGE, protocol.stage(2, 2), protocol.DONE, 60.0)
    connection.close()
