"""Blocks in a bucket of a real server: what a daemon shows of it, and what it must not show."""

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request

import pytest
from conftest import private
from daemons import Daemon
from test_administration import A, engine_of, hits, serve, stored, until


pytestmark = pytest.mark.usefixtures("patient")
KEY, SECRET, MISPLACED = "ucmtestkey0123", "ucmtestsecret0123456789", "hunter2hunter2"
# Shown wherever the configuration of an engine is named: the search finds what is shown.
SHOWN = "shown3shown3"


def listens(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def gateway(tmp_path):
    path = shutil.which("versitygw", path=os.environ["PATH"] + ":" + os.path.expanduser("~/go/bin"))
    if path is None:
        pytest.skip("needs versitygw: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    for folder in ("objects/blocks", "metadata"):
        os.makedirs(tmp_path / folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [path, "--port", f"127.0.0.1:{port}", "--quiet", "posix"]
    command += ["--sidecar", str(tmp_path / "metadata"), str(tmp_path / "objects")]
    keys = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    with subprocess.Popen(command, env={**os.environ, **keys}) as process:
        until(lambda: process.poll() is not None or listens(port))
        yield f"http://127.0.0.1:{port}"
        process.kill()


def get(url, token=""):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


@pytest.fixture
def daemon(tmp_path):
    found = Daemon(private(tmp_path / SHOWN))
    yield found
    found.stop()


def test_status_metrics_and_log_show_no_secret(gateway, daemon, caplog):
    daemon.options = ["--metrics-port", "0", "--admin-port", "0"]
    daemon.start(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    serve(daemon, "log-level", "debug")
    until(lambda: "/metrics" in daemon.log() and "operators at" in daemon.log())
    (metrics,) = re.findall(r"http://127\.0\.0\.1:\d+/metrics", daemon.log())
    (operators,) = re.findall(r"operators at (http://[^,]+)", daemon.log())
    with open(os.path.join(daemon.folder, "admin.token"), encoding="utf-8") as file:
        token = file.read().strip()

    daemon.write_yaml("Cache|S3", "", f"s3_bucket: blocks\n      s3_endpoints: {gateway}")
    engine = engine_of(daemon)
    stored(engine, daemon, "a", A)
    assert hits(engine, "again", A) >= 95
    wrong = gateway.replace("http://", f"https://user:{MISPLACED}@")
    daemon.write_yaml("Cache|S3", "", f"s3_bucket: blocks\n      s3_endpoints: {wrong}")
    engine_of(daemon)
    until(lambda: "s3_endpoints" in caplog.text)

    told = [serve(daemon, "status"), json.dumps(serve(daemon, "status", "--json"))]
    told += [get(operators + "status", token), daemon.log(), caplog.text]
    assert all(SHOWN in text for text in told)
    counted = get(metrics)
    puts = re.findall(r'^ucm:s3_put_requests_total\{.*"toy".*\} (\S+)$', counted, re.MULTILINE)
    assert sum(map(float, puts)) > 0
    for text in [*told, counted]:
        for secret in (KEY, SECRET, MISPLACED):
            assert secret not in text
    # The transport answers until the store has closed, also after a signal.
    daemon.stop()
    assert "did not end" not in daemon.log()
