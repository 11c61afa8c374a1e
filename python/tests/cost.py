"""What the connector costs the thread of an engine's scheduler, beside a real daemon.

UCM_HOME=ucm-dist/target/image /usr/bin/python3 python/tests/cost.py
"""

import os
import sys
import tempfile
import time
from types import SimpleNamespace

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("VLLM_STANDIN_PROFILE", "0.29")

import conftest  # noqa: E402  (it puts the simulated vLLM on the path)
from toy_engine import ToyEngine  # noqa: E402
from toy_engine.engine import Request  # noqa: E402

from ucm import protocol  # noqa: E402

PROMPTS = (100_000, 32_768)


def median_micros(call, times=200):
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return sorted(spent)[times // 2] * 1e6


def look_up(scheduler, length):
    sent, answered = [], []
    for i in range(21):
        request = Request(f"{length}-{i}", [], 1, {})
        request.prompt_token_ids = request._all_token_ids = [i] + [t % 50_000 for t in range(1, length)]
        start = time.perf_counter()
        found = scheduler.matched_tokens(request, 0)
        sent.append(time.perf_counter() - start)
        while found[0] is None:
            found = scheduler.matched_tokens(request, 0)
        answered.append(time.perf_counter() - start)
    print(f"look-up of {length} tokens: {sorted(sent)[10] * 1e3:.2f} ms in the engine's thread,")
    print(f"  answered after {sorted(answered)[10] * 1e3:.2f} ms")


def main():
    with tempfile.TemporaryDirectory() as folder:
        daemon = conftest.Daemon(folder).start()
        engine = ToyEngine(daemon.transfer(), num_blocks=200, block_size=128)
        scheduler = engine.connector._scheduler
        ids = [f"r{i}" for i in range(256)]
        cached = SimpleNamespace(
            req_ids=ids,
            num_computed_tokens=[9] * 256,
            new_block_ids=[None] * 256,
            resumed_req_ids=set(),
        )
        step = SimpleNamespace(
            scheduled_new_reqs=[],
            scheduled_cached_reqs=cached,
            num_scheduled_tokens=dict.fromkeys(ids, 1),
            preempted_req_ids=None,
        )
        print(f"decoding step of 256 requests: {median_micros(lambda: scheduler.build_meta(step)):.1f} us")
        for length in PROMPTS:
            look_up(scheduler, length)
        connection = scheduler._link.get()
        handle = scheduler._requests[f"{PROMPTS[-1]}-3"].handle

        def plan():
            body = protocol.plan(1, [], [], [(handle, PROMPTS[-1], 0)])
            asked = connection.send(protocol.PLAN, body)
            connection.wait(asked, protocol.PLANNED, 1)

        print(f"plan of one request: {median_micros(plan):.0f} us")
        engine.close()
        daemon.stop()


if __name__ == "__main__":
    main()
