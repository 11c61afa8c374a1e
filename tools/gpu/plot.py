"""A plot of the time to first token over the length of the prompt, as SVG."""

import os
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 420, 70, 50, 40
COLOURS = ("#4c566a", "#2e7d32", "#1565c0", "#c62828", "#6a1b9a", "#ef6c00", "#00838f")


def write(results, folder):
    """Draws one request at once; returns the file's path."""
    lines = {}
    for line in results.lines:
        if line["part"] == "ttft" and line["at_once"] == min(_numbers(results, "at_once")):
            lines.setdefault(_name(line), []).append((line["length"], line["value"]))
    path = os.path.join(folder, "ttft.svg")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_svg({name: sorted(points) for name, points in lines.items()}))
    return path


def _numbers(results, key):
    return [line[key] for line in results.lines if line["part"] == "ttft"] or [0]


def _name(line):
    if line["mode"] == "off":
        return "full compute"
    return f"{line['mode']}, {line['hit']}% from {line['source']}"


def _svg(lines):
    points = [point for line in lines.values() for point in line]
    longest = max((x for x, _ in points), default=1)
    slowest = max((y for _, y in points), default=1)

    def place(point):
        x = LEFT + (WIDTH - LEFT - 190) * point[0] / longest
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * point[1] / slowest
        return f"{x:.1f}", f"{y:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">Time to first token, one request at once</text>',
        f'<text x="{LEFT}" y="{HEIGHT - 12}">input tokens</text>',
        f'<text x="12" y="{TOP - 8}">ms</text>',
    ]
    for x in sorted({x for x, _ in points}):
        at, _ = place((x, 0))
        parts.append(f'<text x="{at}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x}</text>')
    for i in range(5):
        y = slowest * i / 4
        _, at = place((0, y))
        parts.append(
            f'<line x1="{LEFT}" y1="{at}" x2="{WIDTH - 190}" y2="{at}" stroke="#ddd"/>'
            f'<text x="{LEFT - 6}" y="{at}" text-anchor="end">{y:.0f}</text>'
        )
    for i, (name, line) in enumerate(sorted(lines.items())):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(",".join(place(point)) for point in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for point in line:
            x, y = place(point)
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - 180}" y="{TOP + 18 * i}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
