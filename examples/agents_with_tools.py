"""Agents that use tools, each with an environment of its own, in one program of ``asyncio``.

The environment is a small warehouse: a simulator in a process, whose methods are tools. A policy
chooses the next tool from what the last one returned. Here it is a few lines of Python behind an
``await``, instead of a language model that a server runs, so the program needs no network.
Some tools are slow, and some crash the simulator: the agent gets an answer that says so, and goes
on with a new one.

    python examples/agents_with_tools.py
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from typing import Any

import cartwheel


class Warehouse:
    """A simulator with tools. It is not a ``gymnasium.Env``: its ``reset`` returns a text."""

    def reset(self, seed: int | None = None) -> str:
        """Fills the shelves."""
        self.rng = random.Random(seed)
        self.shelves = {name: self.rng.randrange(1, 5) for name in ("bolts", "gears", "wires")}
        self.packed: dict[str, int] = {}
        return f"An order: pack two of each of {', '.join(self.shelves)}."

    def look(self) -> dict[str, int]:
        """Shows the shelves."""
        return dict(self.shelves)

    def pack(self, name: str) -> str:
        """Packs one piece."""
        if self.rng.random() < 0.03:
            os._exit(1)  # a robot simulator that crashes
        if not self.shelves[name]:
            return f"no {name} left"
        self.shelves[name] -= 1
        self.packed[name] = self.packed.get(name, 0) + 1
        return f"packed {name}"

    def reorder(self, name: str) -> str:
        """Waits for a delivery."""
        time.sleep(0.05)
        self.shelves[name] += 2
        return f"{name} arrived"

    def score(self) -> float:
        """The share of the order that is packed."""
        return sum(min(2, count) for count in self.packed.values()) / 6


async def policy(transcript: list[tuple[str, Any]]) -> tuple[str, tuple[str, ...]] | None:
    """Chooses a tool and its arguments; ``None`` to stop."""
    await asyncio.sleep(0.001)  # a language model answers
    packed: dict[str, int] = {"bolts": 0, "gears": 0, "wires": 0}
    for tool, answer in transcript:
        if tool == "pack" and answer.startswith("packed"):
            packed[answer.split()[1]] += 1
    last = transcript[-1][1]
    if isinstance(last, str) and last.startswith("no "):
        return "reorder", (last.split()[1],)
    missing = [name for name, count in packed.items() if count < 2]
    return ("pack", (missing[0],)) if missing else None


async def episode(envs: cartwheel.AwaitableEnvs, seed: int) -> tuple[float, int]:
    """Plays one episode in a free row; returns its score and how often the simulator crashed."""
    crashes = 0
    async with envs.acquire() as row:
        while True:
            prompt, _ = await row.reset(seed=seed + 1000 * crashes)
            transcript: list[tuple[str, Any]] = [("prompt", prompt)]
            try:
                while (chosen := await policy(transcript)) is not None:
                    tool, arguments = chosen
                    transcript.append((tool, await row.call(tool, *arguments)))
                return await row.call("score"), crashes
            except (cartwheel.WorkerDiedError, cartwheel.WorkerTimeoutError):
                crashes += 1  # the next reset makes another simulator


async def main(episodes: int = 40, rows: int = 4) -> list[tuple[float, int]]:
    """Plays many episodes at once, in as many simulators as there are rows."""
    start = time.perf_counter()
    async with cartwheel.AwaitableEnvs([Warehouse] * rows, timeout=10.0) as envs:
        ends = await asyncio.gather(*(episode(envs, seed) for seed in range(episodes)))
    scores, crashes = zip(*ends, strict=True)
    print(
        f"{episodes} episodes in {rows} simulators, {time.perf_counter() - start:.1f} s: "
        f"mean score {sum(scores) / episodes:.2f}, {sum(crashes)} crashes survived"
    )
    return ends


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    asyncio.run(main())
