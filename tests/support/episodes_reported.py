"""Episodes counted one by one, in plain Python, to compare with the reports of wrappers."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import FAILED, INCOMPLETE, RESET, SHOWN, TRANSITION
from tests.support.wrapping import ENVIRONMENTS

FLAGS = ("success_once", "success_at_end", "fail_once", "fail_at_end")


class GoalEnv(gym.Env):
    """A walk that reports success in every step, and failure in some. The action 3 raises."""

    action_space = Discrete(4)
    observation_space = Box(-np.inf, np.inf, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.walk = 0, np.zeros(1)
        return self.walk.copy(), {"success": True, "options": str(options)}

    def step(self, action):
        if int(action) == 3:
            raise ValueError("chosen to fail")
        self.t += 1
        self.walk = self.walk + self.np_random.normal(size=1)
        info = {"success": bool(self.walk[0] > 0)}
        if self.t % 3:
            info["fail"] = bool(self.walk[0] < -1)
        terminated = bool(abs(self.walk[0]) > 2)
        return self.walk.copy(), float(self.walk[0]) + 0.1, terminated, self.t == 6, info


ENVIRONMENTS["goal"] = GoalEnv


def complete_episodes(trace):
    """The complete episodes of a trace, in order, each a dictionary."""
    episodes, present = [], None
    for moment in trace:
        if moment.what == "reset":
            present = new_episode()
        elif moment.what == "failed":
            present = None
        elif present is not None:
            count(present, moment.reward, moment.info)
            if moment.terminated or moment.truncated:
                flags = {"terminated": moment.terminated, "truncated": moment.truncated}
                episodes.append(present | flags)
                present = None
    return episodes


def without_episodes(traces):
    """Traces without the reports in their infos."""
    return [
        [
            one._replace(info={key: part for key, part in one.info.items() if key != "episode"})
            for one in trace
        ]
        for trace in traces
    ]


def new_episode():
    return {"return": 0.0, "episode_len": 0, **dict.fromkeys(FLAGS, False)}


def count(episode, reward, info):
    """Adds a step; ``info`` has arrays of one entry."""
    episode["return"] += reward
    episode["episode_len"] += 1
    for key in ("success", "fail"):
        said = bool(info[key][0]) if key in info else False
        episode[f"{key}_once"] |= said
        episode[f"{key}_at_end"] = said


class Kinds(VectorWrapper):
    """Keeps the kinds of the last batch, for a count that needs them."""

    kinds = None

    def transform(self, batch):
        self.kinds = batch.kinds.tolist()


class Running:
    """The values that each row has to show, by the kinds of its places."""

    def __init__(self, mode, num_envs):
        self.is_same_step = mode == gym.vector.AutoresetMode.SAME_STEP
        self.rows = [new_episode() for _ in range(num_envs)]
        self.stale = [False] * num_envs

    def show(self, row, kind, reward, over, info):
        """Values after a place, and whether a complete episode ended there."""
        if kind in (RESET, INCOMPLETE) or self.stale[row]:
            self.rows[row] = new_episode()
        self.stale[row] = False
        if kind == TRANSITION:
            count(self.rows[row], reward, info)
        assert kind in (RESET, INCOMPLETE, SHOWN, FAILED, TRANSITION)
        self.stale[row] = self.is_same_step and (over and kind in (TRANSITION, FAILED))
        return dict(self.rows[row]), over and kind == TRANSITION
