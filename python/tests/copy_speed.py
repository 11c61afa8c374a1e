"""Loads and saves of a worker beside plain copies of the same bytes, in turns.

UCM_HOME=ucm-dist/target/image /usr/bin/python3 python/tests/copy_speed.py [--json] [--blocks N] [--rounds N]

A load is timed from the look-up to the end of the copy into the engine's blocks, all of it found in
the pool of Cache, and its second half, from the step on, by itself; a save from the end of the step
until all blocks are in that pool. SIM_CUDA_DIRECT=1, with the simulated driver in LD_LIBRARY_PATH,
measures the device plane, and so does TOY_ENGINE_GPU=1 on a real GPU: there "in this process" is one
plain copy of as many bytes in pinned memory.
"""

import argparse
import json
import mmap
import os
import statistics
import sys
import tempfile
import time
from types import SimpleNamespace

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("VLLM_STANDIN_PROFILE", "0.29")
# As vLLM sets it for its workers.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import conftest  # noqa: E402  (it puts the simulated vLLM on the path)
import torch  # noqa: E402
from toy_engine import config, gpus  # noqa: E402
from toy_engine.engine import Blocks, Request  # noqa: E402

from ucm import device, protocol  # noqa: E402
from ucm.client import Connection  # noqa: E402
from ucm.integration.vllm.scheduler import SchedulerSide  # noqa: E402
from ucm.integration.vllm.worker import WorkerSide  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--json", action="store_true", help="a list of figures in place of lines")
parser.add_argument("--blocks", type=int, default=120, help="of 8 MiB (default: 120)")
parser.add_argument("--rounds", type=int, default=15, help="that count (default: 15)")
OPTIONS = parser.parse_args()

TOKENS, HEADS, DIM, LAYERS, BLOCKS = 128, 8, 128, 16, OPTIONS.blocks
# The daemon's code is compiled during the first rounds.
WARMUP, ROUNDS = 2 * OPTIONS.rounds, OPTIONS.rounds
PIECE = TOKENS * HEADS * DIM * 2
BYTES = BLOCKS * LAYERS * 2 * PIECE


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        daemon = conftest.Daemon(folder, pipeline="Cache", staging="2GiB", pool_gb=2).start()
        made = config.make(daemon.transfer(), 1, BLOCKS + 1, TOKENS, False)
        worker = WorkerSide(made, None)
        gpu = gpus.of_environment()
        zeros = torch.zeros
        if gpu is not None:
            zeros = gpu.zeros
            device.new_probe = lambda _: gpu.zeros((device.PROBE_BYTES,), torch.uint8)
        shape = (2, BLOCKS + 1, TOKENS, HEADS, DIM)
        kv = {f"model.layers.{i}.attn": zeros(shape, dtype=torch.bfloat16) for i in range(LAYERS)}
        for tensor in kv.values():
            tensor.fill_(1)
        worker.register(kv)
        scheduler = SchedulerSide(made, None)
        observer = Connection(daemon.socket, protocol.OBSERVER, "speed", 60.0)
        source, target = torch.ones(BYTES, dtype=torch.uint8), torch.ones(BYTES, dtype=torch.uint8)
        # As the slots, memory that processes may share.
        shared = torch.frombuffer(mmap.mmap(-1, BYTES), dtype=torch.uint8)
        measures = {}

        def note(name, spent, plain):
            measures.setdefault(name, []).append((spent, plain / spent))

        for turn in range(WARMUP + ROUNDS):
            copy = timed(lambda: target.copy_(source))
            note("copy", copy, copy)
            there = back = copy
            if gpu is not None:
                pieces = list(in_process(kv.values(), shared))
                there = timed(lambda: gpu.copy(True, pieces))
                back = timed(lambda: gpu.copy(False, pieces))
                note("device to host in this process", there, copy)
                note("host to device in this process", back, copy)
            prompt = [turn] + list(range(BLOCKS * TOKENS - 1))
            filled, stored = save(scheduler, worker, observer, Request(f"s{turn}", prompt, 1, {}))
            whole, loaded = load(scheduler, worker, Request(f"l{turn}", prompt, 1, {}))
            note("save", stored, copy)
            note("save, until the engine may go on", filled, there)
            note("load", whole, copy)
            note("load, without the look-up", loaded, back)
        figures = []
        for name, found in measures.items():
            spent, ratio = (statistics.median(column) for column in zip(*found[WARMUP:]))
            whole = gpu is None or name in ("save", "load") or "process" in name
            of = "a copy" if whole else "that in this process"
            figures.append({"name": name, "gb_per_s": BYTES / spent / 1e9, "ratio": ratio, "of": of})
        if OPTIONS.json:
            print(json.dumps(figures))
        else:
            print(f"{BYTES >> 20} MiB; medians of {ROUNDS} rounds")
            for one in figures:
                print("{name}: {gb_per_s:.1f} GB/s, {ratio:.2f} of {of}".format(**one))
        observer.close()
        worker.close()
        scheduler.close()
        daemon.stop()


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_process(tensors, host):
    """Every piece of the blocks 1 and up, and as much of the host's memory."""
    at = host.data_ptr()
    for tensor in tensors:
        for half in tensor:
            for block in half[1:]:
                yield block.data_ptr(), at, PIECE
                at += PIECE


def step(scheduler, worker, request=None):
    new = [] if request is None else [
        SimpleNamespace(req_id=request.request_id, num_computed_tokens=0, block_ids=(table(),))
    ]
    output = SimpleNamespace(
        scheduled_new_reqs=new,
        scheduled_cached_reqs=SimpleNamespace(
            req_ids=[], num_computed_tokens=[], new_block_ids=[], resumed_req_ids=set()
        ),
        num_scheduled_tokens={one.req_id: BLOCKS * TOKENS for one in new},
        preempted_req_ids=None,
    )
    worker.start_load(scheduler.build_meta(output))


def table():
    return list(range(1, BLOCKS + 1))


def ask(scheduler, request):
    found = scheduler.matched_tokens(request, 0)
    while found[0] is None:
        # The daemon is to have the processors.
        time.sleep(0.0001)
        found = scheduler.matched_tokens(request, 0)
    return found[0]


def save(scheduler, worker, observer, request):
    assert ask(scheduler, request) == 0
    scheduler.allocated(request, Blocks(table()), 0)
    step(scheduler, worker, request)
    start = time.perf_counter()
    worker.wait_for_save()
    worker.await_saves()
    filled = time.perf_counter() - start
    while '"saves":0' not in status(observer):
        time.sleep(0.001)
    spent = time.perf_counter() - start
    scheduler.finished(request)
    step(scheduler, worker)
    return filled, spent


def status(observer):
    answer = observer.ask(protocol.STATUS, protocol.Writer(), protocol.STATUS_TEXT, 60.0)
    return protocol.Reader(answer.body).string()


def load(scheduler, worker, request):
    start = time.perf_counter()
    tokens = ask(scheduler, request)
    assert tokens == BLOCKS * TOKENS, tokens
    scheduler.allocated(request, Blocks(table()), tokens)
    promised = time.perf_counter()
    step(scheduler, worker)
    received = None
    while not received:
        _, received = worker.take_finished()
        # An engine's step leaves the interpreter to the thread that copies; a loop here would hold it.
        time.sleep(0.0002)
    end = time.perf_counter()
    assert not worker.take_errors()
    scheduler.finished(request)
    step(scheduler, worker)
    return end - start, end - promised


if __name__ == "__main__":
    main()
