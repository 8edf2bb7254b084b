"""Draws the pictures of the pages: timelines of autoreset modes and of orders, one step, speed.

``python docs/pictures/draw.py`` writes them next to it. Boxes carry white text on colors, and
other text has a gray that is readable on white and on black, so one file serves both themes. The
bars of the first page are two files, one for each theme; their numbers are in ``figures.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypeAlias

GRAY, BLUE, ORANGE, GREEN, PURPLE = "#7b8591", "#2f6db5", "#b8591a", "#2c7d4b", "#7a4fa3"
FONT = 'font-family="system-ui, sans-serif" font-size="15"'


class Drawing:
    """Shapes of a picture with a width, a height and a title for those who cannot see it."""

    def __init__(self, width: int, height: int, title: str) -> None:
        """Starts with no shapes."""
        self.shapes = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" {FONT}>',
            f"<title>{title}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{GRAY}"/></marker>'
            "</defs>",
        ]

    def text(
        self, x: float, y: float, words: str, color: str = GRAY, anchor: str = "middle"
    ) -> None:
        """Words around (or from) a point."""
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" fill="{color}" text-anchor="{anchor}">{words}</text>'
        )

    def box(self, x: float, y: float, width: float, height: float, color: str, *lines: str) -> None:
        """A box with lines of text; without a color only its border."""
        look = f'fill="{color}"' if color else f'fill="none" stroke="{GRAY}" stroke-dasharray="4 3"'
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" {look}/>'
        )
        first = y + height / 2 + 5 - 9.5 * (len(lines) - 1)
        for index, line in enumerate(lines):
            self.text(x + width / 2, first + 19 * index, line, "#fff" if color else GRAY)

    def arrow(self, *points: tuple[float, float]) -> None:
        """A line with a tip at its end."""
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        self.shapes.append(
            f'<path d="M{path}" fill="none" stroke="{GRAY}" stroke-width="1.5" '
            'marker-end="url(#tip)"/>'
        )

    def svg(self) -> str:
        """The file."""
        return "\n".join([*self.shapes, "</svg>", ""])


#: For each mode, the calls: what is called, its action, the environment's own calls, the
#: observation that is returned, the flag, and the transition or what there is in its place.
TIMELINES = {
    "next_step": [
        ("reset", "", "reset", "o₀", "", ""),
        ("step", "a₀", "step", "o₁", "", "o₀ → o₁"),
        ("step", "a₁", "step", "o₂", "", "o₁ → o₂"),
        ("step", "a₂", "step", "o₃", "over", "o₂ → o₃"),
        ("step", "ignored", "reset", "p₀", "", "none"),
        ("step", "b₀", "step", "p₁", "", "p₀ → p₁"),
    ],
    "same_step": [
        ("reset", "", "reset", "o₀", "", ""),
        ("step", "a₀", "step", "o₁", "", "o₀ → o₁"),
        ("step", "a₁", "step", "o₂", "", "o₁ → o₂"),
        ("step", "a₂", "step, reset", "p₀", "over", "o₂ → o₃"),
        ("step", "b₀", "step", "p₁", "", "p₀ → p₁"),
        ("step", "b₁", "step", "p₂", "", "p₁ → p₂"),
    ],
    "disabled": [
        ("reset", "", "reset", "o₀", "", ""),
        ("step", "a₀", "step", "o₁", "", "o₀ → o₁"),
        ("step", "a₁", "step", "o₂", "", "o₁ → o₂"),
        ("step", "a₂", "step", "o₃", "over", "o₂ → o₃"),
        ("reset mask", "", "reset", "p₀", "", ""),
        ("step", "b₀", "step", "p₁", "", "p₀ → p₁"),
    ],
}
LABELS = ("you call", "action", "the env does", "observation", "flag", "transition")


def timeline(mode: str) -> str:
    """One row of a batch, whose episode ``o`` ends in its third step; ``p`` is the next one."""
    left, width, gap, height, pitch = 170, 92, 8, 30, 40
    drawing = Drawing(left + 6 * (width + gap), 6 * pitch + 46, f"The autoreset mode {mode}")
    for line, label in enumerate(LABELS):
        drawing.text(left - 14, line * pitch + 25, label, anchor="end")
    for column, (call, action, does, observation, flag, transition) in enumerate(TIMELINES[mode]):
        x = left + column * (width + gap)
        color = BLUE if observation[0] == "o" else ORANGE
        cells = [(0, "", call), (1, "", action), (2, "", does), (3, color, observation)]
        cells += [(4, PURPLE, flag), (5, GREEN if "→" in transition else "", transition)]
        for line, fill, words in cells:
            if words:
                drawing.box(x, line * pitch + 5, width, height, fill, words)
    notes = {
        "next_step": "The step after the end only resets. Its reward is 0: it is not a transition.",
        "same_step": 'The third step returns p₀. Its own end, o₃, is in infos["final_obs"].',
        "disabled": 'Nothing restarts by itself: reset(options={"reset_mask": over}) does it.',
    }
    drawing.text(left, 6 * pitch + 27, notes[mode].replace('"', "&quot;"), anchor="start")
    return drawing.svg()


def step() -> str:
    """The way one ``step`` travels from the caller to two workers and back."""
    drawing = Drawing(760, 400, "One step: actions go to the workers, rows come back in a slab")
    drawing.box(10, 20, 150, 50, BLUE, "envs.step(actions)")
    drawing.arrow((160, 45), (208, 45))
    drawing.box(210, 20, 150, 50, BLUE, "check, and copy", "the actions")
    drawing.arrow((360, 45), (408, 45))
    drawing.box(410, 20, 160, 50, PURPLE, "action area", "one for each row")
    drawing.text(285, 98, "then one word for each worker, and a wake-up")
    drawing.arrow((285, 106), (180, 138))
    drawing.arrow((285, 106), (388, 138))
    for x, worker, rows in ((80, "worker 0", "rows 0 to 3"), (290, "worker 1", "rows 4 to 7")):
        about = (f"{worker}: {rows}", "autoreset: step, reset,", "or freeze?", "env.step(action)")
        drawing.box(x, 140, 200, 112, GREEN, *about)
        drawing.arrow((x + 100, 252), (x + 100, 288))
    drawing.arrow((570, 60), (600, 60), (600, 190), (492, 190))
    drawing.text(610, 130, "read in place", anchor="start")
    drawing.box(80, 290, 200, 40, ORANGE, "shard of rows 0 to 3")
    drawing.box(290, 290, 200, 40, ORANGE, "shard of rows 4 to 7")
    drawing.box(70, 282, 430, 56, "")
    drawing.text(510, 306, "slab: one batch of observations,", anchor="start")
    drawing.text(510, 326, "rewards and flags", anchor="start")
    drawing.arrow((285, 338), (285, 360))
    drawing.text(
        285, 380, "all shards are back: your arrays lease the slab, and nothing overwrites it"
    )
    return drawing.svg()


#: How long the steps of each row take; row 2 has a long one, and row 3 another.
DURATIONS = ((3, 4, 3, 3, 4, 3), (4, 3, 3, 4, 3, 3), (3, 9, 3, 3, 3, 3), (3, 3, 3, 8, 3, 3))
#: How long a call of the policy takes, for any number of rows, and where the timelines end.
CALL, END = 2, 32
ORDERS = {"lockstep": [[0, 1, 2, 3]], "groups": [[0, 2], [1, 3]], "free": None}


def orders() -> str:
    """Timelines of the policy and four rows in each order."""
    left, unit, pitch, height = 80, 21, 27, 23
    each = 6 * pitch + 10
    drawing = Drawing(left + END * unit + 4, 3 * each - 8, "Who works when, in each order")
    for place, (order, groups) in enumerate(ORDERS.items()):
        calls, lanes = play(groups)
        steps = sum(end <= END for lane in lanes for _, end, _ in lane)
        top = place * each
        words = f"{order}: {steps} steps in the same time"
        drawing.text(left, top + 19, words, anchor="start")
        for line, spans in enumerate([calls, *lanes]):
            y = top + (line + 1) * pitch
            label = f"row {line - 1}" if line else "policy"
            drawing.text(left - 10, y + 17, label, anchor="end")
            color = (BLUE if line % 2 else GREEN) if line else PURPLE
            for begin, end, words in spans:
                if begin < END:  # what is not over at the end is cut there
                    x, width = left + begin * unit, (min(end, END) - begin) * unit
                    drawing.box(x, y, width - 2, height, color, words)
    return drawing.svg()


Spans: TypeAlias = list[tuple[float, float, str]]


def play(groups: list[list[int]] | None) -> tuple[Spans, list[Spans]]:
    """Calls of the policy and steps of each row: beginnings, ends, and words for each.

    Groups are asked in turn, each as a whole; without groups, the rows that are done are.
    """
    calls: Spans = []
    lanes: list[Spans] = [[] for _ in DURATIONS]
    ready, now = [0.0] * len(lanes), 0.0
    while now < END:
        if groups is None:
            now = max(now, min(ready))
            rows = [row for row, since in enumerate(ready) if since <= now]
        else:
            rows = groups[len(calls) % len(groups)]
            now = max(now, *(ready[row] for row in rows))
        calls.append((now, now + CALL, ",".join(map(str, rows)) if len(rows) < 4 else "all"))
        now += CALL
        for row in rows:
            number = len(lanes[row])
            ready[row] = now + DURATIONS[row][number % len(DURATIONS[row])]
            lanes[row].append((now, ready[row], str(number + 1)))
    return calls, lanes


#: Groups of bars: their heading, and for each bar its label and its figure; 1 is the yardstick.
SPEEDS = (
    (
        "Steps per second: 32 × CartPole in Python",
        (
            ("cartwheel", "process_async_32"),
            ("SyncVectorEnv", "sync_async_32"),
            ("AsyncVectorEnv", None),
        ),
    ),
    (
        "Steps per second: 1,024 × native CartPole",
        (
            ("cartwheel", "native_envpool_1024"),
            ("Gymnasium (NumPy)", "numpy_envpool_1024"),
            ("EnvPool", None),
        ),
    ),
)
#: Colors of text, of cartwheel and of the others, by theme.
THEMES = {"light": ("#1f2328", "#0f7c86", "#b4bbc3"), "dark": ("#e6edf3", "#3fb6bf", "#59626c")}


def speeds(theme: str) -> str:
    """Bars of steps per second, relative to the slowest of each group."""
    ink, own, other = THEMES[theme]
    left, full, pitch, height = 170, 280, 32, 22
    figures = json.loads((Path(__file__).parents[1] / "figures.json").read_text("utf-8"))["figures"]
    title = "Steps per second: cartwheel, Gymnasium and EnvPool"
    drawing = Drawing(520, 8 * pitch + 16, title)
    y = 6
    for heading, bars in SPEEDS:
        drawing.text(6, y + 20, f'<tspan font-weight="600">{heading}</tspan>', ink, "start")
        y += pitch
        values = [figures[name]["value"] if name else 1.0 for _, name in bars]
        for (label, _), value in zip(bars, values, strict=True):
            color = own if label == "cartwheel" else other
            width = full * value / max(values)
            drawing.text(left - 10, y + 17, label, ink, "end")
            drawing.box(left, y, width, height, color)
            words = f"{value:.0f} ×" if value >= 10 or value == 1 else f"{value:.1f} ×"
            drawing.text(left + width + 10, y + 17, words, ink, "start")
            y += pitch
        y += 10
    return drawing.svg()


def drawings() -> dict[str, str]:
    """The text of each file, by its name."""
    files = {f"autoreset_{mode}.svg": timeline(mode) for mode in TIMELINES}
    files |= {f"speed_{theme}.svg": speeds(theme) for theme in THEMES}
    return {**files, "one_step.svg": step(), "orders.svg": orders()}


def main(folder: Path) -> None:
    """Writes the files into a folder."""
    for name, text in drawings().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
