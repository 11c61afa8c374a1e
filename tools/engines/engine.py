"""An engine of `tools/engines/run`: answers prompts as its argument (JSON) says, and writes what it saw.

Run by a Python that has vLLM.
"""

import json
import os
import random
import sys
import time

STORED_SECONDS = 300


def ask(llm, prompts, tokens):
    """Answers of prompts that run together, and tokens a second from where each has its first one on."""
    from vllm import SamplingParams

    engine = llm.llm_engine
    parameters = SamplingParams(temperature=0, max_tokens=tokens, logprobs=1, ignore_eos=True)
    ask.number = getattr(ask, "number", 0) + 1
    begin = time.perf_counter()
    for number, prompt in enumerate(prompts):
        engine.add_request(f"{ask.number}-{number}", {"prompt_token_ids": prompt}, parameters)
    first, made, found = {}, {}, {}
    all_began = None
    while engine.has_unfinished_requests():
        outputs = engine.step()
        now = time.perf_counter()
        for one in outputs:
            if one.outputs and one.outputs[0].token_ids:
                first.setdefault(one.request_id, now - begin)
                made[one.request_id] = len(one.outputs[0].token_ids)
            if one.finished:
                found[one.request_id] = one
        if all_began is None and len(first) == len(prompts):
            all_began, before = now, sum(made.values())
    rate = (sum(made.values()) - before) / (now - all_began) if now > all_began else None
    answers = []
    for number in range(len(prompts)):
        name = f"{ask.number}-{number}"
        one = found[name]
        said = one.outputs[0]
        answers.append(
            {
                "tokens": list(said.token_ids),
                "logprobs": [
                    each[token].logprob for token, each in zip(said.token_ids, said.logprobs)
                ],
                "cached": one.num_cached_tokens or 0,
                "ttft": first[name],
            }
        )
    return answers, rate


def loaded(transfer):
    """Blocks that UCM has promised so far, as its daemon counts them."""
    if transfer is None:
        return 0
    from ucm import protocol
    from ucm.client import Connection

    socket = transfer["kv_connector_extra_config"]["ucm_socket"]
    observer = Connection(socket, protocol.OBSERVER, "tools/engines/run", 60.0)
    answer = observer.ask(protocol.STATUS, protocol.Writer(), protocol.STATUS_TEXT, 60.0)
    observer.close()
    engines = json.loads(protocol.Reader(answer.body).string())["engines"]
    return sum(one["external_hit_blocks"] for one in engines)


def wait_until_stored(folder, files):
    """Blocks leave after the answer: the next engine starts when they lie in the store."""
    deadline = time.monotonic() + STORED_SECONDS
    while True:
        found = sum(len(names) for _, _, names in os.walk(folder))
        if found >= files:
            return
        if time.monotonic() > deadline:
            print(f"{found} of {files} blocks were stored within {STORED_SECONDS} s", flush=True)
            return
        time.sleep(0.2)


def wait_for_turn(pipes):
    """Two engines that are compared decode in turns, by a byte that each hands to the other."""
    if pipes and not os.read(pipes[0], 1):
        sys.exit("the other engine ended before its last round")


def give_turn(pipes):
    if pipes:
        try:
            os.write(pipes[1], b".")
        except BrokenPipeError:
            # It has had its last round.
            pass


def main():
    job = json.loads(sys.argv[1])
    from vllm import LLM

    arguments = dict(job["arguments"])
    if job["transfer"] is not None:
        from vllm.config import KVTransferConfig

        arguments["kv_transfer_config"] = KVTransferConfig(**job["transfer"])
    llm = LLM(**arguments)
    words = llm.llm_engine.model_config.get_vocab_size()

    def prompt(seed, length):
        # Low ids are often special.
        choice = random.Random(seed)
        return [choice.randrange(min(100, words // 4), min(words * 3 // 4, 50000)) for _ in range(length)]

    # The first of each kind pays for what is made once. Each engine has prompts of its own for that, and
    # for decoding.
    own = os.getpid()
    ask(llm, [prompt(f"warm-{own}", job["length"])], 2)
    turns = []
    for _ in range(job["turns"]):
        turns.append(
            [
                ask(llm, [prompt(f"prompt-{number}", job["length"])], job["tokens"])[0][0]
                for number in range(job["prompts"])
            ]
        )
    # What is stored, as it is loaded and then found in the engine's own cache.
    pairs = []
    before = loaded(job["transfer"])
    for number in job["pairs"] * list(range(job["prompts"])):
        if not llm.reset_prefix_cache():
            sys.exit("the engine does not forget its own cache")
        asked = [prompt(f"prompt-{number}", job["length"])]
        pairs.append([ask(llm, asked, 1)[0][0] for _ in ("loaded", "own")])
    rounds = []
    for turn in range(job["rounds"]):
        together = [prompt(f"decode-{own}-{turn}-{number}", job["block"] // 2) for number in range(8)]
        wait_for_turn(job["pipes"])
        # Many short rounds: what else the machine does meets both engines.
        rounds.append(ask(llm, together, job["block"] // 4)[1])
        give_turn(job["pipes"])
    if job.get("stored"):
        wait_until_stored(**job["stored"])
    import vllm

    found = {
        "version": vllm.__version__,
        "turns": turns,
        "pairs": pairs,
        "loaded": loaded(job["transfer"]) - before,
        "full_blocks": (job["length"] - 1) // job["block"],
        "decode": rounds,
    }
    with open(job["out"], "w", encoding="utf-8") as file:
        json.dump(found, file)
    # As vLLM ends: the connector is shut down with its engine.
    shutdown = getattr(llm.llm_engine.engine_core, "shutdown", None)
    if shutdown is not None:
        shutdown()


if __name__ == "__main__":
    main()
