"""Compares one real environment in worker processes with Gymnasium's loop over the same one.

    python -m tests.zoo.cells ALE/Pong-v5 --share 0.2

prints a line of JSON for each autoreset mode, and one for rendered frames. Each environment has a
program of its own, because some of these packages leave threads, descriptors and contexts behind.
"""

import argparse
import json
import os
import warnings

os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel import envpool
from tests.support.comparison import assert_identical, count_values
from tests.zoo.environments import CASES, PLAYERS, Players

NUM_ENVS, NUM_WORKERS = 3, 2
SEEDS = (1, 77)
N, S, D = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


class EpisodeCounter:
    """The compared values."""

    def __init__(self):
        self.values = self.episodes = 0

    def compare(self, actual, expected, where):
        assert_identical(actual, expected, where)
        self.values += count_values(expected)
        if len(expected) == 5:
            self.episodes += int((expected[2] | expected[3]).sum())


def compare_vectors(envs, oracle, steps):
    """Resets and steps both; returns what was compared."""
    tally = EpisodeCounter()

    def reset(seed=None, mask=None):
        both = (None if mask is None else {"reset_mask": mask.copy()} for _ in range(2))
        results = [each.reset(seed=seed, options=next(both)) for each in (envs, oracle)]
        tally.compare(*results, "reset")

    oracle.action_space.seed(3)
    for seed in SEEDS:
        reset(seed)
        for step in range(steps):
            actions = oracle.action_space.sample()
            results = envs.step(actions), oracle.step(actions)
            tally.compare(*results, f"step {step} after the seed {seed}")
            over = results[1][2] | results[1][3]
            if oracle.metadata["autoreset_mode"] is D and over.any():
                reset(mask=over)
    reset()
    reset([5, None, 7])
    reset(9, np.arange(NUM_ENVS) == 1)
    return tally


def vectors(case, mode, *, alike=False, **keywords):
    """Worker processes, or with ``alike`` another loop of Gymnasium, and the oracle."""
    fns = [lambda: case(**keywords)] * NUM_ENVS
    if alike:
        envs = SyncVectorEnv(fns, autoreset_mode=mode)
    else:
        envs = cartwheel.VectorEnv(
            fns, executor="process", num_workers=NUM_WORKERS, autoreset_mode=mode
        )
    return envs, SyncVectorEnv(fns, autoreset_mode=mode)


def compare_frames(case):
    """The same frames from ``render`` after a reset and after a step."""
    tally = EpisodeCounter()
    envs, oracle = vectors(case, N, render_mode="rgb_array")
    for each in (envs, oracle):
        each.reset(seed=4)
    tally.compare(envs.render(), oracle.render(), "the frame of a reset")
    oracle.action_space.seed(5)
    actions = oracle.action_space.sample()
    for each in (envs, oracle):
        each.step(actions)
    tally.compare(envs.render(), oracle.render(), "the frame of a step")
    close(envs, oracle)
    return tally


class Alone:
    """One parallel environment, stepped by its own methods, as rows of its players."""

    def __init__(self, case):
        self.env = case()
        self.spaces = list(map(self.env.action_space, self.env.possible_agents))
        self.over = False

    def reset(self, seed=None):
        observations, _ = self.env.reset(seed=seed)
        self.over = False
        return self._rows(self.env.agents, observations, {}, {}, {})

    def step(self, actions):
        """``actions`` by number of the player."""
        acting = list(self.env.agents)
        by_name = {agent: actions[self.number(agent)] for agent in acting}
        observations, rewards, terminations, truncations, _ = self.env.step(by_name)
        self.over = not self.env.agents
        return self._rows(acting, observations, rewards, terminations, truncations)

    def number(self, agent):
        return self.env.possible_agents.index(agent)

    def _rows(self, agents, observations, rewards, terminations, truncations):
        return [
            (
                self.number(agent),
                observations[agent],
                float(rewards.get(agent, 0)),
                bool(terminations.get(agent, False)),
                bool(truncations.get(agent, False)),
            )
            for agent in sorted(agents, key=self.number)
        ]


def in_the_pools_form(observation):
    """An observation with the dtype that EnvPool's interface has: integers are ``int32``."""
    array = np.asarray(observation)
    return array.astype(np.int32) if array.shape == () else array


def rows_of(result, env_id):
    """The rows of the players of one environment in a batch of ``cartwheel.envpool``."""
    observations, info, players = result[0], result[-1], result[-1]["players"]
    places = (players["env_id"] == env_id).nonzero()[0]
    assert env_id in info["env_id"]
    rewards = result[1] if len(result) == 5 else np.zeros(len(observations), np.float32)
    flags = players["terminated"], players["truncated"]
    return [
        (int(players["id"][at]), observations[at], rewards[at], *(bool(flag[at]) for flag in flags))
        for at in places
    ]


def make_players(case, mode, **keywords):
    """Makes a pool of environments of PettingZoo."""
    task = f"zoo/{case}-{mode.name.title()}-v0"
    envpool.register(task, case, parallel=True)
    return envpool.make(
        task, num_envs=NUM_ENVS, executor="process", autoreset_mode=mode, **keywords
    )


def refusal_of_players(case, mode):
    """The outcome of a mode that pools of players do not have."""
    try:
        make_players(case, mode).close()
    except ValueError as error:
        return {"cell": mode.value, "refused": str(error)}
    return {"cell": mode.value, "error": "it was not refused"}


def compare_players(case, mode, steps):
    """Batches of a pool, with the players of environments that are stepped one by one."""
    tally = EpisodeCounter()
    seeds = [2, 30, 31]
    envs = make_players(case, mode, seed=seeds)
    alone = [Alone(case) for _ in seeds]
    for space in alone[0].spaces:
        space.seed(6)

    def check(result, env_id, expected, where):
        got = rows_of(result, env_id)
        assert len(got) == len(expected), f"{where}: {len(got)} players, not {len(expected)}"
        for ours, theirs in zip(got, expected, strict=True):
            reward = np.asarray(theirs[2], ours[2].dtype)
            assert_identical(np.asarray(ours[1]), in_the_pools_form(theirs[1]), where)
            assert_identical(np.asarray(ours[2]), reward, where)
            assert (ours[0], *ours[3:]) == (theirs[0], *theirs[3:]), where
            tally.values += np.size(theirs[1]) + 4

    result = envs.reset()
    for env_id, seed in enumerate(seeds):
        check(result, env_id, alone[env_id].reset(seed), "reset")
    for step in range(steps):
        players = result[-1]["players"]
        actions = [alone[0].spaces[number].sample() for number in players["id"]]
        own = [{}, {}, {}]
        for env_id, number, action in zip(players["env_id"], players["id"], actions, strict=True):
            own[env_id][number] = action
        result = envs.step(np.array(actions))
        for env_id, env in enumerate(alone):
            expected = env.reset() if env.over else env.step(own[env_id])
            check(result, env_id, expected, f"step {step}")
            tally.episodes += env.over
        over = [env_id for env_id, env in enumerate(alone) if env.over]
        if mode is D and over:
            again = envs.reset(np.array(over))
            for env_id in over:
                check(again, env_id, alone[env_id].reset(), f"reset after step {step}")
            result = joined(result, again, over)
    envs.close()
    return tally


def joined(result, again, over):
    """The players that act next: those of a reset instead of those that are over."""
    parts = [(result[-1]["players"], False), (again[-1]["players"], True)]
    numbers, owners = [], []
    for env_id in range(NUM_ENVS):
        players, _ = parts[env_id in over]
        own = players["env_id"] == env_id
        numbers.append(players["id"][own])
        owners.append(players["env_id"][own])
    players = {"id": np.concatenate(numbers), "env_id": np.concatenate(owners)}
    return (*result[:-1], {"players": players})


def close(*vectors):
    for each in vectors:
        each.close()


def outcome_of(name, compare, again=None):
    """The outcome as a dictionary; ``again`` says whether the oracle differs from itself, too."""
    try:
        tally = compare()
    except Exception as error:
        told = {"cell": name, "error": f"{type(error).__name__}: {error}"}
        if again is not None:
            try:
                again()
            except AssertionError as itself:
                told["itself"] = str(itself)
        return told
    return {"cell": name, "values": tally.values, "episodes": tally.episodes}


def run(case, mode, steps, *, alike=False):
    envs, oracle = vectors(case, mode, alike=alike)
    try:
        return compare_vectors(envs, oracle, steps)
    finally:
        close(envs, oracle)


def cells(case, share):
    """The outcomes of a case, one after the other."""
    steps = max(int(case.steps * share), 8)
    if isinstance(case, Players):
        for mode in (N, D):
            yield outcome_of(mode.value, lambda mode=mode: compare_players(case, mode, steps))
        yield refusal_of_players(case, S)
        return
    for mode in AutoresetMode:
        yield outcome_of(
            mode.value,
            lambda mode=mode: run(case, mode, steps),
            lambda mode=mode: run(case, mode, steps, alike=True),
        )
    yield outcome_of("frames", lambda: compare_frames(case))


def main():
    by_id = {str(case): case for case in [*CASES, *PLAYERS]}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env_id", choices=by_id)
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of the case")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of these packages
    case = by_id[arguments.env_id]
    if case.name == "ViZDoom":  # the first game of a folder writes a file, which others need
        first = case()
        first.reset()
        first.close()
    for told in cells(case, arguments.share):
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
