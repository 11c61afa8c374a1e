"""The engine as operators start it: `vllm serve` with the launch line of docs/vllm.md."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from vllm_engine import BLOCK, BOUND_SECONDS, full_blocks, prompts, version

pytestmark = pytest.mark.started
WANTED = prompts(seed=3, count=3)
VLLM = os.path.join(os.path.dirname(sys.executable), "vllm")


class Server:
    """`vllm serve` on a port of its own."""

    def __init__(self, folder, model, daemon):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._log = os.path.join(folder, f"serve-{self.port}.log")
        self._model = model
        command = [VLLM, "serve", model, "--dtype", "float32", "--enforce-eager", "--max-model-len", "4096"]
        command += ["--block_size", str(BLOCK), "--host", "127.0.0.1", "--port", str(self.port)]
        transfer = {
            "kv_connector": "UCMConnector",
            "kv_connector_module_path": "ucm.integration.vllm.ucm_connector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": {"UCM_CONFIG_FILE": daemon.yaml},
        }
        command += ["--kv-transfer-config", json.dumps(transfer)]
        environment = {
            **os.environ,
            "UCM_SOCKET": daemon.socket,
            # The engine's own processes, as operators have them; vllm_engine turns them off for forked ones.
            "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
            # Has a request that empties the engine's own cache.
            "VLLM_SERVER_DEV_MODE": "1",
        }
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        self.until(lambda: self._get("/health") is not None, "an engine that answers")
        # Scheduler and worker.
        self.until(lambda: self.log().count("UCM: connected to the daemon") >= 2, "line of a connection")

    def until(self, held, what):
        deadline = time.monotonic() + BOUND_SECONDS
        while not held():
            assert self.process.poll() is None, f"it ended\n{self.log()[-6000:]}"
            assert time.monotonic() < deadline, f"no {what}\n{self.log()[-6000:]}"
            time.sleep(0.2)

    def _url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def _get(self, path):
        try:
            with urllib.request.urlopen(self._url(path), timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def log(self):
        with open(self._log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def _answer(self, prompt):
        asked = {
            "model": self._model,
            "prompt": prompt["prompt_token_ids"],
            "temperature": 0,
            "max_tokens": 12,
            "logprobs": 1,
            "ignore_eos": True,
        }
        request = urllib.request.Request(
            self._url("/v1/completions"),
            json.dumps(asked).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=BOUND_SECONDS) as answer:
            choice = json.load(answer)["choices"][0]
        return choice["text"], choice["logprobs"]["token_logprobs"]

    def answers(self):
        """Text and log-probabilities of each prompt, one after the other."""
        return [self._answer(prompt) for prompt in WANTED]

    def hits(self):
        """Tokens of answers that vLLM's own cache had, and UCM, as the log says; none of a late look-up."""
        blocks = len(WANTED[0]["prompt_token_ids"]) // BLOCK
        line = re.compile(rf"total_blocks_num: {blocks}, hit hbm: (\d+), hit external: (\d+)")
        return [(int(own) * BLOCK, int(external) * BLOCK) for own, external in line.findall(self.log())]

    def reset(self):
        """Empties vLLM's own cache."""
        request = urllib.request.Request(self._url("/reset_prefix_cache"), method="POST")
        urllib.request.urlopen(request, timeout=BOUND_SECONDS).close()

    def metric(self, name):
        values = re.findall(rf"^{name}\{{.*\}} (\S+)$", self._get("/metrics") or "", re.MULTILINE)
        return sum(float(value) for value in values)

    def load(self, seed):
        """Six requests at once, each of which is answered."""
        with ThreadPoolExecutor(6) as pool:
            return list(pool.map(self._answer, prompts(seed=seed, count=6, length=700, shared=0)))

    def stop(self):
        """As an operator does; what is left after that is killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


@pytest.fixture
def servers(tmp_path, model):
    made = []

    def make(daemon):
        made.append(Server(str(tmp_path), model, daemon))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def same(found, expected):
    return all(
        text == other and all(abs(a - b) < 1e-3 for a, b in zip(numbers, others))
        for (text, numbers), (other, others) in zip(found, expected)
    )


def stored(folder):
    return sum(len(names) for _, _, names in os.walk(folder))


def test_the_documented_launch_line_finds_everything_after_a_restart(servers, daemon):
    first = servers(daemon)
    # Nothing is found, so these are computed.
    expected = first.answers()
    assert all(external == 0 for _, external in first.hits())
    loaded = first.load(seed=1)
    assert first.metric("vllm:external_prefix_cache_hits_total") == 0
    # Prompts share their first blocks.
    blocks = len(WANTED[0]["prompt_token_ids"]) // BLOCK
    ours = 3 * blocks - 2 * (550 // BLOCK) + 6 * (700 // BLOCK)

    def all_stored():
        if stored(os.path.join(daemon.folder, "data")) >= ours:
            return True
        # On a busy machine the daemon may be late: such a prompt is computed, and not saved.
        first.reset()
        first.answers()
        first.load(seed=1)
        return False

    first.until(all_stored, "blocks in the store")
    first.stop()

    second = servers(daemon)
    for _ in range(20):
        before = len(second.hits())
        assert same(second.answers(), expected)
        hits = second.hits()[before:]
        if [own + external for own, external in hits] == full_blocks(WANTED):
            break
        second.reset()
    assert hits[0] == (0, full_blocks(WANTED)[0])
    found = second.metric("vllm:external_prefix_cache_hits_total")
    second.load(seed=2)
    assert second.metric("vllm:external_prefix_cache_hits_total") == found
    assert same(second.load(seed=1), loaded)
    # Older versions count neither.
    if version() >= (0, 23):
        assert second.metric("vllm:external_prefix_cache_hits_total") > found
        assert second.metric("vllm:ucm_prompt_blocks_total") > 0
    second.stop()
