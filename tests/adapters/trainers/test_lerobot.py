"""LeRobot's rollouts in worker processes. `make test-trainers` runs this file."""

import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector.sync_vector_env import SyncVectorEnv

import cartwheel
from tests.support.one_thread import one_thread

pytestmark = pytest.mark.trainers


class Reaching(gym.Env):
    """Succeeds where its position is near the goal; observations have LeRobot's keys."""

    render_mode = "rgb_array"
    task = "reach"
    task_description = "move to the goal"
    _max_episode_steps = 12  # its own, as LIBERO's environments have it, and no wrapper

    def __init__(self):
        space = gym.spaces.Box(-10, 10, (2,), np.float64)
        pixels = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)
        self.observation_space = gym.spaces.Dict(agent_pos=space, pixels=pixels)
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        super().reset(seed=seed)
        self.time = 0
        self.position = self.np_random.uniform(-6, 6, 2)
        return self.shown(), {"is_success": False}

    def step(self, action):
        self.position = self.position + np.asarray(action, np.float64)
        self.time += 1
        near = bool(np.abs(self.position).max() < 0.3)
        reward, late = -float(np.abs(self.position).sum()), self.time >= 12
        return self.shown(), reward, near, late, {"is_success": near}

    def shown(self):
        level = int(np.clip(100 + 20 * self.position[0], 0, 255))
        return {"agent_pos": self.position, "pixels": np.full((8, 8, 3), level, np.uint8)}

    def render(self):
        return self.shown()["pixels"]


@pytest.fixture
def rollout():
    """A rollout of LeRobot with a policy that moves toward the goal, seeing what it needs."""
    torch = one_thread()
    lerobot = importlib.import_module("lerobot.scripts.lerobot_eval").rollout

    class Policy(torch.nn.Module):
        def reset(self):
            self.tasks = []

        def select_action(self, batch):
            self.tasks.append(batch["task"])
            return -0.5 * batch["observation.state"].float().clamp(-2, 2)

    def unchanged(batch):
        return batch

    def run(envs, seeds):
        policy = Policy()
        told = lerobot(
            envs,
            policy,
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            seeds=seeds,
            return_observations=True,
        )
        return told, policy.tasks

    return run


def flat(told):
    """The tensors of a rollout by their names."""
    shown = told.pop("observation")
    return {**told, **shown}


@pytest.mark.parametrize("num_envs", [1, 5])
def test_a_rollout_is_that_of_gymnasiums_vector_environment(rollout, num_envs):
    workers = importlib.import_module("examples.trainers.lerobot_envs").WorkerEnvs
    seeds = list(range(20, 20 + num_envs))
    mode = gym.vector.AutoresetMode.SAME_STEP
    theirs = SyncVectorEnv([Reaching] * num_envs, autoreset_mode=mode)
    expected, tasks = rollout(theirs, seeds)
    theirs.close()
    expected = flat(expected)
    assert expected["success"].any()
    for envs in (
        workers([Reaching] * num_envs, autoreset_mode=mode),
        cartwheel.SyncVectorEnv([Reaching] * num_envs, autoreset_mode=mode),
    ):
        told, seen = rollout(envs, seeds)
        assert seen == tasks
        told = flat(told)
        assert told.keys() == expected.keys()
        for key, part in expected.items():
            assert (told[key] == part).all(), key
        frames = [each.render() for each in envs.envs]
        assert [frame.shape for frame in frames] == [(8, 8, 3)] * num_envs
        envs.close()


def test_its_factory_makes_worker_environments(rollout, monkeypatch):
    del rollout
    example = importlib.import_module("examples.trainers.lerobot_envs")
    factory = importlib.import_module("lerobot.envs.factory")
    configs = importlib.import_module("lerobot.envs.configs")
    monkeypatch.setattr(gym.vector, "AsyncVectorEnv", gym.vector.AsyncVectorEnv)  # put back later
    example.use_workers()
    gym.register("Reaching-v0", Reaching)
    monkeypatch.setattr(configs.PushtEnv, "gym_id", property(lambda _: "Reaching-v0"))
    monkeypatch.setattr(configs.PushtEnv, "gym_kwargs", property(lambda _: {}))
    envs = factory.make_env(configs.PushtEnv(), n_envs=3, use_async_envs=True)["pusht"][0]
    assert type(envs) is example.WorkerEnvs
    assert envs.autoreset_mode == gym.vector.AutoresetMode.SAME_STEP
    assert envs.reset(seed=1)[0]["agent_pos"].shape == (3, 2)
    envs.close()
    del gym.registry["Reaching-v0"]
