"""The adapters of trainers, each called as its trainer calls it, behind the same few methods."""

from __future__ import annotations

import importlib
import pickle
from typing import Any, NamedTuple

import numpy as np

import cartwheel
from tests.contract.model import OFF, SAME


class Found(NamedTuple):
    """The results of a step for a trainer; arrays of the rows that were stepped.

    Attributes:
        shown: The observations on which the policy acts next.
        after: The true next observations.
        rewards: Rewards.
        terminated: Flags.
        truncated: Flags.
    """

    shown: Any
    after: Any
    rewards: Any
    terminated: Any
    truncated: Any


class Trainer:
    """An adapter around rows.

    Args:
        env_fns: Functions that make the environments.
        **keywords: Of the vector environment.

    Attributes:
        envs: The vector environment.
    """

    mode = OFF
    #: Whether the trainer resets and steps some rows.
    has_rows = False

    def reset(self, seed=None):
        """Resets all rows; row ``i`` gets ``seed + i``. Returns their observations."""
        raise NotImplementedError

    def reset_rows(self, rows):
        """Resets some rows; returns their observations."""
        raise NotImplementedError

    def step(self, actions, rows=None):
        """Steps all rows or some."""
        raise NotImplementedError

    def pickle(self):
        """Must be refused."""
        pickle.dumps(self.adapter)

    def close(self):
        self.adapter.close()


class Sb3(Trainer):
    mode = SAME

    def __init__(self, env_fns, **keywords):
        self.adapter = importlib.import_module("cartwheel.sb3").CartwheelVecEnv(env_fns, **keywords)
        self.envs = self.adapter.vector_env

    def reset(self, seed=None):
        if seed is not None:
            self.adapter.seed(seed)
        return self.adapter.reset()

    def step(self, actions, rows=None):
        assert rows is None
        shown, rewards, done, infos = self.adapter.step(actions)
        self.check_infos(rewards, done, infos)
        truncated = done & [info["TimeLimit.truncated"] for info in infos]
        after = [
            info["terminal_observation"] if over else now
            for now, over, info in zip(shown, done, infos, strict=True)
        ]
        return Found(shown, np.array(after), rewards, done & ~truncated, truncated)

    def check_infos(self, rewards, done, infos):
        """Checks the infos of a step."""


class Monitored(Sb3):
    """With the returns of episodes in the infos."""

    def __init__(self, env_fns, **keywords):
        super().__init__(env_fns, monitor=True, **keywords)
        self.sums = np.zeros((len(env_fns), 2))

    def reset(self, seed=None):
        self.sums[:] = 0
        return super().reset(seed)

    def check_infos(self, rewards, done, infos):
        self.sums += np.stack([rewards, np.ones(len(rewards))], axis=1)
        for row, info in enumerate(infos):
            assert ("episode" in info) == (done[row] and "env_error" not in info)
            if "episode" in info:
                assert [info["episode"]["r"], info["episode"]["l"]] == self.sums[row].tolist()
        self.sums[done] = 0


class Skrl(Trainer):
    mode = SAME

    def __init__(self, env_fns, **keywords):
        skrl = importlib.import_module("cartwheel.skrl")
        wrap = importlib.import_module("skrl.envs.wrappers.torch").wrap_env
        self.envs = cartwheel.VectorEnv(env_fns, autoreset_mode="same_step", **keywords)
        self.adapter = wrap(self.envs, verbose=False)

        class Agent:
            def record_transition(self, **recorded):
                self.recorded = recorded

        class TrueAgent(skrl.TrueNextObservations, Agent):
            observation_space, device = self.adapter.observation_space, "cpu"

        self.agent = TrueAgent()

    def reset(self, seed=None):
        return self.envs.reset(seed=seed)[0]  # skrl's own reset is one for the whole training

    def step(self, actions, rows=None):
        assert rows is None
        torch = importlib.import_module("torch")
        step = self.adapter.step(torch.as_tensor(actions))
        names = ("next_observations", "rewards", "terminated", "truncated", "infos")
        self.agent.record_transition(**dict(zip(names, step, strict=True)))
        columns = [column.numpy().reshape(-1) for column in step[1:4]]
        return Found(step[0].numpy(), self.agent.recorded["next_observations"].numpy(), *columns)

    def pickle(self):
        pickle.dumps(self.envs)


class Tianshou(Trainer):
    has_rows = True

    def __init__(self, env_fns, **keywords):
        module = importlib.import_module("cartwheel.tianshou")
        self.adapter = module.CartwheelVectorEnv(env_fns, **keywords)
        self.envs = self.adapter._envs

    def reset(self, seed=None):
        if seed is None:
            return self.adapter.reset()[0]
        self.adapter.seed(seed)
        return None  # it shows nothing

    def reset_rows(self, rows):
        return self.adapter.reset(rows)[0]

    def step(self, actions, rows=None):
        shown, *columns, infos = self.adapter.step(actions, rows)
        wanted = range(len(shown)) if rows is None else rows
        assert [info["env_id"] for info in infos] == list(wanted)
        return Found(shown, shown, *columns)


class TorchRL(Trainer):
    has_rows = True

    def __init__(self, env_fns, **keywords):
        module = importlib.import_module("cartwheel.torchrl")
        self.torch = importlib.import_module("torch")
        self.tensordict = importlib.import_module("tensordict").TensorDict
        self.adapter = module.CartwheelEnv(env_fns, **keywords)
        self.envs = self.adapter._env
        self.shown = self.tensordict({}, [self.envs.num_envs])

    def reset(self, seed=None):
        if seed is not None:
            self.adapter.set_seed(seed)
            return None  # it shows nothing
        self.shown = self.adapter.reset()
        return self.shown["observation"].numpy()

    def reset_rows(self, rows):
        mask = np.isin(np.arange(self.envs.num_envs), rows).reshape(-1, 1)
        given = self.shown.clone()
        given["_reset"] = self.torch.as_tensor(mask)
        self.shown = self.adapter.reset(given)
        return self.shown["observation"].numpy()[rows]

    def step(self, actions, rows=None):
        given, every = self.shown.clone(), range(self.envs.num_envs)
        whole = np.zeros((len(every), *actions.shape[1:]), actions.dtype)
        whole[rows if rows is not None else every] = actions
        given["action"] = self.torch.as_tensor(whole)
        if rows is not None:
            given["_step"] = self.torch.as_tensor(np.isin(every, rows))
        found = self.adapter.step(given)["next"]
        self.shown = found.exclude("reward")
        names = ("reward", "terminated", "truncated")
        places = list(every) if rows is None else rows
        columns = [found[name].numpy().reshape(-1)[places] for name in names]
        shown = found["observation"].numpy()[places]
        return Found(shown, shown, *columns)


#: The adapters, by the names of their modules in ``cartwheel`` and what is special.
TRAINERS = {
    "sb3": Sb3,
    "sb3 with a monitor": Monitored,
    "skrl": Skrl,
    "tianshou": Tianshou,
    "torchrl": TorchRL,
}
