"""Results as JSON lines in a file, so that a run goes on where the last one ended, and as tables."""

import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import Optional


@dataclass(frozen=True)
class Case:
    """What a figure is of."""

    part: str
    mode: Optional[str] = None
    source: Optional[str] = None
    length: Optional[int] = None
    hit: Optional[int] = None
    at_once: Optional[int] = None
    turn: Optional[int] = None
    name: Optional[str] = None


class Results:
    """The results of a folder, in the order of their making."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "results.jsonl")
        self.lines = []
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.lines = [json.loads(line) for line in file]

    def __contains__(self, case):
        return self.of(case) is not None

    def of(self, case):
        """The line of a case, if there is one."""
        wanted = _named(case)
        for line in self.lines:
            if {key: line.get(key) for key in wanted} == wanted:
                return line
        return None

    def turns(self, part, mode):
        """How often something was measured."""
        return sum(line["part"] == part and line.get("mode") == mode for line in self.lines)

    def add(self, case, value, unit, **more):
        """Keeps a figure, and prints its line."""
        line = {key: found for key, found in _named(case).items() if found is not None}
        line.update(value=value, unit=unit, **more)
        self.lines.append(line)
        text = json.dumps(line)
        print(text, flush=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(text + "\n")


def _named(case):
    return asdict(case)


def table(results, seeds, out=sys.stdout):
    """Full compute beside hits, a row for each length and number of requests at once."""
    times = [line for line in results.lines if line["part"] == "ttft"]
    plain = {(t["length"], t["at_once"]): t["value"] for t in times if t["mode"] == "off"}
    for mode, source in sorted({(t["mode"], t["source"]) for t in times if t["mode"] != "off"}):
        rows = [t for t in times if (t["mode"], t.get("source")) == (mode, source)]
        print(f"\n{mode}, blocks from {source}", file=out)
        head = "input tokens | at once | hits | full compute ms | with UCM ms | gain | the seeds' gain"
        print(f"| {head} |", file=out)
        print("|---|---|---|---|---|---|---|", file=out)
        for row in sorted(rows, key=lambda t: (t["at_once"], t["length"], t["hit"])):
            full = plain.get((row["length"], row["at_once"]))
            gain = "" if full is None else f"{100 * (full / row['value'] - 1):+.0f}%"
            of_seeds = ""
            for (_, length, at_once), (compute, hits) in seeds.items():
                if (length, at_once, 80) == (row["length"], row["at_once"], row["hit"]):
                    of_seeds = f"{100 * (compute / hits - 1):+.0f}%"
            full = "" if full is None else f"{full:.1f}"
            print(
                f"| {row['length']} | {row['at_once']} | {row['hit']}% | {full} | {row['value']:.1f}"
                f" | {gain} | {of_seeds} |",
                file=out,
            )
    for line in results.lines:
        if "answer" in line:
            copies_table(line["answer"], out)
    others = [line for line in results.lines if line["part"] != "ttft" and "answer" not in line]
    if others:
        print("\n| part | what | found |\n|---|---|---|", file=out)
    for line in others:
        what = ", ".join(
            f"{key} {line[key]}" for key in ("name", "mode", "length", "at_once", "turn") if key in line
        )
        more = {key: found for key, found in line.items() if key not in asdict(Case(""))}
        value, unit = more.pop("value"), more.pop("unit")
        rest = "".join(f", {key} {_short(found)}" for key, found in more.items())
        print(f"| {line['part']} | {what} | {_short(value)} {unit}{rest} |", file=out)


def copies_table(rows, out):
    """Saves and loads beside plain copies, as python/tests/copy_speed.py --json has them."""
    print("\n| copies | GB/s | beside |\n|---|---|---|", file=out)
    for row in rows:
        print(f"| {row['name']} | {row['gb_per_s']:.1f} | {row['ratio']:.2f} of {row['of']} |", file=out)


def _short(value):
    return f"{value:.1f}" if isinstance(value, float) else str(value)
