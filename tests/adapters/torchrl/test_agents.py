"""Environments of several agents have the specs and the values of ``PettingZooWrapper``."""

import gc
import importlib
from functools import partial

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest

import cartwheel
from cartwheel.recorder import RecordParallelEpisode, TrajectoryDataset
from tests.multiagent.environments import Stated, Walkers
from tests.multiagent.test_action_masks import Masked

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested"),
]
ROWS, STEPS = 2, 20


@pytest.fixture(autouse=True)
def _collected():
    """MPE2's environments are in cycles, with a font that is an open file.

    TorchRL keeps the frames of those who import its modules first: here they have no environments.
    """
    for name in ("cartwheel.torchrl", "torchrl.envs.libs.pettingzoo", "mpe2.simple_spread_v3"):
        importlib.import_module(name)
    yield
    gc.collect()


def spread():
    return importlib.import_module("mpe2.simple_spread_v3").parallel_env(max_cycles=7)


def tag():
    return importlib.import_module("mpe2.simple_tag_v3").parallel_env(max_cycles=7)


def turns():
    return pettingzoo.make("aec", "classic/tictactoe-v3")


PLAYERS = {"player": ["player_1", "player_2"]}
CASES = {
    "spread": (spread, {}),
    "tag, one-hot": (tag, {"categorical_actions": False}),
    "turns": (turns, {"use_mask": True, "done_on_any": False, "group_map": PLAYERS}),
    "masks": (Masked, {"use_mask": True, "done_on_any": False}),
    "masks in infos": (
        partial(Masked, shows=False),
        {"use_mask": True, "done_on_any": False, "with_action_masks": True},
    ),
}


def wrapper(make, keywords):
    libs = importlib.import_module("torchrl.envs.libs.pettingzoo")
    theirs = {name: value for name, value in keywords.items() if name != "with_action_masks"}
    return libs.PettingZooWrapper(make(), **theirs)


def ours(make, keywords, **more):
    return importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv(
        [make] * ROWS, **keywords, **{"executor": "inline", **more}
    )


@pytest.mark.parametrize("name", ["spread", "turns"])
def test_a_reset_of_no_row_returns_what_it_was_given(name):
    torch = importlib.import_module("torch")
    env = ours(*CASES[name])
    shown = env.reset(seed=3)
    root = env.step_mdp(env.step(env.rand_action(shown)))
    given = root.clone().set("_reset", torch.zeros((ROWS, 1), dtype=torch.bool))
    kept = env.reset(given)
    assert "_reset" not in kept
    assert set(root.keys(True, True)) == set(kept.keys(True, True))
    for key in root.keys(True, True):
        assert torch.equal(kept[key], root[key]), key
    env.step(env.rand_action(kept))
    env.close()


@pytest.mark.parametrize("name", CASES)
def test_specs_are_those_of_rows_of_PettingZooWrapper(name):
    make, keywords = CASES[name]
    env, one = ours(make, keywords), wrapper(make, keywords)
    for kind in ("observation", "action", "reward", "done"):
        theirs = getattr(one, f"full_{kind}_spec")
        own = getattr(env, f"full_{kind}_spec")
        assert set(own.keys(True, True)) == set(theirs.keys(True, True))
        for key in theirs.keys(True, True):
            assert own[key].shape == (ROWS, *theirs[key].shape), (kind, key)
            assert own[key].dtype == theirs[key].dtype, (kind, key)
            assert type(own[key].space) is type(theirs[key].space), (kind, key)
    assert env.group_map == one.group_map
    env.close()


def check(theirs, own, where):
    """Compares a step of a row; rows that allow no action allow every one with us.

    After a game, PettingZoo still has the turn of an agent that is done.
    """
    for key in theirs.keys(True, True):
        of_mask = key in (("player", "mask"), ("player", "action_mask"))
        if key[-1] == "action" or (of_mask and own["done"]):
            continue
        value = theirs[key]
        if key[-1] == "action_mask":
            value = value | ~value.any(-1, keepdim=True)
        np.testing.assert_array_equal(value, own[key], f"{where} {key}")


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_PettingZooWrapper(name):
    make, keywords = CASES[name]
    env = ours(make, keywords)
    shown = env.reset(seed=5)
    rollout = env.rollout(STEPS, break_when_any_done=False, auto_reset=False, tensordict=shown)
    assert rollout["next", "done"].sum() >= 2 * ROWS
    for row in range(ROWS):
        one = wrapper(make, keywords)
        shown = one.reset(seed=5 + row)
        for t in range(STEPS):
            step = rollout[row, t]
            check(shown, step, f"row {row}, step {t}:")
            shown.update(step.select(*one.action_keys))
            stepped, shown = one.step_and_maybe_reset(shown)
            check(stepped["next"], step["next"], f"row {row}, after step {t}:")
        one.close()
    env.close()


def test_collectors_and_checks_of_TorchRL_pass():
    utils = importlib.import_module("torchrl.envs.utils")
    collectors = importlib.import_module("torchrl.collectors")
    env = ours(spread, {}, executor="process", num_workers=2)
    utils.check_env_specs(env)
    for batch in collectors.Collector(env, frames_per_batch=60, total_frames=120):
        assert batch["agent", "observation"].shape[:3] == (ROWS, 30, 3)


def test_recorded_environments_are_stepped(tmp_path):
    make = partial(pettingzoo.make, "parallel", "classic/rps-v2", max_cycles=3)
    envs = cartwheel.ParallelVectorEnv([make] * 2, autoreset_mode="disabled", executor="inline")
    with RecordParallelEpisode(envs, tmp_path, trajectory_name="rps") as recorded:
        env = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv(recorded)
        env.rollout(6, break_when_any_done=False)
    assert len(TrajectoryDataset(tmp_path / "rps.h5").episodes) == 4


def test_environments_are_closed_with_their_collector_or_when_they_are_forgotten():
    Collector = importlib.import_module("torchrl.collectors").Collector
    env = ours(*CASES["masks"])
    envs = env._envs
    assert not env.is_closed
    collector = Collector(env, frames_per_batch=8, total_frames=16)
    assert [batch["a", "mask"].shape[0] for batch in collector] == [ROWS] * 2
    collector.shutdown()
    assert env.is_closed
    assert envs.closed
    env = ours(*CASES["masks"])
    envs = env._envs
    del env
    gc.collect()
    assert envs.closed


@pytest.mark.parametrize(
    ("fails_at", "keywords"), [(None, {"max_episode_steps": 2}), (2, {"on_error": "restart"})]
)
def test_no_agent_lives_once_a_limit_or_a_failure_ended_its_episode(fails_at, keywords):
    env = ours(partial(Walkers, fails_at=fails_at), {"use_mask": True}, **keywords)
    env.set_seed(1)
    rollout = env.rollout(4, break_when_any_done=False)
    over = rollout["next", "walker", "truncated"].squeeze(-1)
    assert over[:, ::2].sum() == 0
    assert over[:, 1::2].all()
    assert (rollout["next", "walker", "mask"] == ~over).all()
    assert rollout["walker", "mask"].all()


def test_agents_that_end_first_need_a_mask_and_rows_are_stepped_together():
    for keywords, breaks, error, message in (
        ({"done_on_any": False}, {}, ValueError, "ended before others in .* use_mask=True"),
        ({"use_mask": True}, {"break_when_all_done": True}, RuntimeError, "groups of agents"),
    ):
        env = ours(Walkers, keywords)
        env.set_seed(1)
        with pytest.raises(error, match=message):
            env.rollout(6, break_when_any_done=False, **breaks)
        env.close()


@pytest.mark.parametrize("name", ["masks", "masks in infos"])
def test_drawn_actions_are_allowed(name):
    env = ours(*CASES[name])
    env.set_seed(1)
    rollout = env.rollout(20, break_when_any_done=False)
    for group in ("a", "b"):
        mask, action = rollout[group, "action_mask"], rollout[group, "action"]
        assert mask.gather(-1, action[..., None]).all()
        assert not mask.all()
    env.close()


def test_actions_of_a_group_that_are_missing_are_named():
    env = ours(*CASES["masks"])
    shown = env.rand_action(env.reset())
    with pytest.raises(KeyError, match=r"the tensordict has no \('b', 'action'\)"):
        env.step(shown.exclude(("b", "action")))
    env.step(shown)
    env.close()


def test_wrong_arguments_are_refused():
    make = partial(pettingzoo.make, "parallel", "classic/rps-v2")
    envs = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv
    with pytest.raises(ValueError, match="TorchRL resets finished rows itself"):
        envs([make], autoreset_mode="same_step")
    with pytest.raises(TypeError, match="`use_masks` is not a keyword"):
        envs([make], use_masks=True)
    with pytest.raises(ValueError, match=r"no masks of actions: it was made with action_mask=None"):
        envs([make], with_action_masks=True, action_mask=None, executor="inline")
    with pytest.raises(ValueError, match=r"no masks of actions: .* which is not discrete"):
        envs([Walkers], with_action_masks=True, executor="inline")
    with pytest.raises(ValueError, match="are in no group"):
        envs([make], group_map={"players": ["player_0"]}, executor="inline")
    with cartwheel.ParallelVectorEnv([make], autoreset_mode="disabled", executor="inline") as made:
        with pytest.raises(TypeError, match="pass keywords where it is made"):
            envs(made, num_workers=2)
        assert envs(made).group_map == {"player": ["player_0", "player_1"]}


def test_agents_whose_names_end_with_a_number_are_a_group():
    by_name = importlib.import_module("cartwheel.torchrl.agents_env")._groups_by_name
    assert by_name(["arm_0", "left_arm", "arm_1", "_2", 7, "left_arm_0"]) == {
        "arm": ["arm_0", "arm_1"],
        "left_arm": ["left_arm", "left_arm_0"],
        "_2": ["_2"],
        "7": [7],
    }


class Twofold(Walkers):
    """Observations and states are tuples."""

    state_space = gym.spaces.Tuple([gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)] * 2)

    def observation_space(self, agent):
        return gym.spaces.Dict({"parts": gym.spaces.Tuple([super().observation_space(agent)] * 2)})

    def observe(self, agent, action):
        observed = super().observe(agent, action)
        return {"parts": (observed, -observed)}

    def state(self):
        return (np.array([self.t], np.float32), np.array([self.late], np.float32))


def test_parts_of_tuples_are_stacked_behind_the_agents():
    env = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv(
        [Twofold] * ROWS, executor="inline", state=True
    )
    env.set_seed(1)
    env.check_env_specs()
    rollout = env.rollout(2, break_when_any_done=False)
    parts = rollout["next", "walker", "observation", "parts"].numpy()
    assert parts.shape == (ROWS, 2, 3, 2, 3)
    assert (parts[..., 0, :] == -parts[..., 1, :]).all()
    assert parts[:, 1, :, 0, 1].tolist() == [[2, 2, 2]] * ROWS
    assert rollout["next", "state"].shape == (ROWS, 2, 2, 1)
    env.close()


@pytest.mark.parametrize("make", [Walkers, Stated, Masked])
def test_a_device_is_that_of_every_tensordict_and_spec(make):
    # The CPU with a number is another device than the one without, which is the default.
    env = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv(
        [make] * 2, executor="inline", device="cpu:0", use_mask=True, state=make is Stated
    )
    assert {env.specs[leaf].device for leaf in env.specs.keys(True, True)} == {env.device}
    assert str(env.device) == str(env.reset().device) == str(env.rollout(2).device) == "cpu:0"
    env.close()


def test_agents_are_truncated_from_the_step_after_the_one_in_which_they_terminated():
    # As PettingZooWrapper has agents that are gone.
    env = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv(
        [Walkers], executor="inline", use_mask=True, done_on_any=False
    )
    root, flags = env.reset(seed=0), []
    root["walker", "done"][...] = True  # the caller's own
    assert not root["walker", "terminated"].any()
    while not root["done"].any():
        stepped = env.rand_step(root)
        walkers = stepped["next", "walker"]
        flags.append((walkers["terminated"].flatten(), walkers["truncated"].flatten()))
        root = env.step_mdp(stepped)
    terminated, truncated = ([step[which].tolist() for step in flags] for which in (0, 1))
    assert truncated == [[False] * 3, *terminated[:-1]]
    assert [sum(step) for step in terminated][-3:] == [1, 2, 3]
    env.close()
