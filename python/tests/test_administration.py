"""What operators ask of a running daemon by `ucm serve ...`, while engines use it."""

import glob
import json
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from conftest import private
from daemons import Daemon, ucm
from test_end_to_end import prompts, settle, status
from toy_engine import ToyEngine
from ucm import protocol


pytestmark = pytest.mark.usefixtures("patient")
BLOCK_FILES = "data/*/" + "?" * 32


def serve(daemon, command, *words, exits=0):
    """Runs a command; JSON when it is asked for. What is piped shows no progress."""
    ran = ucm("serve", command, "--socket", daemon.socket, *words)
    assert ran.returncode == exits, ran
    assert "\r" not in ran.stdout + ran.stderr and "Exception" not in ran.stderr
    return json.loads(ran.stdout) if "--json" in words else ran.stdout + ran.stderr


def engine_of(daemon, **extra):
    return ToyEngine(daemon.transfer(**extra), prefix_caching=False)


def hits(engine, name, prompt):
    before = engine.hits
    engine.add(name, prompt)
    engine.run()
    return engine.hits - before


def stored(engine, daemon, name, prompt):
    """Computes a prompt, and waits until the daemon has handed its blocks to the store."""
    assert hits(engine, name, prompt) == 0
    settle(daemon)


def blocks(daemon):
    return glob.glob(os.path.join(daemon.folder, BLOCK_FILES))


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


A, B, C = list(range(100)), list(range(500, 600)), list(range(700, 800))


def test_what_was_acknowledged_before_a_drain_is_on_disk_and_later_saves_are_refused(own_daemon):
    own_daemon.write_yaml("Cache|Posix")
    engine = engine_of(own_daemon)
    stored(engine, own_daemon, "a", A)
    answer = serve(own_daemon, "drain", "--json")
    assert answer == {
        "drained": True, "saves_left": 0, "pending_blocks": 0, "failed_blocks": 0, "complete": True,
    }
    assert serve(own_daemon, "status", "--json")["drained"] is True
    files = len(blocks(own_daemon))
    assert files > 0
    stored(engine, own_daemon, "b", B)
    assert hits(engine, "a again", A) >= 95
    assert hits(engine, "b again", B) == 0
    assert len(blocks(own_daemon)) == files
    own_daemon.kill()
    os.unlink(own_daemon.socket)
    own_daemon.start()
    again = engine_of(own_daemon)
    assert hits(again, "a", A) >= 95 and hits(again, "b", B) == 0
    # This daemon was not drained: the control.
    settle(own_daemon)
    assert hits(again, "b again", B) >= 95


def test_a_drain_while_an_engine_saves_disturbs_nothing_and_can_be_undone(own_daemon):
    own_daemon.write_yaml("Cache|Posix")
    engine = engine_of(own_daemon)
    ended = threading.Event()
    computed = []

    def work():
        try:
            for number, prompt in enumerate(prompts(7, 400)):
                engine.add(f"r{number}", prompt)
                engine.run()
                computed.append(number)
                if ended.is_set():
                    break
        except BaseException as fault:
            computed.append(fault)
            raise

    worker = threading.Thread(target=work)
    worker.start()
    until(lambda: len(computed) >= 3)
    answer = serve(own_daemon, "drain", "--json")
    assert answer["complete"], answer
    files = len(blocks(own_daemon))
    at_drain = len(computed)
    until(lambda: len(computed) >= at_drain + 3 or not worker.is_alive())
    ended.set()
    worker.join()
    assert not [one for one in computed if isinstance(one, BaseException)]
    settle(own_daemon)
    assert len(blocks(own_daemon)) == files > 0
    assert serve(own_daemon, "drain", "--undo").startswith("blocks are stored again")
    stored(engine, own_daemon, "c", C)
    assert hits(engine, "c again", C) >= 95


def test_after_a_clear_an_engine_finds_nothing_and_goes_on(own_daemon):
    own_daemon.write_yaml("Cache|Posix")
    engine = engine_of(own_daemon)
    stored(engine, own_daemon, "a", A)
    refused = serve(own_daemon, "clear", exits=2)
    assert "add --yes" in refused
    assert hits(engine, "a again", A) >= 95
    settle(own_daemon)
    answer = serve(own_daemon, "clear", "--yes", "--json")
    assert answer["complete"] and answer["removed_blocks"] >= 6 and answer["kept_stages"] == []
    assert blocks(own_daemon) == []
    assert hits(engine, "a gone", A) == 0
    settle(own_daemon)
    assert hits(engine, "a back", A) >= 95


def test_hit_ratio_is_taken_and_a_fixed_key_is_named_and_not_taken(own_daemon):
    own_daemon.write_yaml("Posix")
    engine = engine_of(own_daemon)
    stored(engine, own_daemon, "a", A)
    own_daemon.write_yaml("Posix", "hit_ratio: 0.5\n", "posix_lookup_concurrency: 3")
    answer = serve(own_daemon, "reload", own_daemon.yaml, "--json", exits=1)
    assert answer["configuration"] == own_daemon.yaml and len(answer["engines"]) == 1
    taken, refused = answer["engines"][0]["taken"], answer["engines"][0]["not_taken"]
    assert taken == {"hit_ratio": {"from": None, "to": 0.5}}
    assert list(refused) == ["posix_lookup_concurrency"]
    assert refused["posix_lookup_concurrency"]["to"] == 3
    assert "restart the engine" in refused["posix_lookup_concurrency"]["reason"]
    assert 0 < hits(engine, "half", A) <= 50
    # It is named again, as it is still not in force; the ratio is in force.
    text = serve(own_daemon, "reload", own_daemon.yaml, exits=1)
    assert "posix_lookup_concurrency is not 3" in text and "hit_ratio" not in text
    own_daemon.write_yaml("Posix")
    assert "hit_ratio is unset, was 0.5" in serve(own_daemon, "reload", own_daemon.yaml)
    assert hits(engine, "whole", A) >= 95


def test_a_reload_stays_when_the_engine_connects_again_with_the_old_text(own_daemon):
    own_daemon.write_yaml("Posix")
    engine = engine_of(own_daemon)
    stored(engine, own_daemon, "a", A)
    with open(own_daemon.yaml, encoding="utf-8") as file:
        old = file.read()
    own_daemon.write_yaml("Posix", "hit_ratio: 0.5\n")
    serve(own_daemon, "reload", own_daemon.yaml)
    engine.connector.shutdown()
    engine.ranks[0].connector.shutdown()
    until(lambda: status(own_daemon) == [])
    with open(own_daemon.yaml, "w", encoding="utf-8") as file:
        file.write(old)
    assert 0 < hits(engine_of(own_daemon), "half", A) <= 50


def test_a_smaller_capacity_takes_effect_at_once_and_none_is_no_number(own_daemon):
    own_daemon.write_yaml("Posix", "", "posix_capacity_gb: 1")
    engine = engine_of(own_daemon)
    for number, prompt in enumerate(prompts(3, 40)):
        engine.add(f"r{number}", prompt)
    engine.run()
    settle(own_daemon)

    before = len(blocks(own_daemon))
    capacity = before / 2 * os.stat(blocks(own_daemon)[0]).st_size / (1 << 30)
    own_daemon.write_yaml("Posix", "", f"posix_capacity_gb: {capacity:.9f}")
    assert "posix_capacity_gb is" in serve(own_daemon, "reload", own_daemon.yaml)
    until(lambda: len(blocks(own_daemon)) <= before / 2)
    own_daemon.write_yaml("Posix")
    text = serve(own_daemon, "reload", own_daemon.yaml, exits=1)
    assert "posix_capacity_gb is not 0" in text and "when the store opens" in text
    # What the daemon has is bounded still.
    stored(engine, own_daemon, "more", C)
    until(lambda: len(blocks(own_daemon)) <= before / 2)


def test_kinds_of_metrics_are_switched_off_and_on(tmp_path):
    daemon = Daemon(private(tmp_path / "d"))
    daemon.options = ["--metrics-port", "0"]
    daemon.start()
    until(lambda: "/metrics" in daemon.log())
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", daemon.log())
    metrics = tmp_path / "metrics.yaml"

    def shown():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        return {kind: f" {kind}\n" in text for kind in ("counter", "gauge")}

    daemon.write_yaml("Posix")
    engine = engine_of(daemon)
    stored(engine, daemon, "a", A)
    assert shown() == {"counter": True, "gauge": True}
    for counters in (False, True):
        kinds = {"counters": counters, "gauges": True, "histograms": True}
        metrics.write_text(json.dumps({"enabled_metrics": kinds}), "utf-8")
        daemon.write_yaml("Posix", f"metrics_config_path: {metrics}\n")
        serve(daemon, "reload", daemon.yaml)
        assert shown() == {"counter": counters, "gauge": True}
    engine.close()
    daemon.stop()


def test_a_wrong_file_changes_nothing(own_daemon):
    own_daemon.write_yaml("Posix")
    engine = engine_of(own_daemon)
    stored(engine, own_daemon, "a", A)
    own_daemon.write_yaml("Posix", "hit_ratio: 0.5\n", "posix_capacity_gbb: 1")
    assert "posix_capacity_gb" in serve(own_daemon, "reload", own_daemon.yaml, exits=2)
    assert hits(engine, "whole", A) >= 95
    assert "cannot read" in serve(own_daemon, "reload", own_daemon.folder + "/none", exits=2)
    other = os.path.join(own_daemon.folder, "other.yaml")
    own_daemon.write_yaml("Posix")
    os.link(own_daemon.yaml, other)
    text = serve(own_daemon, "reload", other, exits=1)
    assert "no engine here has the configuration" in text and own_daemon.yaml in text


def test_the_log_level_changes_what_is_logged(own_daemon):
    own_daemon.write_yaml("Posix")
    opened = "[D] Opened Pipeline Posix"
    engine_of(own_daemon)
    assert serve(own_daemon, "log-level") == "info\n"
    assert opened not in own_daemon.log()
    assert serve(own_daemon, "log-level", "debug") == "debug, was info\n"
    own_daemon.write_yaml("Posix", "", "posix_lookup_concurrency: 3")
    engine_of(own_daemon)
    until(lambda: opened in own_daemon.log())
    count = own_daemon.log().count(opened)
    own_daemon.write_yaml("Posix", "serve_log_level: warning\n", "posix_lookup_concurrency: 4")
    engine_of(own_daemon)
    assert serve(own_daemon, "log-level", "--json")["log_level"] == "warning"
    assert own_daemon.log().count(opened) == count
    assert "debug, info, warning or error" in serve(own_daemon, "log-level", "loud", exits=2)


def test_a_stop_ends_the_daemon_when_all_is_stored(own_daemon):
    own_daemon.write_yaml("Cache|Posix")
    engine = engine_of(own_daemon)
    stored(engine, own_daemon, "a", A)
    assert serve(own_daemon, "stop") == "the daemon has ended\n"
    assert own_daemon.process.wait(60) == 0
    assert not os.path.exists(own_daemon.socket)
    own_daemon.start()
    assert hits(engine_of(own_daemon), "a", A) >= 95


def test_over_http_the_token_is_asked_for_and_never_logged(own_daemon):
    own_daemon.stop()
    own_daemon.options = ["--admin-port", "0"]
    own_daemon.start()
    until(lambda: "operators at http://127.0.0.1:" in own_daemon.log())
    url = own_daemon.log().split("operators at ")[1].split(",")[0]
    path = os.path.join(own_daemon.folder, "admin.token")
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(path, encoding="utf-8") as file:
        token = file.read().strip()

    def ask(name, method="GET", said=token):
        headers = {"Authorization": f"Bearer {said}"}
        request = urllib.request.Request(url + name, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    assert ask("status")["engines"] == []
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask("status", said="wrong")
    assert ask("stop", "POST") == {"stopping": True}
    assert own_daemon.process.wait(60) == 0 and not os.path.exists(own_daemon.socket)
    assert token not in own_daemon.log() and "wrong" not in own_daemon.log()
    os.chmod(path, 0o644)
    refused = ucm("serve", "--socket", own_daemon.socket, "--admin-port", 0)
    assert refused.returncode == 1 and "mode 0600" in refused.stderr


COMMANDS = ["status", "reload", "drain", "clear", "log-level", "stop"]


def words_of(command, daemon):
    more = {"reload": [daemon.yaml], "clear": ["--yes"]}
    return [command, *more.get(command, [])]


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_daemon_a_command_says_so(tmp_path, command):
    absent = Daemon(private(tmp_path / "d"))
    text = serve(absent, *words_of(command, absent), exits=1)
    assert text.startswith("ucm: no ucm serve answers at " + absent.socket) and text.count("\n") == 1


def test_a_wrong_token_is_refused(own_daemon):
    path = own_daemon.socket.replace(".sock", ".token")
    with open(path, "r+b") as file:
        file.write(b"x" * 32)
    for command in COMMANDS:
        text = serve(own_daemon, *words_of(command, own_daemon), exits=1)
        assert "refuses (1): not admitted" in text and text.count("\n") == 1
    assert own_daemon.process.poll() is None


def test_an_older_daemon_is_named(tmp_path):
    """A daemon that knows HELLO and nothing of operators, as versions before this had it."""
    older = Daemon(private(tmp_path / "d"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(older.socket)
    listener.listen()
    token = older.socket.replace(".sock", ".token")
    with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
        file.write(bytes(32))

    def frame(connection):
        header = connection.recv(12, socket.MSG_WAITALL)
        length = int.from_bytes(header[:4], "little")
        connection.recv(length - 8, socket.MSG_WAITALL) if length > 8 else None
        return int.from_bytes(header[8:12], "little")

    def answer():
        for _ in COMMANDS[1:]:
            connection, _ = listener.accept()
            with connection:
                welcome = protocol.Writer().u16(1).string("0.1.0").raw(bytes(16))
                connection.sendall(welcome.frame(protocol.WELCOME, frame(connection)))
                refused = protocol.Writer().u16(3).string("unknown here")
                connection.sendall(refused.frame(protocol.REFUSED, frame(connection)))

    thread = threading.Thread(target=answer)
    thread.start()
    for command in COMMANDS[1:]:
        text = serve(older, *words_of(command, older), exits=1)
        assert f"has version 0.1.0, which does not know ucm serve {command}: restart it" in text
    thread.join()
    listener.close()
