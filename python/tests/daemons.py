"""`ucm serve` of UCM_HOME, started by tests."""

import fcntl
import glob
import os
import signal
import subprocess
import time

import pytest


def program():
    return os.path.join(os.environ["UCM_HOME"], "bin", "ucm")


def ucm(*words):
    return subprocess.run([program(), *map(str, words)], capture_output=True, text=True, timeout=300)


class Daemon:
    """`ucm serve` of UCM_HOME, and a configuration of a test's own with blocks in files."""

    def __init__(self, folder, socket=None, pipeline="Posix", staging="64MiB", pool_gb=0.05):
        self.folder = folder
        self.staging, self.pool_gb = staging, pool_gb
        self.socket = socket or os.path.join(folder, "ucm.sock")
        os.makedirs(os.path.join(folder, "data"), exist_ok=True)
        self.yaml = os.path.join(folder, "ucm.yaml")
        self.write_yaml(pipeline)
        self.process = None
        self.options = []
        # Its own view of a simulated GPU is that of the real driver: the host cannot reach the memory.
        self.gpu = {"SIM_CUDA_DIRECT": "0", "SIM_CUDA_REPORT": os.path.join(folder, "gpu")}

    def write_yaml(self, pipeline, top="", more=""):
        mode = "" if "use_layerwise" in top else "use_layerwise: false\n"
        with open(self.yaml, "w", encoding="utf-8") as file:
            file.write(
                f"{mode}ucm_connectors:\n"
                "  - ucm_connector_name: UcmPipelineStore\n"
                "    ucm_connector_config:\n"
                f"      store_pipeline: {pipeline}\n"
                f"      storage_backends: {self.folder}/data\n"
                f"{f'      cache_buffer_capacity_gb: {self.pool_gb}' if 'Cache' in pipeline else ''}\n"
                f"      {more}\n{top}"
            )

    def start(self, **environment):
        with open(os.path.join(self.folder, "serve.log"), "ab") as log:
            self.process = subprocess.Popen(
                [program(), "serve", "--socket", self.socket, "--staging", self.staging, *self.options],
                stdout=log,
                stderr=log,
                env={**os.environ, **self.gpu, **environment},
            )
        deadline = time.monotonic() + 60
        while not os.path.exists(self.socket):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.01)
        return self

    def restart(self, **environment):
        self.stop()
        return self.start(**environment)

    def gpu_report(self):
        """What the simulated driver counted in the daemon that has ended."""
        with open(self.gpu["SIM_CUDA_REPORT"], encoding="utf-8") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    def log(self):
        with open(os.path.join(self.folder, "serve.log"), encoding="utf-8") as file:
            return file.read()

    def freeze(self):
        """Stops all of its threads; the signal itself does not wait for that."""
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), self.log()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def kill_when_written(self):
        """Once all that it was given is in files: until then, Cache alone has the last of it."""
        ucm("serve", "drain", "--socket", self.socket).check_returncode()
        self.kill()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(60) in (0, 143), self.log()
        remove_dead_segments()

    def transfer(self, **extra):
        return {
            "kv_connector": "UCMConnector",
            "kv_connector_module_path": "ucm.integration.vllm.ucm_connector",
            "kv_role": extra.pop("kv_role", "kv_both"),
            "kv_connector_extra_config": {
                "UCM_CONFIG_FILE": self.yaml,
                "ucm_socket": self.socket,
                "ucm_start_daemon": False,
                "ucm_data_plane": "device" if os.environ.get("SIM_CUDA_DIRECT") == "1" else "auto",
                **extra,
            },
        }


def remove_dead_segments():
    """As the next daemon would: what a killed one left in /dev/shm has no lock any more."""
    for path in glob.glob(f"/dev/shm/ucm-slots-{os.getuid()}-*"):
        try:
            with open(path, "rb") as segment:
                fcntl.flock(segment, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
        except (FileNotFoundError, BlockingIOError):
            pass


def processes_of(socket):
    """Processes of daemons at a socket, whoever started them."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"serve" in words and socket.encode() in words:
            found.append(int(pid))
    return found


def end(socket):
    """Ends the daemon at a socket, which is not a child of this process, if there is one."""
    for pid in processes_of(socket):
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 60
        while os.path.exists(f"/proc/{pid}"):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def private(path):
    if "UCM_HOME" not in os.environ:
        pytest.skip("UCM_HOME names no image, so there is no ucm serve to test with")
    os.makedirs(path, mode=0o700)
    return str(path)
