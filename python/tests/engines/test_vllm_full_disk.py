"""A disk that fills, is made room on, fills again, and gets read-only, below an engine that runs."""

import os
import re
import subprocess

import pytest
from daemons import Daemon, private
from vllm_engine import cached, difference, forget, full_blocks, generate, prompts

ROUNDS = 6
DISK_BYTES = 128 << 20
LEFT_BYTES = 1 << 20


def wanted(number):
    return prompts(seed=90 + number, count=4, shared=0)


def rounds(llm, tell, hear):
    """Answers of other prompts in each round, first computed and then asked for again."""
    found = []
    for number in range(ROUNDS):
        tell(number)
        hear()
        first = generate(llm, wanted(number))
        forget(llm)
        again = generate(llm, wanted(number))
        # What was stored before anything went wrong.
        forget(llm)
        found.append((first, again, generate(llm, wanted(0))))
        forget(llm)
    return found


@pytest.fixture
def disk(tmp_path):
    """Where a small ext4 is."""
    image, folder = tmp_path / "disk.img", tmp_path / "disk"
    with open(image, "wb") as file:
        file.truncate(DISK_BYTES)
    folder.mkdir()
    try:
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True, capture_output=True)
        options = "loop,errors=remount-ro"
        subprocess.run(["mount", "-o", options, image, folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as reason:
        pytest.skip(f"cannot mount a file system: {reason}")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.full
@pytest.mark.newest
@pytest.mark.parametrize("pipeline", ["Posix", "Cache|Posix"])
def test_a_disk_that_fills_and_gets_read_only(engine, disk, tmp_path, pipeline):
    expected = engine(lambda llm, *_: [generate(llm, wanted(one)) for one in range(ROUNDS)]).result()
    made = Daemon(private(tmp_path / "d"), pipeline=pipeline, staging="64MiB")
    data = private(disk / "data")
    with open(made.yaml, encoding="utf-8") as file:
        text = file.read()
    with open(made.yaml, "w", encoding="utf-8") as file:
        file.write(text.replace(f"{made.folder}/data", str(data)) + "      posix_min_free_gb: 0\n")
    made.start()
    ballast = disk / "ballast"

    def fill():
        free = os.statvfs(disk)
        with open(ballast, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - LEFT_BYTES)

    def abort():
        """Has the file system find an error, and so be read-only, as far as it can be told to."""
        subprocess.run(["mount", "-o", "remount,abort", disk], check=True)

    try:
        running = engine(rounds, made)
        for act in [None, fill, ballast.unlink, fill, ballast.unlink, abort]:
            running.receive()
            if act is not None:
                act()
            running.send("done")
        found = running.result()
    finally:
        made.stop()
    for (first, again, oldest), right in zip(found, expected):
        assert difference(first, right) is None
        assert difference(again, right) is None
        assert difference(oldest, expected[0]) is None
    hits = [sum(cached(again)) for _, again, _ in found]
    whole = [sum(full_blocks(wanted(number))) for number in range(ROUNDS)]
    assert hits[::2] == whole[::2], hits
    if pipeline == "Posix":
        assert hits[1] < whole[1] and hits[3] < whole[3] and hits[5] == 0, hits
    assert [sum(cached(oldest)) for *_, oldest in found] == [whole[0]] * ROUNDS
    said = [line.partition("[UC][W] ")[2] for line in made.log().splitlines() if "[UC][W] " in line]
    kinds = [re.sub(r"[0-9a-f]{8,}|\d+|\[[^]]*\]", "", line) for line in said]
    assert len(kinds) == len(set(kinds)), "\n".join(said)
    for kind in ("ENOSPC", "EROFS"):
        assert any(kind in line for line in said), "\n".join(said)
