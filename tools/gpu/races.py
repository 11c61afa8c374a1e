"""The toy engine on a GPU: blocks are reused as soon as they are free, while copies are held back.

Each used position is compared bit by bit on the device. Without the fences (`fences=False`) the same run
must find wrong bytes, or it proves nothing.
"""

import random
import shutil
import time

import torch
from results import Case
from test_end_to_end import prompts, settle
from toy_engine import ToyEngine, kv
from toy_engine.worker import Rank
from ucm.integration.vllm.scheduler import SchedulerSide
from ucm.integration.vllm.worker import WorkerSide
from ucm.staging import Staging

SPIN_CYCLES = 4_000_000
SPIN_SECONDS = 0.004
# Without the fences a copy is later than some steps of the engine, which take milliseconds on a GPU too.
LATE_SECONDS = 0.05


def _hold_back(fences):
    """Keeps the current stream, or this thread, busy for some milliseconds."""
    if not fences:
        time.sleep(LATE_SECONDS)
    elif torch.cuda.is_available():
        torch.cuda._sleep(SPIN_CYCLES)
    else:
        time.sleep(SPIN_SECONDS)


class WrongBytes(AssertionError):
    """A block held something else than it should."""


class RaceRank(Rank):
    """Compares without waiting for the device; the verdict comes at the end of the step."""

    def _begin(self, works):
        self.wrong = torch.zeros((), dtype=torch.int64, device=self.views[0].device)

    def _check(self, layer, work, wrong):
        if work.computed:
            blocks, offsets = self._slots(work, 0, work.computed)
            found = self.views[layer][blocks, offsets]
            right = kv.expected(work.hashes[: work.computed], layer, self.content_rank)
            self.wrong += (found != right.to(found.device)).sum()

    def _end(self, works, result):
        if int(self.wrong):
            raise WrongBytes(f"{int(self.wrong)} elements are wrong")


class RaceEngine(ToyEngine):
    """A toy engine of ranks that do not wait for the device."""

    rank_type = RaceRank


def run(daemon, plane, seconds, seed, fences=True):
    """Requests in a pool with room for little more than one; returns how many, and tokens found."""
    save = Staging.save

    def late(self, *arguments):
        _hold_back(fences)
        return save(self, *arguments)

    patches = [(Staging, "save", late)]
    if not fences:
        patches.append((WorkerSide, "await_saves", lambda self: None))
        patches.append((SchedulerSide, "finished", _finished_at_once(SchedulerSide.finished)))
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
    for owner, name, patch in patches:
        setattr(owner, name, patch)
    try:
        return _requests(daemon, plane, seconds, seed)
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _finished_at_once(finished):
    def patched(self, request, *_):
        if finished(self, request):
            self._delayed.remove(request.request_id)
        return False

    return patched


def _requests(daemon, plane, seconds, seed):
    engine = RaceEngine(
        daemon.transfer(ucm_data_plane=plane), num_blocks=18, budget=48, prefix_caching=False
    )
    end, count, choice = time.monotonic() + seconds, 0, random.Random(seed)
    while time.monotonic() < end:
        for prompt in prompts(seed + count % 5, 6, prefixes=2, longest=120):
            engine.add(f"r{count}", prompt, max_tokens=12)
            count += 1
            if choice.random() < 0.2:
                engine.abort(f"r{choice.randrange(count)}")
            engine.step()
        engine.run()
    settle(daemon)
    hits = engine.hits
    engine.close()
    return count, hits


def measure(options, results, start):
    """Both planes with the fences, and the worker's copies without them."""
    kinds = (("device", "device", True), ("host", "host", True), ("no fences", "host", False))
    for name, plane, fences in kinds:
        case = Case("races", name=name)
        if case in results:
            continue
        options.check_time()
        daemon = start()
        try:
            if fences:
                count, hits = run(daemon, plane, options.race_seconds, 7)
                results.add(case, 0, "wrong bytes", requests=count, hits=hits)
                continue
            for seed in range(20):
                try:
                    run(daemon, plane, 2, seed, fences=False)
                except WrongBytes as problem:
                    results.add(case, seed + 1, "runs until wrong bytes", said=str(problem))
                    break
            else:
                raise AssertionError("without the fences nothing was wrong: the test proves nothing")
        finally:
            daemon.stop()
            shutil.rmtree(daemon.folder)
