"""PPO that is killed by SIGKILL and goes on from its checkpoint: to the same weights, to the bit.

A checkpoint has everything that the next update depends on: the collector with its environments and
their wrappers, the networks, the optimizer, the number of updates, and the random numbers of torch,
NumPy and Python. It is written to another file, flushed to the disk and renamed, so that whenever
the program is killed, there is a whole checkpoint.

Run it with ``python -m examples.resume_ppo``: it trains without breaks, then with two, and compares
the weights. ``python -m examples.resume_ppo --checkpoint run.pt`` trains alone: kill it as often as
you like, and start it again. It needs torch.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cartwheel
from cartwheel.wrappers import NormalizeObservation, RecordMetrics
from examples.ppo import Agent, Settings, update

SETTINGS = Settings(num_envs=16, num_steps=32)


def save(path: Path, checkpoint: dict[str, Any]) -> None:
    """Replaces the file of a checkpoint by a whole new one, or not at all."""
    other = path.with_name(f"{path.name}.new")
    with other.open("wb") as file:
        torch.save(checkpoint, file)
        file.flush()
        os.fsync(file.fileno())
    other.replace(path)


def train(path: Path, updates: int) -> str:
    """Trains up to this number of updates, from a checkpoint if there is one.

    Returns:
        A digest of the weights.
    """
    torch.set_num_threads(1)  # sums of several threads may round differently in another run
    torch.manual_seed(SETTINGS.seed)
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", SETTINGS.num_envs)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters, lr=SETTINGS.learning_rate, eps=1e-5)
    collector = cartwheel.Collector(
        NormalizeObservation(RecordMetrics(envs)),
        agent.explore,
        SETTINGS.num_steps,
        seed=SETTINGS.seed,
        progress=False,
    )
    done = 0
    if path.exists():
        # A checkpoint has pickles of the environments: load your own files only.
        checkpoint = torch.load(path, weights_only=False)
        done = checkpoint["done"]
        collector.load_state_dict(checkpoint["collector"])
        agent.actor.load_state_dict(checkpoint["actor"])
        agent.critic.load_state_dict(checkpoint["critic"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        torch.set_rng_state(checkpoint["torch"])
        np.random.set_state(checkpoint["numpy"])  # noqa: NPY002 - of libraries that use it
        random.setstate(checkpoint["python"])
        print(f"goes on after {done} updates", flush=True)
    while done < updates:
        update(agent, optimizer, collector.collect(), SETTINGS)
        done += 1
        checkpoint = {
            "done": done,
            "collector": collector.state_dict(),
            "actor": agent.actor.state_dict(),
            "critic": agent.critic.state_dict(),
            "optimizer": optimizer.state_dict(),
            "torch": torch.get_rng_state(),
            "numpy": np.random.get_state(),  # noqa: NPY002 - of libraries that use it
            "python": random.getstate(),
        }
        save(path, checkpoint)
        print(f"saved {done} updates", flush=True)
    envs.close()
    weights = [parameter.detach().numpy().tobytes() for parameter in agent.parameters]
    return hashlib.sha256(b"".join(weights)).hexdigest()


def run(path: Path, updates: int, kill_after: int | None = None) -> str:
    """Trains in another process; kills it once it has saved some updates.

    Returns:
        The last line that it printed.
    """
    command = [sys.executable, "-m", "examples.resume_ppo", "--checkpoint", str(path)]
    command += ["--updates", str(updates)]
    lines = []
    root = Path(__file__).parents[1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1] == f"saved {kill_after} updates":
                process.kill()  # SIGKILL: it cannot save anything more
    if process.returncode != 0 and kill_after is None:
        raise RuntimeError(f"the training ended with code {process.returncode}: {lines}")
    return lines[-1]


def compare(folder: Path, updates: int, kills: tuple[int, ...]) -> tuple[str, str]:
    """Returns the weights of a training without a break, and of one that was killed."""
    whole = run(folder / "whole.pt", updates)
    for kill_after in kills:
        run(folder / "killed.pt", updates, kill_after)
    return whole, run(folder / "killed.pt", updates)


def main() -> None:
    """Trains alone, or compares the two trainings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, help="train alone, with this file")
    parser.add_argument("--updates", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.checkpoint is not None:
        print(f"weights {train(arguments.checkpoint, arguments.updates)}")
        return
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = compare(Path(folder), arguments.updates, (3, 9))
    print(f"without a break: {whole}")
    print(f"killed twice:    {killed}")
    print("the same bits" if whole == killed else "other bits")


if __name__ == "__main__":
    main()
