"""Rollouts of simulated episodes: the same episodes as each autoreset mode shows them."""

import dataclasses
from functools import partial

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode

FROZEN = "FROZEN"
"""``DISABLED`` with ``on_done="freeze"``."""

MODES = ("NEXT_STEP", "SAME_STEP", "DISABLED", FROZEN)
LONGEST = 5


@dataclasses.dataclass
class Episode:
    """Transitions ``states[k] -> states[k + 1]``; states are numbers, unique to the episode."""

    states: list
    rewards: list
    terminated: bool
    truncated: bool

    def __len__(self):
        return len(self.rewards)


def episodes(seed, env):
    """The episodes of one environment, one after another, the same in every mode."""
    rng = np.random.default_rng((seed, env))
    state = 10_000 * env
    while True:
        length = int(rng.integers(1, LONGEST + 1))
        flags = [(True, False), (False, True), (False, True), (True, True)][rng.integers(4)]
        states = list(range(state, state + length + 1))
        yield Episode(states, list(rng.normal(size=length)), *flags)
        state += length + 1


@dataclasses.dataclass
class Row:
    """One step of one environment in a rollout; ``transition`` is for the oracle."""

    state: int
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    final: int | None = None
    transition: tuple | None = (
        None  # the episode, its number and the step in it; None for a stale row
    )


def rows(mode, seed, env):
    """The rows of one environment, an infinite stream."""
    for number, episode in enumerate(episodes(seed, env)):
        for k in range(len(episode)):
            row = Row(episode.states[k], episode.rewards[k], transition=(episode, number, k))
            if k == len(episode) - 1:
                row.terminated, row.truncated = episode.terminated, episode.truncated
                row.final = episode.states[-1] if mode in ("SAME_STEP", "DISABLED") else None
            yield row
        if mode == "NEXT_STEP":
            yield Row(episode.states[-1])
        while mode == FROZEN:
            yield Row(episode.states[-1], 0.0, episode.terminated, episode.truncated)


class Rollout:
    """Rows ``[T, N]`` and the observations after them, as a program would record them.

    ``table`` has one number per kind and state, so a state has the same value in every mode.
    """

    def __init__(self, mode, grid, after, prev_done, table):
        self.mode, self.grid, self.prev_done = mode, grid, prev_done
        self.table = table
        self.states = np.array([[row.state for row in step] for step in [*grid, after]])
        self.rewards = self._cells("reward", float)
        self.terminated = self._cells("terminated", bool)
        self.truncated = self._cells("truncated", bool)
        self.stale = np.array([[row.transition is None for row in step] for step in grid])

    def _cells(self, name, dtype):
        return np.array([[getattr(row, name) for row in step] for step in self.grid], dtype)

    @property
    def over(self):
        return self.terminated | self.truncated

    @property
    def mode_arguments(self):
        """``autoreset_mode`` and ``on_done``."""
        if self.mode == FROZEN:
            return {"autoreset_mode": AutoresetMode.DISABLED, "on_done": "freeze"}
        return {"autoreset_mode": self.mode}

    def of_states(self, kind):
        """The numbers in the table for the observations before each step, ``[T, N]``."""
        return self.table[kind][self.states[:-1]]

    def finals(self, kind, bootstrap="truncated"):
        """The numbers in the table for the final observations that are needed, and their rows."""
        needed = {
            "truncated": self.truncated & ~self.terminated,
            "always": self.over,
            "never": np.zeros_like(self.over),
        }
        index = np.array(
            [
                (t, env)
                for t, step in enumerate(self.grid)
                for env, row in enumerate(step)
                if row.final is not None and needed[bootstrap][t, env]
            ],
            int,
        ).reshape(-1, 2)
        states = [self.grid[t][env].final for t, env in index]
        return self.table[kind][np.array(states, int)], index

    def with_stale(self, array, content):
        """The array with ``content`` in its stale rows."""
        return np.where(self.stale, np.asarray(content, array.dtype), array)

    def runs(self):
        """Consecutive rows of one episode: the environment, the steps and their transitions."""
        for env in range(len(self.grid[0])):
            run = []
            for t, step in enumerate(self.grid):
                row = step[env]
                if row.transition is None or (run and run[-1][1][1] != row.transition[1]):
                    if run:
                        yield env, run
                    run = []
                if row.transition is not None:
                    run.append((t, row.transition))
            if run:
                yield env, run


def number_table(seed, num_envs, kinds):
    """Random numbers for every state, by kind."""
    rng = np.random.default_rng(seed)
    return {kind: draw(rng, 10_000 * num_envs) for kind, draw in kinds.items()}


KINDS = {
    "value": lambda rng, count: rng.normal(size=count),
    "q_value": lambda rng, count: rng.normal(size=count),
    "expected_q": lambda rng, count: rng.normal(size=count),
    "ratio": lambda rng, count: rng.lognormal(size=count),
    "gamma": lambda rng, count: rng.uniform(0.5, 1, count),
    "lam": lambda rng, count: rng.uniform(0, 1, count),
}


def rollouts(mode, steps, count, *, num_envs=5, seed=0, alike=()):
    """Consecutive rollouts of ``steps`` rows; kinds in ``alike`` have one number for all states."""
    table = number_table(seed, num_envs, KINDS)
    for kind in alike:
        table[kind][:] = table[kind][0]
    streams = [rows(mode, seed, env) for env in range(num_envs)]
    step = [next(stream) for stream in streams]
    prev_done = np.zeros(num_envs, bool)
    for _ in range(count):
        grid = []
        for _ in range(steps):
            grid.append(step)
            step = [next(stream) for stream in streams]
        rollout = Rollout(mode, grid, step, prev_done, table)
        prev_done = rollout.over[-1]
        yield rollout


class SimulatedEnv(gym.Env):
    """Plays the episodes of one environment; the observation is the state's number."""

    action_space = Discrete(1000)
    observation_space = Box(0, np.inf, (1,), np.float64)

    def __init__(self, seed, env):
        self.stream = episodes(seed, env)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        super().reset(seed=seed)
        self.episode, self.k = next(self.stream), 0
        return self.observe(), {}

    def step(self, action):  # noqa: ARG002 - Gymnasium's signature
        reward = self.episode.rewards[self.k]
        self.k += 1
        over = self.k == len(self.episode)
        flags = over and self.episode.terminated, over and self.episode.truncated
        return self.observe(), reward, *flags, {}

    def observe(self):
        return np.array([self.episode.states[self.k]], float)


def simulated_envs(num_envs, seed=0):
    """Functions that build a :class:`SimulatedEnv` each."""
    return [partial(SimulatedEnv, seed, env) for env in range(num_envs)]
