"""Time to first token of the model-shaped engine, with parts of the prompt in UCM and without UCM."""

import os
import random
import shutil
import statistics
import tempfile
import time

import conftest
import model as models
from results import Case
from test_end_to_end import settle, wait_connected

# The seeds' figures: their full compute and 80% hits from storage, in ms. Their GPUs differ.
SEEDS = {
    ("pipeline", 4_000, 1): (223.05, 156.54),
    ("pipeline", 8_000, 1): (350.47, 228.27),
    ("pipeline", 16_000, 1): (708.94, 349.17),
    ("pipeline", 32_000, 1): (1512.04, 635.18),
    ("ds3fs", 4_000, 4): (776.34, 453.37),
    ("ds3fs", 8_000, 4): (1596.00, 757.66),
    ("ds3fs", 16_000, 4): (3413.29, 1489.32),
    ("ds3fs", 32_000, 4): (6922.88, 3022.35),
}


class Site:
    """A daemon with its stores in a folder of the disk that is measured, and engines at it."""

    def __init__(self, options, tokens):
        self.options = options
        self.shape = options.shape
        self.folder = tempfile.mkdtemp(prefix="ucm-gpu-", dir=options.disk)
        blocks = 2 + (tokens + 64 * len(options.lengths)) // self.shape.block_tokens
        self.blocks = blocks + 8
        block_bytes = self.shape.block_tokens * self.shape.token_bytes
        pool = max(0.05, 2.5 * blocks * block_bytes / 1e9)
        self.daemon = conftest.Daemon(
            self.folder,
            pipeline="Cache|Posix",
            staging=f"{max(64, int(1.5 * blocks * block_bytes) >> 20)}MiB",
            pool_gb=round(pool, 2),
        ).start()

    def engine(self, mode):
        top = "use_layerwise: true\n" if mode == "layerwise" else ""
        self.daemon.write_yaml("Cache|Posix", top)
        transfer = self.daemon.transfer()
        transfer["model"] = self.shape.name
        if mode == "off":
            transfer["kv_connector"] = "NoConnector"
            transfer["kv_connector_module_path"] = "connectors.no_connector"
        engine = models.ModelEngine(transfer, self.blocks, budget=self.options.budget)
        if mode != "off":
            wait_connected(engine)
        return engine

    def forget_memory(self, engine):
        """Nothing but the files has the blocks: an empty pool, and no page of theirs in memory."""
        self.daemon.restart()
        for folder, _, names in os.walk(os.path.join(self.folder, "data")):
            for name in names:
                file = os.open(os.path.join(folder, name), os.O_RDONLY)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)
        wait_connected(engine)

    def close(self):
        self.daemon.stop()
        shutil.rmtree(self.folder)


def first_tokens(engine, prompts, prefix, max_tokens=2):
    """Milliseconds from the arrival of all prompts to each one's first token."""
    start = time.perf_counter()
    for i, prompt in enumerate(prompts):
        engine.add(f"{prefix}-{i}", prompt, max_tokens=max_tokens)
    waiting, spent = {f"{prefix}-{i}" for i in range(len(prompts))}, []
    while waiting:
        if not engine.step():
            time.sleep(0.0002)
        now = time.perf_counter()
        for name in list(waiting):
            request = engine.requests.get(name)
            if request is None or request.output_token_ids:
                waiting.discard(name)
                spent.append(1000 * (now - start))
    engine.run()
    return spent


def tokens(seed, count, vocabulary):
    choice = random.Random(seed)
    return [choice.randrange(1, vocabulary) for _ in range(count)]


def measure(options, results):
    """Cases of a mode: lengths, hits and requests at once; what is there already is left out."""
    hits = [0] if options.mode == "off" else options.hits
    wanted = [
        Case("ttft", mode=options.mode, source=options.source, length=length, hit=hit, at_once=at_once)
        for length in options.lengths
        for hit in hits
        for at_once in options.at_once
    ]
    wanted = [case for case in wanted if case not in results]
    if not wanted:
        return
    site = Site(options, max(options.lengths) * max(options.at_once))
    try:
        engine = site.engine(options.mode)
        first_tokens(engine, [tokens(-1, 200, options.shape.vocabulary)], "warm-up")
        for case in wanted:
            options.check_time()
            spent = [_round(options, site, engine, case, turn) for turn in range(options.rounds)]
            results.add(case, statistics.median(spent), "ms", low=min(spent), high=max(spent))
        engine.close()
    finally:
        site.close()


def _round(options, site, engine, case, turn):
    shape = options.shape
    hit = case.length * case.hit // 100 // shape.block_tokens * shape.block_tokens
    seed = 1000 * case.length + 10 * case.hit + case.at_once
    prompts = []
    for i in range(case.at_once):
        head = tokens(f"{seed}-{i}", hit, shape.vocabulary)
        prompts.append(head + tokens(f"{seed}-{i}-{turn}", case.length - hit, shape.vocabulary))
    if hit and turn == 0:
        for i, prompt in enumerate(prompts):
            engine.add(f"{seed}-store-{i}", prompt[:hit], max_tokens=1)
            engine.run(600)
        settle(site.daemon)
    if hit and case.source == "files":
        site.forget_memory(engine)
    before = engine.hits
    spent = first_tokens(engine, prompts, f"{seed}-{turn}")
    found = engine.hits - before
    assert options.mode == "off" or found >= case.at_once * (hit - 1), (
        f"{case}: {found} tokens found; the daemon's log ends with\n{site.daemon.log()[-4000:]}"
    )
    if options.mode != "off":
        settle(site.daemon)
    return statistics.mean(spent)


def equal(options, results):
    """Greedy tokens with and without hits, in chunks of the same sizes."""
    case = Case("equal")
    if case in results:
        return
    shape = options.shape
    chunk = 4 * shape.block_tokens
    options.budget = chunk
    site = Site(options, 20 * chunk)
    try:
        prompts = [tokens(seed, 8 * chunk + 37 * seed, shape.vocabulary) for seed in range(4)]
        outputs = {}
        for mode in ("off", "direct", "direct", "layerwise"):
            engine = site.engine(mode)
            hits = engine.hits
            for i, prompt in enumerate(prompts):
                engine.add(f"{mode}-{i}", prompt, max_tokens=32)
                engine.run(600)
            if mode != "off":
                settle(site.daemon)
            found = [engine.outputs[f"{mode}-{i}"] for i in range(4)]
            outputs.setdefault(mode, []).append((found, engine.hits - hits))
            engine.close()
        (plain, _), = outputs["off"]
        runs = outputs["direct"] + outputs["layerwise"]
        assert runs[1][1] > 0 and runs[2][1] > 0, "nothing was found"
        same = all(found == plain for found, _ in runs)
        results.add(case, int(same), "all tokens equal", hits=runs[1][1])
        assert same, "the tokens differ with hits"
    finally:
        site.close()


def overhead(options, results):
    """What the connector costs requests that find nothing: time to first token, and decoding steps."""
    length, count = options.lengths[0], 4
    for mode in ("off", "direct", "off", "direct"):
        turn = results.turns("overhead", mode)
        case = Case("overhead", mode=mode, length=length, at_once=count, turn=turn)
        if turn >= 2:
            continue
        options.check_time()
        site = Site(options, (length + options.decode) * count)
        try:
            engine = site.engine(mode)
            first_tokens(engine, [tokens(-1, 200, options.shape.vocabulary)], "warm-up")
            prompts = [tokens(f"o{mode}{i}{turn}", length, options.shape.vocabulary) for i in range(count)]
            start = time.perf_counter()
            first = first_tokens(engine, prompts, f"o{turn}", max_tokens=options.decode)
            rate = count * options.decode / (time.perf_counter() - start - max(first) / 1000)
            results.add(case, statistics.mean(first), "ms", decoded=rate)
            engine.close()
        finally:
            site.close()
