"""What an engine's first hit takes after its daemon has started, and the next ones; of images in turns.

/usr/bin/python3 python/tests/first_hit.py [--rounds 9] IMAGE [IMAGE]

Each round starts a daemon, opens an engine, rests, and asks for prompts of 2000 tokens whose blocks lie in
files. UCM_JAVA_OPTS is of the daemons.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("VLLM_STANDIN_PROFILE", "0.29")

import conftest  # noqa: E402  (it puts the simulated vLLM on the path)
from toy_engine import ToyEngine  # noqa: E402

TOKENS, PROMPTS = 2000, 4
# Of an engine that has opened; it has a model to prepare, which takes longer.
REST_SECONDS = 2.0


def open_engine(daemon):
    return ToyEngine(daemon.transfer(), num_blocks=TOKENS // 8, budget=2 * TOKENS, prefix_caching=False)


def millis(engine, number):
    """What a prompt takes."""
    start = time.perf_counter()
    engine.add(f"r{number}", [number, *(token % 50 for token in range(1, TOKENS))], max_tokens=1)
    engine.run()
    return 1e3 * (time.perf_counter() - start)


def hits(daemon):
    """Of a new daemon: its first hit, and the median of those after it."""
    daemon.start()
    engine = open_engine(daemon)
    time.sleep(REST_SECONDS)
    taken = []
    for number in range(PROMPTS):
        found = engine.hits
        taken.append(millis(engine, number))
        assert engine.hits > found
    # A prompt that is saved, for those who look what a daemon loads.
    millis(engine, PROMPTS + random.randrange(1 << 20))
    engine.close()
    daemon.stop()
    return taken[0], statistics.median(taken[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="some images, or one twice for the noise")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UCM_HOME"] = options.images[0]
        daemon = conftest.Daemon(folder, pipeline='"Cache|Posix"', pool_gb=0.3).start()
        engine = open_engine(daemon)
        for number in range(PROMPTS):
            millis(engine, number)
        engine.close()
        daemon.stop()
        found = [[] for _ in options.images]
        for _ in range(options.rounds):
            for index in random.sample(range(len(options.images)), len(options.images)):
                os.environ["UCM_HOME"] = options.images[index]
                found[index].append(hits(daemon))
    for image, taken in zip(options.images, found):
        for name, of in zip(("first hit", "next hits"), zip(*taken)):
            print(f"{image}: {name} {statistics.median(of):.0f} ms, at least {min(of):.0f}")


if __name__ == "__main__":
    main()
