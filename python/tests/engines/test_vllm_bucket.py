"""Two engines that share nothing but a bucket: each with a daemon and a network of its own."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest
from daemons import Daemon, private
from vllm_engine import BLOCK, BOUND_SECONDS, cached, difference, forget, full_blocks, generate, prompts

WANTED = prompts(seed=41)
OUTAGE_SECONDS = 30
# What the first engine stores after the outage; together longer than a store leaves an endpoint alone.
PROBES = prompts(seed=42, count=12, shared=0)
PAUSE_SECONDS = 5
BUCKET = "blocks"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "ucmtestkey", "AWS_SECRET_ACCESS_KEY": "ucmtestsecret0123456789"}
NEWNET = 0x40000000


def program(name, *folders):
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))


class Network:
    """A network namespace with a link to this machine's, and nothing else."""

    def __init__(self, number):
        # One for each process and number: tests of several checkouts may run side by side.
        subnet = (os.getpid() * 2 + number) % 16384
        base = f"10.213.{subnet // 64}.{subnet % 64 * 4}".rsplit(".", 1)
        self.name = f"ucm-{os.getpid()}-{number}"
        self.host = f"{base[0]}.{int(base[1]) + 1}"
        self._inside = f"{base[0]}.{int(base[1]) + 2}"
        self._link = f"ucm{os.getpid()}h{number}"[-15:]

    def make(self):
        peer = f"ucm{os.getpid()}n{self.name[-1]}"[-15:]
        self._ip("netns", "add", self.name)
        self._ip("link", "add", self._link, "type", "veth", "peer", "name", peer, "netns", self.name)
        self._ip("addr", "add", f"{self.host}/30", "dev", self._link)
        self._ip("link", "set", self._link, "up")
        self._ip("-n", self.name, "addr", "add", f"{self._inside}/30", "dev", peer)
        self._ip("-n", self.name, "link", "set", peer, "up")
        self._ip("-n", self.name, "link", "set", "lo", "up")

    @staticmethod
    def _ip(*words):
        ended = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            pytest.skip(f"needs network namespaces: ip {' '.join(words)}: {ended.stderr.strip()}")

    def remove(self):
        # The link goes with it.
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)

    def before_engine(self):
        """Called in the process of an engine, whose parts find each other on its loopback device."""
        os.environ.update(VLLM_HOST_IP="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
        self.enter()

    def enter(self):
        """Takes the calling thread, and those that it starts, into it."""
        with open(f"/run/netns/{self.name}", encoding="ascii") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")


@pytest.fixture
def networks():
    if program("ip", "/usr/sbin") is None or os.geteuid() != 0:
        pytest.skip("needs network namespaces: root, and Debian's package iproute2")
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(2):
            network = Network(number)
            stack.callback(network.remove)
            network.make()
            made.append(network)
        yield made


class Gateway:
    """versitygw over a folder, on all networks of this machine."""

    def __init__(self, path, folder):
        self.objects = os.path.join(folder, "objects")
        os.makedirs(os.path.join(self.objects, BUCKET))
        os.makedirs(os.path.join(folder, "metadata"))
        with socket.socket() as free:
            free.bind(("", 0))
            self.port = free.getsockname()[1]
        keys = {"ROOT_ACCESS_KEY": "AWS_ACCESS_KEY_ID", "ROOT_SECRET_KEY": "AWS_SECRET_ACCESS_KEY"}
        command = [path, "--port", f":{self.port}", "--keep-alive", "--quiet", "posix"]
        command += ["--sidecar", os.path.join(folder, "metadata"), self.objects]
        with open(os.path.join(folder, "log"), "wb") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env={**os.environ, **{key: CREDENTIALS[value] for key, value in keys.items()}},
            )
        until(self._listens, "gateway that listens")

    def _listens(self):
        assert self.process.poll() is None
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", self.port)) == 0

    def blocks(self, prefix):
        found = os.walk(os.path.join(self.objects, BUCKET, prefix))
        return sum(len(name) == 32 for _, _, names in found for name in names)

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def gateway(tmp_path):
    path = program("versitygw", os.path.expanduser("~/go/bin"))
    if path is None:
        pytest.skip("needs versitygw: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    found = Gateway(path, private(tmp_path / "s3"))
    yield found
    found.end()


def until(held, what):
    deadline = time.monotonic() + BOUND_SECONDS
    while not held():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.05)


class Remote(Daemon):
    """`ucm serve` in a network of its own, whose blocks are in a bucket alone."""

    def __init__(self, folder, network, gateway, prefix):
        self._bucket = (
            "      store_pipeline: Cache|S3\n"
            "      cache_buffer_capacity_gb: 0.2\n"
            f"      s3_endpoints: http://{network.host}:{gateway.port}\n"
            f"      s3_bucket: {BUCKET}\n"
            f"      s3_prefix: {prefix}\n"
            "      s3_plaintext: true\n"
            "      s3_known_s: 0\n"
        )
        self._network = network
        super().__init__(folder, staging="256MiB")

    def write_yaml(self, pipeline, top="", more=""):
        with open(self.yaml, "w", encoding="utf-8") as file:
            file.write(
                "use_layerwise: false\nucm_connectors:\n  - ucm_connector_name: UcmPipelineStore\n"
                f"    ucm_connector_config:\n{self._bucket}"
            )

    def start(self, **environment):
        # The thread that starts a process gives it its network.
        with open("/proc/thread-self/ns/net", encoding="ascii") as own:
            self._network.enter()
            try:
                return super().start(**CREDENTIALS, **environment)
            finally:
                ctypes.CDLL(None).setns(own.fileno(), NEWNET)


@pytest.fixture
def remote(tmp_path, gateway):
    made = []

    def make(network, prefix="shared"):
        daemon = Remote(private(tmp_path / f"d{len(made)}"), network, gateway, prefix)
        made.append(daemon)
        return daemon.start()

    yield make
    for one in made:
        one.stop()


def once(llm, tell, hear):
    return generate(llm, WANTED)


def probes(llm, tell, hear):
    return generate(llm, PROBES)


def through_an_outage(llm, tell, hear):
    """Answers before, during and after the gateway hangs."""
    tell(generate(llm, WANTED))
    forget(llm)
    hear()
    rounds, fresh, end = [], [], time.monotonic() + OUTAGE_SECONDS
    while time.monotonic() < end:
        rounds.append(generate(llm, WANTED))
        # These are looked up, and to be stored, at a server that does not answer.
        fresh += generate(llm, prompts(seed=1000 + len(rounds), count=2))
        forget(llm)
    tell((rounds, fresh))
    hear()
    # Each is asked for once: what was computed here is found here.
    for tries, probe in enumerate(PROBES):
        if cached(generate(llm, [probe])) == full_blocks([probe]):
            return tries
        time.sleep(PAUSE_SECONDS)
    return None


@pytest.mark.full
def test_two_engines_share_a_bucket_and_outlive_its_gateway(engine, networks, gateway, remote):
    expected = engine(once).result()
    first, second = networks
    filling = remote(first)
    found = engine(once, filling, before=first.before_engine).result()
    assert difference(found, expected) is None
    ours = len({tuple(one["prompt_token_ids"][:end]) for one in WANTED for end in range(BLOCK, 1101, BLOCK)})
    until(lambda: gateway.blocks("shared") >= ours, "blocks in the bucket")

    # The negative control: nothing of it is below another prefix.
    other = engine(once, remote(second, "other"), before=second.before_engine).result()
    # The others find what the engine has of the prompt that it computed first: any, where look-ups are late.
    assert min(cached(other)) == 0
    assert max(cached(other)) < full_blocks(WANTED)[0]
    assert difference(other, expected) is None

    reading = remote(second)
    running = engine(through_an_outage, reading, before=second.before_engine)
    found = running.receive()
    assert cached(found) == full_blocks(WANTED)
    assert difference(found, expected) is None
    gateway.process.send_signal(signal.SIGSTOP)
    running.send("hangs")
    rounds, fresh = running.receive()
    assert rounds
    assert [difference(one, expected) for one in rounds] == [None] * len(rounds)
    assert all(len(one.tokens) == 12 for one in fresh)
    gateway.process.send_signal(signal.SIGCONT)
    # What the first engine stores from now on, the second one finds.
    before = gateway.blocks("shared")
    engine(probes, filling, before=first.before_engine).result()
    until(lambda: gateway.blocks("shared") >= before + len(PROBES) * (1100 // BLOCK), "probes in the bucket")
    running.send("answers")
    assert running.result() is not None, reading.log()
