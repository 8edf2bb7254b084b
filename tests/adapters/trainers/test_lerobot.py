"""LeRobot's rollouts and evaluations in worker processes. `make test-trainers` runs this file."""

import functools
import importlib
import multiprocessing
import os
import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel._cartwheel import usable_cpus
from tests.support.one_thread import one_thread

# Before MuJoCo is imported, here or in the server of worker processes: frames without a display.
os.environ.setdefault("MUJOCO_GL", "egl")
pytestmark = [
    pytest.mark.trainers,
    pytest.mark.timeout(900),  # a worker process imports LeRobot
    pytest.mark.filterwarnings("default"),  # of LeRobot and of the environments
]
EXAMPLE = Path(__file__).parents[3] / "examples/trainers/lerobot_eval.py"


class Reaching(gym.Env):
    """Succeeds where its position is near the goal; observations have LeRobot's keys."""

    metadata = {"render_fps": 10}  # noqa: RUF012 - Gymnasium's attribute
    render_mode = "rgb_array"
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


class Described(Reaching):
    """Says what its task is; most environments of LeRobot do."""

    task = "reach"
    task_description = "move to the goal"


def short_metaworld():
    """An environment of Meta-World, whose rollouts end after five steps."""
    metaworld = importlib.import_module("lerobot.envs.metaworld")
    env = metaworld.MetaworldEnv(task="push-v3", obs_type="pixels_agent_pos")
    env._max_episode_steps = 5
    return env


def unchanged(batch):
    return batch


@pytest.fixture(scope="module")
def lerobot_eval():
    """LeRobot's module of rollouts and evaluations; its workers start quickly."""
    one_thread()
    forkserver._forkserver._stop()  # which other tests may have used
    modules = ["lerobot.scripts.lerobot_eval", "gym_pusht", "gym_aloha", "lerobot.envs.metaworld"]
    multiprocessing.set_forkserver_preload(modules)
    forkserver.ensure_running()
    return importlib.import_module("lerobot.scripts.lerobot_eval")


@pytest.fixture(scope="module")
def policy_of(lerobot_eval):
    """Makes policies of LeRobot's class that are functions of the state."""
    del lerobot_eval
    torch = importlib.import_module("torch")
    pretrained = importlib.import_module("lerobot.policies.pretrained")

    class Policy(pretrained.PreTrainedPolicy):
        config_class, name = object, "straight"

        def __init__(self, action):
            torch.nn.Module.__init__(self)
            self.action, self.tasks, self.processes = action, [], []

        def reset(self):
            pass

        def select_action(self, batch):
            self.tasks.append(batch["task"])
            self.processes.append(len(multiprocessing.active_children()))
            return self.action(batch["observation.state"].float())

        def predict_action_chunk(self, batch):
            raise NotImplementedError

        forward = get_optim_params = predict_action_chunk

    return Policy


def toward_goal(state):
    return -0.5 * state.clamp(-2, 2)


def moving(state, *, dimensions, scale, middle):
    """Actions that differ by row and step."""
    torch = importlib.import_module("torch")
    phases = torch.arange(1, dimensions + 1)
    return middle + scale * torch.sin(state.sum(1, keepdim=True) * phases)


def rolled_out(lerobot_eval, envs, policy, seeds):
    """The tensors of a rollout by their names, and the tasks that the policy saw."""
    told = lerobot_eval.rollout(
        envs, policy, *[unchanged] * 4, seeds=seeds, return_observations=True
    )
    observations = told.pop("observation")
    return told | observations, policy.tasks


def assert_equal(found, expected):
    tensors, tasks = found
    assert tasks == expected[1]
    assert tensors.keys() == expected[0].keys()
    for key, part in expected[0].items():
        assert tensors[key].dtype == part.dtype, key
        assert tensors[key].shape == part.shape, key
        assert (tensors[key] == part).all(), key


def lazy(env_fns):
    """LeRobot's environments, which start their processes when they are used."""
    return importlib.import_module("lerobot.envs.utils")._LazyAsyncVectorEnv(env_fns)


def in_same_step(vector_env, env_fns):
    return vector_env(env_fns, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)


@pytest.mark.parametrize("num_envs", [2, 5])
def test_a_rollout_of_lazy_environments_is_that_of_gymnasiums_class(
    lerobot_eval, policy_of, num_envs
):
    seeds = list(range(20, 20 + num_envs))
    results = []
    for patch in (False, True):
        envs = lazy([Described] * num_envs)
        with cartwheel.patch_gymnasium() as patched:
            if not patch:
                patched.restore()
            policy = policy_of(toward_goal)
            # The second rollout begins where rows are over and frozen.
            results.append([rolled_out(lerobot_eval, envs, policy, seeds) for _ in range(2)])
            assert isinstance(envs._env, cartwheel.AsyncVectorEnv) == patch
            envs.close()
    expected, found = results
    assert expected[0][0]["success"].any()
    for ours, theirs in zip(found, expected, strict=True):
        assert_equal(ours, theirs)


@pytest.mark.parametrize("vector_env", [cartwheel.AsyncVectorEnv, cartwheel.SyncVectorEnv])
def test_environments_without_a_task_are_played_as_by_gymnasiums_sync_vector_env(
    lerobot_eval, policy_of, vector_env
):
    results = []
    for kind in (gym.vector.SyncVectorEnv, vector_env):
        envs = in_same_step(kind, [Reaching] * 3)
        results.append(rolled_out(lerobot_eval, envs, policy_of(toward_goal), [1, 2, 3]))
        envs.close()
    assert results[0][1][0] == [""] * 3
    assert_equal(results[1], results[0])


def test_an_evaluation_has_the_same_episodes_and_processes_of_one_task_at_a_time(
    lerobot_eval, policy_of, tmp_path
):
    results = []
    for patch in (False, True):
        with cartwheel.patch_gymnasium() as patched:
            if not patch:
                patched.restore()
            policy = policy_of(toward_goal)
            tasks = {"suite": {number: lazy([Described] * 3) for number in range(2)}}
            evaluated = lerobot_eval.eval_policy_all(
                tasks,
                policy,
                *[unchanged] * 4,
                n_episodes=6,
                start_seed=7,
                max_episodes_rendered=2,
                videos_dir=tmp_path / str(patch),
            )
        assert max(policy.processes) <= (min(3, usable_cpus()) if patch else 3)
        videos = [Path(path) for path in evaluated["overall"]["video_paths"]]
        results.append(
            (
                [one["metrics"]["sum_rewards"] for one in evaluated["per_task"]],
                [one["metrics"]["successes"] for one in evaluated["per_task"]],
                [path.read_bytes() for path in videos],
            )
        )
    assert len(results[0][2]) == 4
    assert results[1] == results[0]


def test_environments_of_other_packages_are_equal_to_the_bit(lerobot_eval, policy_of):
    configs = importlib.import_module("lerobot.envs.configs")
    factory = importlib.import_module("lerobot.envs.factory")
    for config, dimensions, scale, middle in (
        (configs.PushtEnv(episode_length=6), 2, 200, 256),
        (configs.AlohaEnv(episode_length=4), 14, 0.2, 0.0),
    ):
        action = functools.partial(moving, dimensions=dimensions, scale=scale, middle=middle)
        results = []
        for kind, patch in (("sync", False), ("async", True)):
            with cartwheel.patch_gymnasium() as patched:
                if not patch:
                    patched.restore()
                made = factory.make_env(config, n_envs=3, use_async_envs=kind == "async")
            envs = made[config.type][0]
            assert isinstance(envs, cartwheel.AsyncVectorEnv) == patch
            tensors, tasks = rolled_out(lerobot_eval, envs, policy_of(action), [4, 5, 6])
            # The last observation is that of an autoreset, for which ALOHA draws new entropy.
            if "observation.images.top" in tensors:
                tensors["observation.images.top"] = tensors["observation.images.top"][:, :-1]
            results.append((tensors, tasks))
            envs.close()
        assert_equal(results[1], results[0])


def test_meta_world_is_equal_to_the_bit(lerobot_eval, policy_of):
    action = functools.partial(moving, dimensions=4, scale=1.0, middle=0.0)
    results = []
    for patch in (False, True):
        with cartwheel.patch_gymnasium() as patched:
            if not patch:
                patched.restore()
            envs = lazy([short_metaworld] * 3)
            results.append(rolled_out(lerobot_eval, envs, policy_of(action), [4, 5, 6]))
            envs.close()
    assert_equal(results[1], results[0])


def test_the_example_takes_the_arguments_of_lerobot_eval():
    run = subprocess.run(
        [sys.executable, EXAMPLE, "--help"], capture_output=True, text=True, timeout=600, check=True
    )
    assert "--eval.batch_size" in run.stdout
    example = importlib.import_module("examples.trainers.lerobot_eval")
    assert example.preload(["--env.type=pusht", "--seed=3"]) == [
        "lerobot.scripts.lerobot_eval",
        "gym_pusht",
    ]
