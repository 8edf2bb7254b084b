"""Unsupported environments and arguments are refused before anything starts, with a remedy."""

import copy
import importlib
import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, OneOf, Sequence, Text, Tuple

import cartwheel
from cartwheel.wrappers import NumpyToTorch, RecordEpisodeStatistics
from tests.support.cases import POLE
from tests.support.environments import SamplingEnv
from tests.support.executors import INLINE

pytestmark = pytest.mark.torch

BOX = Box(-1, 1, (2,), np.float32)
REFUSED = {
    "text": (Text(4), "fixed shape.*Text"),
    "graph": (Graph(BOX, None), "fixed shape.*Graph"),
    "sequence": (Sequence(BOX), "fixed shape.*Sequence"),
    "one-of": (OneOf([BOX, Discrete(2)]), "fixed shape.*OneOf"),
    "in a dict": (Dict(a=Dict(b=Text(4))), r"observation space\['a'\]\['b'\] is Text"),
    "unequal parts": (Tuple([BOX, Box(-1, 1, (3,), np.float32)]), "use a Dict space"),
    "tuple of discrete": (Tuple([Discrete(2), Discrete(2)]), "use a Dict space"),
    "start": (Discrete(3, start=1), "from 0.*start=1"),
    "dtype": (Box(0, 9, (2,), np.uint16), "no dtype for uint16"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_space_is_refused_by_its_place(runs, name):
    space, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        runs.CartwheelEnv([partial(SamplingEnv, space)] * 2, num_workers=2)
    envs = INLINE(
        [partial(SamplingEnv, BOX, action_space=Tuple([BOX, BOX]))] * 2, autoreset_mode="disabled"
    )
    with pytest.raises(ValueError, match=r"no tuples of actions.*use a Dict space"):
        runs.CartwheelEnv(envs)
    assert not envs.closed
    envs.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_another_mode_is_refused(runs, mode):
    with pytest.raises(ValueError, match=f"must be 'disabled', got '{mode}'. Leave it out"):
        runs.CartwheelEnv([POLE] * 2, autoreset_mode=mode)
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode=mode)
    with pytest.raises(ValueError, match=f"got '{mode}'.* make others with autoreset_mode='dis"):
        runs.CartwheelEnv(envs)
    with pytest.raises(ValueError, match=f"got '{mode}'"):
        runs.CartwheelEnv(RecordEpisodeStatistics(envs))
    envs.reset()  # it was not closed
    envs.close()


def test_batches_of_some_rows_are_refused(runs):
    with pytest.raises(ValueError, match="batch_size=1 of num_envs=2: leave `batch_size` out"):
        runs.CartwheelEnv([POLE] * 2, batch_size=1)
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 3, autoreset_mode="disabled", batch_size=2)
    with pytest.raises(ValueError, match="batch_size=2 of num_envs=3"):
        runs.CartwheelEnv(envs)
    envs.close()


def test_vector_environments_of_others_and_what_is_none_are_refused(runs):
    envs = gym.vector.SyncVectorEnv([POLE] * 2, autoreset_mode=runs.DISABLED)
    with pytest.raises(TypeError, match=r"of cartwheel, got SyncVectorEnv.*GymWrapper"):
        runs.CartwheelEnv(envs)
    envs.close()
    with pytest.raises(TypeError, match="make_vec"):
        runs.CartwheelEnv("cartwheel/CartPole-v1")
    with pytest.raises(TypeError, match="list of functions"):
        runs.CartwheelEnv(POLE)
    with pytest.raises(IndexError, match="empty"):
        runs.CartwheelEnv([])
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="disabled")
    CartwheelAgentsEnv = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv
    with pytest.raises(TypeError, match=r"needs the arrays themselves, got .*NumpyToTorch"):
        runs.CartwheelEnv(NumpyToTorch(envs))
    with pytest.raises(TypeError, match=r"environments of several agents, got Nat.*CartwheelEnv"):
        CartwheelAgentsEnv(envs)
    envs.close()
    players = [partial(pettingzoo.make, "parallel", "classic/rps-v2")] * 2
    with cartwheel.ParallelVectorEnv(players, executor="inline") as agents:
        with pytest.raises(TypeError, match=r"of one agent, got ParallelVec.*CartwheelAgentsEnv"):
            runs.CartwheelEnv(agents)
        with pytest.raises(TypeError, match=r"of one agent, got AgentRows.*CartwheelAgentsEnv"):
            runs.CartwheelEnv(agents.as_rows())
        with pytest.raises(TypeError, match=r"itself, got AgentRows.*pass its `envs`"):
            CartwheelAgentsEnv(agents.as_rows())
        with pytest.raises(TypeError, match="pass the functions that this vector environment is"):
            cartwheel.VectorEnv(agents)


def test_actions_of_another_shape_are_refused_before_anything_is_stepped(runs):
    zeros = importlib.import_module("torch").zeros
    for categorical in (False, True):
        envs = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="disabled")
        env = runs.CartwheelEnv(envs, categorical_action_encoding=categorical)
        root = env.reset()
        with pytest.raises(KeyError, match='the tensordict has no "action"'):
            env.step(root.clone())
        needed = r"\(2,\); got" if categorical else r"\(2, 2\), one-hot; categorical_.*integers"
        for shape in ((2, 3), (2, 2) if categorical else (2,)):
            with pytest.raises(ValueError, match=f"must have the shape {needed}"):
                env.step(root.clone().set("action", zeros(shape, dtype=int)))
        assert env.stats().steps.sum() == 0
        env.close()


def test_keywords_that_do_not_exist_or_come_too_late_are_refused(runs):
    with pytest.raises(TypeError, match="did you mean `categorical_action_encoding`"):
        runs.CartwheelEnv([POLE] * 2, categorical_action_encodng=True)
    with pytest.raises(TypeError, match="did you mean `num_workers`"):
        runs.CartwheelEnv([POLE] * 2, num_worker=True)
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="disabled")
    with pytest.raises(TypeError, match="`executor`, `num_workers` cannot be given with a vector"):
        runs.CartwheelEnv(envs, executor="inline", num_workers=2)
    with pytest.raises(TypeError, match="did you mean `categorical_action_encoding`"):
        runs.CartwheelEnv(envs, categorical_action_encodng=True)
    with pytest.raises(TypeError, match="`categorical_action_encoding` must be True or False"):
        runs.CartwheelEnv(envs, categorical_action_encoding="no")
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        runs.CartwheelEnv(envs)


def test_options_that_choose_rows_are_refused_before_anything_is_reset(runs):
    """A batch of some rows does not fit the tensordict."""
    agents = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv
    where = {"autoreset_mode": "disabled", "executor": "inline"}
    players = [partial(pettingzoo.make, "parallel", "classic/rps-v2")] * 2
    mask = np.array([True, False])
    for make, envs in (
        (runs.CartwheelEnv, cartwheel.VectorEnv([POLE] * 2, **where)),
        (agents, cartwheel.ParallelVectorEnv(players, **where)),
    ):
        env = make(envs)
        chosen = env.reset().clone().set("_reset", runs.torch.tensor(mask).reshape(2, 1))
        for name, rows in (("env_index", [1]), ("env_idx", [1]), ("reset_mask", mask)):
            for given in (None, chosen):
                with pytest.raises(
                    ValueError, match=rf"rows, got \['{name}'\]: the entry '_reset'"
                ):
                    env.reset(given, options={name: rows})
        assert envs.stats().resets.tolist() == [1, 1]
        env.reset(chosen, options={"other": 3})
        assert envs.stats().resets.tolist() == [2, 1]
        env.close()


def test_environments_are_not_copied_and_stay_open(runs):
    agents = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv
    players = [partial(pettingzoo.make, "parallel", "classic/rps-v2")] * 2
    for make, env_fns in ((runs.CartwheelEnv, [POLE] * 2), (agents, players)):
        env = make(env_fns, executor="inline")
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"{make.__name__} cannot be pickled or copied"):
                copied(env)  # a copy that was collected would close them
        assert env.rollout(3).batch_size[0] == 2
        env.close()


def test_stepping_rows_that_are_over_is_an_error_of_cartwheel(runs, build):
    env = runs.CartwheelEnv(
        build([partial(SamplingEnv, BOX, length=1)] * 2, autoreset_mode="disabled")
    )
    stepped = env.rand_step(env.reset())
    with pytest.raises(cartwheel.EpisodeOverError):
        env.rand_step(env.step_mdp(stepped))
    env.close()
