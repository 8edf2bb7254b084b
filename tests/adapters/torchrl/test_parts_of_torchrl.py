"""TorchRL's transforms, rollouts, compilation and collectors in processes work as they do."""

import gc
import multiprocessing
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel.wrappers as wrap
from tests.support.cases import POLE, Case
from tests.support.environments import transcripts
from tests.support.executors import NATIVE

pytestmark = pytest.mark.torch

BRIEF = Case("CartPole-v1", {"max_episode_steps": 21})


def transformed(runs, env):
    return runs.transforms.TransformedEnv(
        env,
        runs.transforms.Compose(
            runs.transforms.ObservationNorm(0.5, 2.0, in_keys=["observation"]),
            runs.transforms.StepCounter(max_steps=15),
            runs.transforms.RewardSum(),
            runs.transforms.InitTracker(),
            runs.transforms.VecNormV2(in_keys=["reward"]),
        ),
    )


@pytest.mark.filterwarnings("ignore:Support of VecNormV2 for containers:UserWarning")
def test_transforms_see_what_they_see_of_gym_wrapper(runs, build_any):
    expected = transformed(runs, runs.oracle([BRIEF] * 3))
    env = transformed(runs, runs.CartwheelEnv(build_any([BRIEF] * 3, autoreset_mode="disabled")))
    rollout = runs.rolled_out(expected)
    assert rollout["next", "truncated"].any()
    assert rollout["episode_reward"].max() > 0
    runs.assert_same(runs.rolled_out(env), rollout)
    runs.assert_same(runs.collected(env), runs.collected(expected))


class Counted(gym.vector.VectorObservationWrapper):
    """Adds to every observation how many there were, so a row that is repeated changes."""

    count = 0

    def observations(self, observations):
        self.count += 1
        return observations + np.float32(self.count)


@pytest.mark.parametrize("wrappers", [[Counted], [Counted, wrap.RecordEpisodeStatistics]])
def test_rows_keep_their_tensors_if_a_wrapper_of_gymnasium_changes_them(runs, build_any, wrappers):
    bare = SyncVectorEnv([BRIEF] * 3, autoreset_mode=runs.DISABLED)
    bare, ours = Counted(bare), build_any([BRIEF] * 3, autoreset_mode="disabled")
    bare.autoreset_mode = runs.DISABLED  # `GymWrapper` asks the wrapper
    for wrapper in wrappers:
        ours = wrapper(ours)
    expected, env = runs.rolled_out(runs.GymWrapper(bare)), runs.CartwheelEnv(ours)
    assert runs.some_are_over(expected)
    runs.assert_same(runs.rolled_out(env), expected)
    env.close()


def test_partial_steps_through_wrappers_of_gymnasium_are_an_error_that_names_others(runs, build):
    """Such wrappers step all rows; rows that are over must not be stepped."""
    envs = gym.wrappers.vector.ClipReward(build([BRIEF] * 2, autoreset_mode="disabled"), 0, 1)
    env = runs.CartwheelEnv(envs)
    root = env.rand_action(env.reset()).set("_step", runs.torch.tensor([True, False]))
    with pytest.raises(RuntimeError, match=r"ClipReward.* steps all: use .*cartwheel\.wrappers"):
        env.step(root)
    env.close()


def test_wrappers_of_cartwheel_may_be_around_the_environments(runs, build_any):
    envs = build_any([BRIEF] * 3, autoreset_mode="disabled")
    env = runs.CartwheelEnv(wrap.NormalizeObservation(envs))
    rollout = runs.rolled_out(env)
    assert runs.some_are_over(rollout)
    over = rollout["next", "done"][:, :-1, 0]
    shown, after = rollout["next", "observation"][:, :-1], rollout["observation"][:, 1:]
    assert runs.torch.equal(shown[~over], after[~over])
    assert not (shown[over] == after[over]).all(-1).any()
    env.close()


def test_a_rollout_until_all_are_done_steps_only_the_others(runs, build):
    """The rows that are over keep the values of their last step."""
    functions = transcripts(3, 5, 4)
    expected = runs.serial(functions)
    env = runs.CartwheelEnv(build(functions, autoreset_mode="disabled"))
    actions = runs.torch.nn.functional.one_hot(runs.torch.arange(10), 10)

    def policy(tensordict):
        place = tensordict["observation"][:, 0].long()
        return tensordict.set("action", actions[place])

    found = [
        one.rollout(20, policy, break_when_any_done=False, break_when_all_done=True)
        for one in (env, expected)
    ]
    assert found[1].shape == (3, 5)
    runs.assert_same(*(one.to("cpu") for one in found))
    env.close()


def test_rows_that_are_not_stepped_show_the_root_and_no_reward(runs, build):
    env = runs.CartwheelEnv(build(transcripts(9, 9, 9), autoreset_mode="disabled"))
    stepped, root = env.step_and_maybe_reset(env.rand_action(env.reset()))
    mask = runs.torch.tensor([[False], [True], [False]])
    result = env.step(root.set("_step", mask).set("action", stepped["action"]))["next"]
    assert result["observation"].tolist() == [[1], [2], [1]]
    assert result["reward"][[0, 2]].tolist() == [[0], [0]]
    assert result["reward"][1] == stepped["action"][1].argmax()
    after = env.rand_step()["next"]
    assert after["observation"].tolist() == [[2], [3], [2]]
    env.close()


def test_compiled_steps_are_the_same(runs):
    env = runs.CartwheelEnv(NATIVE([BRIEF] * 3, autoreset_mode="disabled"))
    expected = runs.rolled_out(env)
    env.compile(backend="eager")
    runs.assert_same(runs.rolled_out(env), expected)
    env.eager()
    env.close()


def of_this_process():
    """An environment whose workers belong to the process of its collector."""
    from cartwheel.torchrl import CartwheelEnv

    return CartwheelEnv([partial(gym.make, "CartPole-v1")] * 2, executor="process", num_workers=2)


@pytest.fixture(params=["spawn", "fork"])
def start_method(request):
    """The default start method of the program."""
    multiprocessing.set_start_method(request.param, force=True)


@pytest.mark.usefixtures("start_method")
def test_each_process_of_a_collector_has_a_pool_of_its_own(runs):
    """Also with a fork server of the parent, which a forked child cannot use."""
    runs.CartwheelEnv([POLE], executor="process").close()
    collector = runs.MultiCollector(
        [of_this_process] * 2,
        sync=True,
        frames_per_batch=80,
        total_frames=160,
        cat_results="stack",
    )
    collector.set_seed(3)
    batches = list(collector)
    collector.shutdown()
    expected = runs.oracle([POLE] * 2)
    for batch in batches:
        assert batch.shape == (2, 2, 20)
    for number, first in enumerate(batches[0]):
        expected.set_seed(3 if number == 0 else runs.seed_generator(3))
        root = expected.reset()
        for step in range(20):
            assert runs.torch.equal(first["observation"][:, step], root["observation"])
            root["action"] = first["action"][:, step]
            _, root = expected.step_and_maybe_reset(root)


def test_closing_ends_the_workers_and_may_be_repeated(runs, build_any):
    envs = build_any([BRIEF] * 3, autoreset_mode="disabled")
    env = runs.CartwheelEnv(envs)
    env.reset()
    env.close()
    assert env.is_closed
    assert envs.closed
    env.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        env.reset()


def test_an_environment_that_is_forgotten_is_closed(runs):
    envs = NATIVE([BRIEF] * 3, autoreset_mode="disabled")
    env = runs.CartwheelEnv(envs)
    runs.rolled_out(env)
    del env
    gc.collect()
    assert envs.closed


def test_names_that_torchrl_lacks_are_those_of_the_vector_environment(runs, build):
    env = runs.CartwheelEnv(build(transcripts(3, 4), autoreset_mode="disabled"))
    env.rollout(2)
    assert env.num_envs == 2
    assert env.get_attr("t") == (2, 2)
    assert env.stats().steps.tolist() == [2, 2]
    assert "VectorEnv" in repr(env)
    env.close()
