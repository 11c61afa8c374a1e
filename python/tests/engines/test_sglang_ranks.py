"""Real SGLang of two ranks on a CPU, each a process with half of the heads."""

import pytest
import sglang_engine
from forked import cached, difference
from sglang_engine import NOTHING, PAGES, WANTED, files, full_pages, once, storage, stored, until

RANKS = 2
# Without GPUs there is no NCCL, and SGLang takes the groups of PyTorch; but PyTorch brings its library.
ENVIRONMENT = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1", "SGLANG_NCCL_SO_PATH": "none"}


@pytest.fixture
def ranks(tmp_path, model):
    """Makes engines of two ranks: `ranks(scenario, extra)`; see `sglang_engine.Forked`."""
    made = []

    def make(scenario, extra=None, **more):
        more = {"model_path": model, "tp_size": RANKS, "disable_custom_all_reduce": True, **more}
        log = tmp_path / f"engine-{len(made)}.log"
        made.append(sglang_engine.Forked(scenario, log, extra, ENVIRONMENT, **more))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def as_rank(of):
    """Negative controls: ranks that name their pages as another one."""

    def change():
        from ucm.integration.sglang.hicache import UcmHiCache

        make = UcmHiCache.__init__

        def changed(self, *arguments, **named):
            make(self, *arguments, **named)
            self._tp_rank = of(self._tp_rank)

        UcmHiCache.__init__ = changed

    return change


@pytest.mark.full
def test_pages_of_two_ranks_come_back_after_a_restart_each_to_its_own(ranks, daemon):
    extra = storage(daemon)
    expected = ranks(once).result()
    run = ranks(stored, extra)
    first = run.receive()
    until(lambda: len(files(daemon)) >= RANKS * PAGES, "pages of both ranks in files")
    assert len(files(daemon)) == RANKS * PAGES
    assert run.log().count("UCM: connected to the daemon") == RANKS
    run.send("stored")
    second = run.result()
    daemon.restart()
    third = ranks(once, extra).result()
    for found, there in ((first, NOTHING), (second, full_pages(WANTED)), (third, full_pages(WANTED))):
        assert cached(found) == there
        assert difference(found, expected) is None
    for wrong in (lambda rank: 1 - rank, lambda rank: 0):
        found = ranks(once, extra, before=as_rank(wrong)).result()
        assert cached(found) == full_pages(WANTED)
        assert difference(found, expected) is not None
    assert len(files(daemon)) == RANKS * PAGES
    # One rank has pages of other heads.
    assert cached(ranks(once, extra, tp_size=1).result()) == NOTHING
