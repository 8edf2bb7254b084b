"""An environment of several agents stepped alone, in each autoreset mode, by PettingZoo's rules."""

import copy

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, create_empty_array, iterate
from pettingzoo.utils.conversions import aec_to_parallel, turn_based_aec_to_parallel

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def parallel(env):
    """The parallel environment, by PettingZoo's conversion for one whose agents take turns."""
    if not hasattr(env, "agent_iter"):
        return env
    return (
        aec_to_parallel(env)
        if env.metadata.get("is_parallelizable")
        else turn_based_aec_to_parallel(env)
    )


class Shown(dict):
    """Columns of each agent of a row: ``observation``, ``present``, ``acted``, ``reward``, …"""

    over = False
    final = None


class Alone:
    """One row."""

    def __init__(self, made, mode):
        self.env, self.mode = parallel(made), mode
        self.over = False

    def reset(self, seed=None, options=None):
        observations, infos = copy.deepcopy(self.env.reset(seed=seed, options=options))
        self.over = False
        agents = list(self.env.agents)
        return self.shown(observations, [], agents, {}, {}, {}, infos)

    def step(self, actions):
        if self.over and self.mode == AutoresetMode.NEXT_STEP:
            return self.reset()
        before = list(self.env.agents)
        results = self.env.step({name: copy.deepcopy(actions[name]) for name in before})
        results = copy.deepcopy(results)
        after = list(self.env.agents)
        shown = self.shown(results[0], before, after, *results[1:])
        shown.over = self.over = not after
        if self.over and self.mode == AutoresetMode.SAME_STEP:
            last, shown = shown, self.reset()
            for name, of_last in last.items():
                columns = ("acted", "reward", "terminated", "truncated")
                shown[name].update({column: of_last[column] for column in columns})
            shown.over, shown.final = True, last
        return shown

    def shown(self, observations, before, after, rewards, terminations, truncations, infos):
        shown = Shown()
        for name in self.env.possible_agents:
            present = name in observations and (name in before or name in after)
            acted = name in before
            shown[name] = {
                "observation": observations[name] if present else None,
                "present": present,
                "acted": acted,
                "reward": float(rewards.get(name, 0)) if acted else 0.0,
                "terminated": acted and bool(terminations.get(name, False)),
                "truncated": acted and bool(truncations.get(name, False)),
                "info": infos.get(name, {}) if acted or name in after else {},
            }
        return shown


def blank(space):
    """Zeros, in the form of a value of the space."""
    empty = create_empty_array(space, n=1)
    return next(iter(iterate(batch_space(space, 1), empty)))


def check_observations(observations, space, rows, context):
    """Checks a batch of observations of one agent; ``None`` stands for an absent one."""
    found = list(iterate(batch_space(space, len(rows)), observations))
    assert len(found) == len(rows), context
    for row, (one, alone) in enumerate(zip(found, rows, strict=True)):
        check_equal(one, blank(space) if alone is None else alone, (context, row))


def check_equal(one, other, context):
    if isinstance(other, dict):
        assert one.keys() == other.keys(), context
        for key in other:
            check_equal(one[key], other[key], (*context, key))
    elif isinstance(other, tuple):
        for key, parts in enumerate(zip(one, other, strict=True)):
            check_equal(*parts, (*context, key))
    elif isinstance(other, str):
        assert one == other, context
    else:
        expected = np.asarray(other)
        assert np.array_equal(np.asarray(one), expected.astype(np.asarray(one).dtype)), context


def check_reset(envs, result, rows):
    observations, infos = result
    assert list(observations) == list(envs.possible_agents)
    assert "episode_over" not in infos
    for name in envs.possible_agents:
        assert not infos["acted"][name].any()
        check_agent(envs, observations, infos, rows, name)


def check_step(envs, result, rows):
    """Checks the results of a step against those of each row alone."""
    observations, rewards, terminations, truncations, infos = result
    assert infos["episode_over"].tolist() == [row.over for row in rows]
    assert infos["episode_over"].dtype == np.bool_
    for by_agent in (observations, rewards, terminations, truncations, infos["present"]):
        assert list(by_agent) == list(envs.possible_agents)
    for name in envs.possible_agents:
        check_agent(envs, observations, infos, rows, name)
        columns = {
            "reward": rewards[name],
            "terminated": terminations[name],
            "truncated": truncations[name],
            "acted": infos["acted"][name],
        }
        for column, found in columns.items():
            assert found.tolist() == [row[name][column] for row in rows], (name, column)
        assert rewards[name].dtype == np.float64
        assert terminations[name].dtype == truncations[name].dtype == np.bool_
    check_finals(envs, infos, rows)


def check_agent(envs, observations, infos, rows, name):
    space = envs.single_observation_space[name]
    assert infos["present"][name].tolist() == [row[name]["present"] for row in rows], name
    shown = [row[name]["observation"] for row in rows]
    check_observations(observations[name], space, shown, name)
    check_infos(infos.get(name, {}), [row[name]["info"] for row in rows], name)


def check_finals(envs, infos, rows):
    if not any(row.final for row in rows):
        assert "final_obs" not in infos
        assert "final_info" not in infos
        return
    for name in envs.possible_agents:
        mask = [row.final is not None and row.final[name]["present"] for row in rows]
        assert infos["_final_obs"][name].tolist() == mask, name
        space = envs.single_observation_space[name]
        found = list(iterate(batch_space(space, len(rows)), infos["final_obs"][name]))
        for row, shown in enumerate(rows):
            if mask[row]:
                alone = shown.final[name]["observation"]
                check_equal(found[row], alone, (name, row, "final"))
        finals = [{} if row.final is None else row.final[name]["info"] for row in rows]
        check_infos(infos["final_info"].get(name, {}), finals, name)


def check_infos(batch, infos, name):
    """Checks a batch of infos of one agent against those of each row."""
    keys = {key for info in infos for key in info}
    assert {key for key in batch if f"_{key}" in batch} == keys, (name, batch)
    for key in keys:
        assert batch[f"_{key}"].tolist() == [key in info for info in infos], (name, key)
        if isinstance(batch[key], dict):
            check_infos(batch[key], [info.get(key, {}) for info in infos], (name, key))
            continue
        for row, info in enumerate(infos):
            if key in info:
                check_equal(batch[key][row], info[key], (name, key, row))


def sampled(envs, rng):
    """Actions of all agents, the same for each seed of ``rng``."""
    envs.action_space.seed(int(rng.integers(1 << 30)))
    return envs.action_space.sample()


def of_row(envs, actions, row):
    """The actions of one row, by agent."""
    return {
        name: list(iterate(envs.action_space[name], actions[name]))[row]
        for name in envs.possible_agents
    }


def play(envs, made, steps, seed=3):
    """Steps a batch and each environment alone, and compares everything; returns ended rows."""
    mode, rng = envs.autoreset_mode, np.random.default_rng(seed)
    alone = [Alone(env, mode) for env in made]
    check_reset(envs, envs.reset(seed=seed), [row.reset(seed + i) for i, row in enumerate(alone)])
    ended = 0
    for _ in range(steps):
        actions = sampled(envs, rng)
        rows = [row.step(of_row(envs, actions, i)) for i, row in enumerate(alone)]
        result = envs.step(actions)
        check_step(envs, result, rows)
        over = result[4]["episode_over"]
        ended += int(over.sum())
        if mode == AutoresetMode.DISABLED and over.any():
            shown = [row.reset() if over[i] else repeated(rows[i]) for i, row in enumerate(alone)]
            check_reset(envs, envs.reset(options={"reset_mask": over}), shown)
    return ended


def repeated(row):
    """The columns of a row that a masked reset leaves alone."""
    shown = Shown()
    for name, columns in row.items():
        shown[name] = columns | {"info": {}}
    return shown
