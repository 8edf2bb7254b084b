"""Models of Stable-Baselines3 learn one policy for all agents of environments of PettingZoo."""

import importlib
import os
import pickle
import signal
from functools import partial

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest

import cartwheel
from tests.multiagent.environments import Guests, Stated, Switches, Walkers
from tests.multiagent.test_action_masks import Masked
from tests.multiagent.test_wrapped_rows import Gated
from tests.support.comparison import assert_identical
from tests.support.gates import Gates
from tests.support.one_thread import one_thread

pytestmark = pytest.mark.torch


@pytest.fixture
def ours():
    one_thread()
    return importlib.import_module("cartwheel.sb3").CartwheelAgentsVecEnv


def rps():
    return pettingzoo.make("parallel", "classic/rps-v2", max_cycles=5)


@pytest.mark.parametrize(("executor", "absent"), [("inline", np.nan), ("process", 0.0)])
def test_rows_are_those_of_as_rows(ours, executor, absent):
    with (
        ours([Walkers] * 2, executor=executor, absent=absent) as envs,
        cartwheel.ParallelVectorEnv(
            [Walkers] * 2, autoreset_mode="same_step", executor="inline", absent=absent
        ) as other,
    ):
        rows = other.as_rows()
        assert envs.seed(3) == [3, 3, 3, 4, 4, 4]
        np.testing.assert_array_equal(envs.reset(), rows.reset(seed=3)[0])
        draw, ended = np.random.default_rng(1), 0
        for _ in range(20):
            actions = draw.uniform(-1, 1, (6, 1)).astype(np.float32)
            found, rewards, done, infos = envs.step(actions)
            wanted, wanted_rewards, terminated, truncated, wanted_infos = rows.step(actions)
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(rewards, wanted_rewards.astype(np.float32))
            over = wanted_infos["episode_over"]
            np.testing.assert_array_equal(done, terminated | truncated | over)
            for row, info in enumerate(infos):
                assert not info["TimeLimit.truncated"]
                assert info["acted"] == wanted_infos["acted"][row]
                assert ("terminal_observation" in info) == done[row]
                if done[row]:
                    last = wanted_infos["final_obs"][row] if terminated[row] else [absent] * 3
                    np.testing.assert_array_equal(info["terminal_observation"], last)
                    info["terminal_observation"][...] = 7  # it is the caller's
                assert ("t" in info) == info["acted"]
            ended += terminated.sum()
        assert ended > 6


def test_environments_get_the_seed_and_the_options_of_their_first_agent_once(ours):
    class Noted(Walkers):
        resets = ()

        def reset(self, seed=None, options=None):
            self.resets = (*self.resets, (seed, options))
            return super().reset(seed=seed, options=options)

    with ours([Noted] * 2, executor="inline") as envs:
        with pytest.raises(TypeError, match=r"[Ss]eed"):
            envs.seed("1")
        envs.seed(3)
        envs.set_options([{"level": row} if row else {} for row in range(6)])
        envs.reset()
        envs.reset()
        (first, second) = envs.get_attr("resets", [0, 3])
        assert first == ((3, None), (None, None))
        assert second == ((4, {"level": 3}), (None, None))
        assert envs.metadata == dict(envs.vector_env.metadata)


def test_a_limit_of_steps_truncates_and_leaves_the_last_observation(ours):
    with ours([Walkers], executor="inline", max_episode_steps=1) as envs:
        envs.reset()
        shown, _, done, infos = envs.step(np.ones((3, 1), np.float32))
        assert done.all()
        assert all(info["TimeLimit.truncated"] for info in infos)
        assert [info["terminal_observation"][1] for info in infos] == [1] * 3
        assert shown[:, 1].tolist() == [0] * 3


def test_states_are_in_the_infos_of_the_step_or_of_the_reset_that_they_are_of(ours):
    with ours([Stated], executor="inline", state=True) as envs:
        envs.seed(0)
        envs.reset()
        for step in range(1, 5):
            _, _, done, infos = envs.step(np.zeros((3, 1), np.float32))
            ended = np.flatnonzero(done).tolist()
            assert ended == ([0, 1, 2] if step == 4 else [step - 2] * (step > 1))
            for row in ended:
                assert infos[row]["state"]["t"].tolist() == [step]
                assert "final_state" not in infos[row]
        assert envs.reset_infos[2]["state"]["t"].tolist() == [0]
        assert "final_state" not in envs.reset_infos[2]


class Greeting(Walkers):
    """Says when an episode has begun."""

    def reset(self, seed=None, options=None):
        observations, _ = super().reset(seed, options)
        return observations, {name: {"begun": True} for name in observations}


def test_infos_of_a_reset_are_none_of_the_step_also_of_agents_that_had_ended(ours):
    with ours([Greeting], executor="inline") as envs:
        envs.seed(0)
        envs.reset()
        for step in range(1, 5):
            envs.reset_infos = [{}] * 3
            infos = envs.step(np.zeros((3, 1), np.float32))[3]
            assert not any("begun" in info for info in infos)
            assert envs.reset_infos == [{"begun": True} if step == 4 else {}] * 3


def test_agents_of_a_row_that_failed_tell_why_and_have_their_last_observation(ours):
    make = partial(Walkers, fails_at=2)
    with ours([make], executor="inline", on_error="restart") as envs:
        envs.reset()
        shown = envs.step(np.ones((3, 1), np.float32))[0].copy()
        _, rewards, done, infos = envs.step(np.ones((3, 1), np.float32))
        assert done.all()
        assert not rewards.any()
        for row, info in enumerate(infos):
            assert info["env_error"].startswith("OSError")
            assert info["TimeLimit.truncated"]
            np.testing.assert_array_equal(info["terminal_observation"], shown[row])
        assert envs.reset_infos == [{}] * 3


def test_agents_of_a_row_that_was_lost_with_its_worker_tell_so_in_the_step(ours):
    with ours([Greeting] * 2, executor="process", num_workers=2, on_worker_death="restart") as envs:
        envs.reset()
        os.kill(envs.vector_env.processes[1].pid, signal.SIGKILL)
        envs.vector_env.processes[1].join(20)
        _, _, done, infos = envs.step(np.ones((6, 1), np.float32))
        assert done.tolist() == [False] * 3 + [True] * 3
        assert [info.get("worker_restarted", False) for info in infos] == done.tolist()
        assert ["terminal_observation" in info for info in infos] == done.tolist()
        assert envs.reset_infos == [{"begun": True}] * 6


def test_whole_numbers_may_be_floats_where_actions_are_integers(ours):
    with ours([Switches], executor="inline") as envs:
        envs.seed(2)
        envs.reset()
        chosen = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
        assert envs.step(chosen)[0][:, 2].tolist() == [1, 0, 1]
        assert envs.step(chosen.tolist())[0][:, 2].tolist() == [1, 0, 1]
        with pytest.raises(ValueError, match="actions of int8 must be whole numbers"):
            envs.step(chosen / 2)


def test_ppo_trains_one_policy_with_the_steps_of_all_agents(ours):
    sb3 = importlib.import_module("stable_baselines3")
    with ours([rps] * 4, executor="inline") as envs:
        model = sb3.PPO("MlpPolicy", envs, n_steps=20, batch_size=80, seed=1, device="cpu")
        before = [weights.clone() for weights in model.policy.parameters()]
        model.learn(320)
        pairs = zip(before, model.policy.parameters(), strict=True)
        assert any((old != new).any() for old, new in pairs)
        assert model.num_timesteps == 320


def test_each_beginning_of_an_episode_is_one_for_models_also_after_agents_that_ended_early(ours):
    sb3 = importlib.import_module("stable_baselines3")
    with ours([Walkers], executor="inline") as envs:
        model = sb3.PPO("MlpPolicy", envs, n_steps=15, batch_size=45, seed=1, device="cpu")
        model.learn(45)  # three episodes of five steps
        shown, starts = model.rollout_buffer.observations, model.rollout_buffer.episode_starts
    shown = shown.reshape(3, 15, 3)  # by row, as PPO has left them
    for number in (1, 2):  # of walker 0, beginnings show zeros, too
        begins = (shown[number, :, 0] == number) & (shown[number, :, 1] == 0)
        assert np.flatnonzero(begins).tolist() == [0, 5, 10]
        assert starts[begins, number].all()


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_a_monitor_reports_the_return_and_the_steps_of_each_agent(ours, executor):
    class Constant:
        def predict(self, observations, **_):
            return np.full((len(observations), 1), 0.5, np.float32), None

    evaluation = importlib.import_module("stable_baselines3.common.evaluation")
    with ours([Walkers] * 2, executor=executor, monitor=True) as envs:
        assert envs.env_is_wrapped(gym.Wrapper) == [True] * 6
        envs.seed(3)  # agents act for 2, 3 and 4 steps, and in the other environment for one more
        envs.reset()
        envs.step(np.ones((6, 1), np.float32))  # no part of an episode that ends
        found = []
        envs.seed(3)
        returns, lengths = evaluation.evaluate_policy(
            Constant(),
            envs,
            n_eval_episodes=12,
            return_episode_rewards=True,
            callback=lambda names, _: found.append((names["i"], names["info"].get("episode"))),
        )
    wanted = {row: 2 + row % 3 + row // 3 for row in range(6)}
    totals = {row: steps * (0.5 + 10 * (row % 3)) for row, steps in wanted.items()}
    assert sorted(lengths) == sorted([*wanted.values()] * 2)
    assert sorted(returns) == sorted([*totals.values()] * 2)
    for row, episode in found:
        if episode is not None:
            assert (episode["r"], episode["l"]) == (totals[row], wanted[row])
            assert 0 <= episode["t"] < 60


def test_a_monitor_leaves_out_rows_that_failed_and_begins_anew_with_a_loaded_state(ours):
    with ours([Walkers], executor="inline", on_error="restart", monitor=True) as envs:
        envs.set_attr("fails_at", 2)
        envs.reset()
        reports = [[info.get("episode") for info in infos] for *_, infos in steps_of(envs, 4)]
        assert reports[:3] == [[None] * 3] * 3
        first, *others = reports[3]
        assert (first["r"], first["l"], others) == (2, 2, [None, None])
    with ours([Walkers], executor="inline", states="pickle", monitor=True) as envs:
        envs.reset()
        steps_of(envs, 1)
        envs.load_state_dict(envs.state_dict())
        ((*_, infos),) = steps_of(envs, 1)
        assert (infos[0]["episode"]["r"], infos[0]["episode"]["l"]) == (1, 1)
    with pytest.raises(TypeError, match="`monitor` must be True or False"):
        ours([Walkers], monitor="yes")


def steps_of(envs, count):
    return [envs.step(np.ones((envs.num_envs, 1), np.float32)) for _ in range(count)]


@pytest.mark.parametrize("make", [Walkers, Masked])
def test_a_loaded_state_shows_the_same_and_goes_on_from_there(ours, make):
    def run(envs, steps):
        actions = np.ones((6, *envs.action_space.shape), envs.action_space.dtype)
        return [envs.step(actions) for _ in range(steps)]

    keywords = {"executor": "inline", "states": "pickle"}
    with ours([make] * 2, **keywords) as envs, ours([make] * 2, **keywords) as others:
        envs.seed(1)
        envs.reset()
        for _ in range(8):
            shown = run(envs, 1)[0][0]
            state = pickle.loads(pickle.dumps(envs.state_dict()))
            np.testing.assert_equal(others.load_state_dict(state), shown)
        np.testing.assert_equal(run(others, 9), run(envs, 9))


def test_maskable_ppo_takes_allowed_actions_only(ours):
    contrib = importlib.import_module("sb3_contrib")
    with ours([Masked] * 2, executor="inline") as envs:
        model = contrib.MaskablePPO("MultiInputPolicy", envs, n_steps=16, batch_size=32, seed=1)
        model.learn(96)
        buffer = model.rollout_buffer
        masks = buffer.action_masks.reshape(-1, 4)
        actions = buffer.actions.reshape(-1).astype(int)
        assert masks[np.arange(len(actions)), actions].all()
        assert not masks.all()
        assert envs.env_method("action_masks", indices=[]) == []
        masks = envs.env_method("action_masks")
        for mask, of_row in zip(masks, envs.get_attr("action_masks"), strict=True):
            np.testing.assert_array_equal(mask, of_row())
        assert envs.has_attr("action_masks")
        assert not envs.has_attr("seen_by_none")
        assert envs.get_attr("render_mode") == [None] * envs.num_envs
        names = envs.env_method("action_space", envs.vector_env.possible_agents[0])
        assert names == [envs.action_space] * envs.num_envs
        assert not any(map(callable, envs.get_attr("possible_agents")))


class Drawn(Walkers):
    render_mode = "rgb_array"

    def render(self):
        return np.full((2, 3, 3), self.fails_at, np.uint8)


def test_agents_of_an_environment_share_its_frame(ours):
    with ours([partial(Drawn, fails_at=at) for at in (80, 90)], executor="inline") as envs:
        envs.reset()
        images = envs.get_images()
        assert [image.shape for image in images] == [(2, 3, 3)] * 6
        assert [image.item(0) for image in images] == [80] * 3 + [90] * 3


def test_attributes_are_those_of_the_environment_of_a_row(ours):
    with ours([partial(Walkers, fails_at=90)] * 2, executor="process") as envs:
        assert envs.num_envs == 6
        assert envs.get_attr("fails_at", [0, 5]) == [90, 90]
        envs.set_attr("fails_at", 80, indices=[4])
        assert envs.get_attr("fails_at") == [90] * 3 + [80] * 3
        assert envs.env_method("number", agent="walker_2", indices=3) == [2]
        envs.set_attr("fails_at", 0, indices=[])
        assert envs.get_attr("fails_at", []) == envs.env_method("number", indices=[]) == []
        assert envs.get_attr("fails_at") == [90] * 3 + [80] * 3
        envs.set_attr("mark", 1, indices=[0])
        assert not envs.has_attr("mark")  # of one environment
        assert [number("walker_1") for number in envs.get_attr("number", [0, 5])] == [1, 1]
        assert all(envs.has_attr(name) for name in ("number", "fails_at"))
        assert not envs.has_attr("seen_by_none")
        envs.set_attr("fails_at", 70, indices=np.array([-6]))
        assert envs.get_attr("fails_at", [-1, 0, -4]) == [80, 70, 70]
        for ask in (envs.get_attr, envs.env_method, envs.env_is_wrapped):
            with pytest.raises(IndexError, match="row 6; there are rows -6 to 5"):
                ask("number", indices=[6])
            with pytest.raises(ValueError, match="names row 2 twice"):
                ask("number", indices=[2, -4])
        assert envs.env_is_wrapped(gym.Wrapper, -1) == [False]
        assert envs.env_is_wrapped(gym.Wrapper) == [False] * 6
        with pytest.warns(UserWarning, match="needs render_mode='rgb_array', got None"):
            assert envs.get_images() == [None] * 6
        assert repr(envs).startswith("CartwheelAgentsVecEnv(ParallelVectorEnv(agents=3")


def test_a_step_that_timed_out_is_waited_for_and_a_reset_drops_one_that_was_not(ours, tmp_path):
    gates, zeros, ones = Gates(tmp_path), np.zeros((6, 1), np.float32), np.ones((6, 1), np.float32)
    where = {"executor": "thread", "num_workers": 2, "monitor": True}
    with (
        ours([partial(Gated, gates)] * 2, timeout=2, **where) as envs,
        ours([Walkers] * 2, **where) as twin,
    ):
        for each in (envs, twin):
            each.seed(0)
            each.reset()
            each.step(zeros)
        envs.step_async(ones)
        with pytest.raises(cartwheel.WorkerTimeoutError):
            envs.step_wait()
        with pytest.raises(gym.error.AlreadyPendingCallError):
            envs.step_async(zeros)
        gates.open(1)
        found, wanted = envs.step_wait(), twin.step(ones)
        for infos in (found[3], wanted[3]):
            assert infos[0]["episode"].pop("t") > 0
        assert_identical(found, wanted)
        envs.step_async(zeros)
        for each in (envs, twin):
            each.seed(0)
        assert_identical(envs.reset(), twin.reset())
        with pytest.raises(gym.error.NoAsyncCallError, match="without any prior call to `step_as"):
            envs.step_wait()
        assert_identical(envs.step(zeros), twin.step(zeros))


def test_misuse_is_refused(ours):
    with cartwheel.ParallelVectorEnv([Walkers], executor="inline") as envs:
        with pytest.raises(ValueError, match="must be 'same_step', got 'next_step'"):
            ours(envs)
        with pytest.raises(TypeError, match=r"num_workers.* cannot be given with a vector env"):
            ours(envs, num_workers=1)
        rows, groups = envs.as_rows(), envs.by_group({"walkers": envs.possible_agents})
        for form in (rows, groups):
            with pytest.raises(TypeError, match=r"itself, got (AgentRows|Groups).*pass its `envs`"):
                ours(form)
        for form in (envs, rows):
            with pytest.raises(TypeError, match=r"of one agent, got .*: use CartwheelAgentsVecEnv"):
                importlib.import_module("cartwheel.sb3").CartwheelVecEnv(form)
    with pytest.raises(gym.error.ClosedEnvironmentError):
        ours(envs)
    closed = []

    class Ends(Guests):
        def close(self):
            closed.append(self)

    with pytest.raises(ValueError, match="'host' has Dict") as raised:
        ours([Ends], executor="inline")
    assert len(closed) == 1, raised  # though the error has frames that have the environment
    keywords = {"executor": "inline", "autoreset_mode": "same_step"}
    with cartwheel.ParallelVectorEnv([Ends], **keywords) as envs:
        with pytest.raises(ValueError, match="'host' has Dict"):
            ours(envs)
        envs.reset()
    with ours([Walkers], executor="inline") as envs:
        envs.reset()
        with pytest.raises(ValueError, match="one entry for each of the 3 rows"):
            envs.step(np.zeros((2, 1), np.float32))
        envs.set_options([{}])
        with pytest.raises(ValueError, match=r"`set_options` takes .* each of the 3 rows, got 1"):
            envs.reset()
