"""Rows that fail, are frozen or reach a limit; rows sent and received; states; time-outs."""

import os
import pickle
import signal
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

import cartwheel
from tests.multiagent.environments import Duel, Guests, Listed, Talkers, Walkers
from tests.multiagent.oracle import MODES, check_equal, sampled
from tests.support.comparison import assert_names_row

MODES_OF_FAULTS = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)


def make(env_fns, **keywords):
    keywords.setdefault("executor", "inline")
    return cartwheel.ParallelVectorEnv(env_fns, **keywords)


def actions_of(envs, value=0.0):
    return {name: np.full((envs.num_envs, 1), value) for name in envs.possible_agents}


def values(by_agent):
    return [column.tolist() for column in by_agent.values()]


@MODES_OF_FAULTS
def test_a_failed_row_truncates_the_agents_that_lived_and_no_other(mode):
    # Row 1 fails in step 3, when its walker 0 has ended by step 2.
    with make(
        [lambda: Walkers(fails_at=9), lambda: Walkers(fails_at=3)],
        on_error="restart",
        autoreset_mode=mode,
    ) as envs:
        envs.reset(seed=[2, 0])
        for _ in range(2):
            _, _, terminations, _, _ = envs.step(actions_of(envs, 1.0))
        assert values(terminations) == [[False, True], [False, False], [False, False]]
        observations, rewards, terminations, truncations, infos = envs.step(actions_of(envs, 1.0))
        assert infos["env_error"][1].startswith("OSError")
        assert values(rewards) == [[1, 0], [11, 0], [21, 0]]
        assert values(terminations) == [[False, False]] * 3
        assert values(truncations) == [[False, False], [False, True], [False, True]]
        assert values(infos["acted"]) == [[True, False]] * 3
        assert infos["episode_over"].tolist() == [False, True]
        if mode.value == "SameStep":
            assert values(infos["present"]) == [[True, True]] * 3
            assert values(infos["_final_obs"])[1] == [False, True]
            assert infos["final_obs"]["walker_1"][1].tolist() == [1, 2, 1]
            assert observations["walker_1"][1].tolist() == [1, 0, 0]
            return
        assert values(infos["present"])[1:] == [[True, True]] * 2
        assert observations["walker_1"][1].tolist() == [1, 2, 1]
        if mode.value == "NextStep":
            observations, _, _, truncations, infos = envs.step(actions_of(envs))
            assert values(infos["acted"])[1] == [True, False]
            assert values(truncations)[1] == [False, False]
            assert infos["episode_over"].tolist() == [False, False]
        else:
            observations, infos = envs.reset(options={"reset_mask": infos["episode_over"]})
        assert observations["walker_1"][1].tolist() == [1, 0, 0]


class Ducks(Walkers):
    """Walkers with other names."""

    def __init__(self):
        super().__init__()
        self.possible_agents = [f"duck_{number}" for number in range(3)]


def test_a_replacement_has_the_agents_of_the_first_in_their_order():
    made = iter([Walkers(fails_at=1), Walkers(fails_at=1, order=-1), Ducks()])
    with make([lambda: next(made)], on_error="restart") as envs:
        envs.reset(seed=[0])
        envs.step(actions_of(envs))
        observations = envs.step(actions_of(envs))[0]
        assert [observed[0, 0] for observed in observations.values()] == [0, 1, 2]
        with pytest.raises(ValueError, match=r"that it had before, \['walker_0', .*'duck_0'"):
            envs.step(actions_of(envs))


def turned_once_made(path):
    order = -1 if path.exists() else 1
    path.touch()
    return Walkers(order=order)


def test_a_restarted_worker_whose_agents_are_in_another_order_is_refused(tmp_path):
    env_fn = partial(turned_once_made, tmp_path / "made")
    with make([env_fn], executor="process", on_worker_death="restart") as envs:
        envs.reset(seed=[0])
        os.kill(envs.processes[0].pid, signal.SIGKILL)
        envs.processes[0].join(20)
        with pytest.raises(RuntimeError, match=r"the agents of .* changed when it was restarted"):
            envs.step(actions_of(envs))


@MODES_OF_FAULTS
def test_rows_of_a_worker_that_died_are_truncated(mode):
    with make(
        [Walkers] * 2,
        executor="process",
        num_workers=2,
        on_worker_death="restart",
        autoreset_mode=mode,
    ) as envs:
        envs.reset(seed=2)
        for _ in range(2):
            _, _, terminations, _, _ = envs.step(actions_of(envs))
        assert values(terminations) == [[False, True], [False, False], [False, False]]
        os.kill(envs.processes[1].pid, signal.SIGKILL)
        envs.processes[1].join(20)
        _, rewards, _, truncations, infos = envs.step(actions_of(envs, 1.0))
        assert infos["worker_restarted"].tolist() == [False, True]
        assert values(rewards) == [[1, 0], [11, 0], [21, 0]]
        # Walker 0 of row 1 had ended before.
        assert values(truncations) == [[False, False], [False, True], [False, True]]
        assert values(infos["acted"]) == [[True, False]] * 3
        assert infos["episode_over"].tolist() == [False, True]


def test_frozen_rows_repeat_what_they_show_and_do_not_act():
    with make([Walkers] * 2, autoreset_mode="disabled", on_done="freeze") as envs:
        envs.reset(seed=[0, 2])
        for _ in range(4):
            last = envs.step(actions_of(envs, 1.0))
        assert last[4]["episode_over"].tolist() == [True, False]
        observations, rewards, terminations, _, infos = envs.step(actions_of(envs, 1.0))
        assert observations["walker_2"].tolist() == [[2, 4, 1], [2, 5, 1]]
        assert values(rewards) == [[0, 0], [0, 11], [0, 21]]
        assert terminations["walker_2"].tolist() == [True, False]
        assert values(infos["acted"]) == [[False, False], [False, True], [False, True]]
        assert infos["present"]["walker_2"].tolist() == [True, True]
        assert infos["episode_over"].tolist() == [False, False]
        envs.send(actions_of(envs))
        infos = envs.recv()[4]
        assert values(infos["acted"]) == [[False, False], [False, False], [False, True]]
        assert infos["episode_over"].tolist() == [False, True]
        envs.step_async(actions_of(envs))
        infos = envs.step_wait()[4]
        assert values(infos["acted"]) == [[False, False]] * 3


@pytest.mark.parametrize("dies", [False, True], ids=["raises", "dies"])
def test_a_frozen_row_repeats_the_flags_of_its_failure(dies):
    # Walker 0 has ended by step 2. Its environment shows this again, a new environment does not.
    env_fn = Walkers if dies else partial(Walkers, fails_at=3)
    executor = {"executor": "process", "on_worker_death": "restart"} if dies else {}
    with make(
        [env_fn],
        autoreset_mode="disabled",
        on_done="freeze",
        on_error="restart",
        states="pickle",
        **executor,
    ) as envs:
        envs.reset(seed=[0])
        for _ in range(2):
            envs.step(actions_of(envs, 1.0))
        if dies:
            os.kill(envs.processes[0].pid, signal.SIGKILL)
            envs.processes[0].join(20)
        failed = envs.step(actions_of(envs, 1.0))
        assert values(failed[2]) == [[False]] * 3
        assert values(failed[3]) == [[False], [True], [True]]
        rows, state = envs.get_state(), pickle.loads(pickle.dumps(envs.state_dict()))

        def begin_anew():
            envs.reset(options={"reset_mask": np.array([True])})
            _, _, terminations, truncations, _ = envs.step(actions_of(envs, 1.0))
            assert values(terminations) == values(truncations) == [[False]] * 3

        loads = (
            lambda: None,
            lambda: envs.load_state_dict(state),
            lambda: envs.set_state([0], rows),
        )
        for load in loads:
            load()
            again = envs.step(actions_of(envs, 1.0))
            assert values(again[2]) == values(failed[2])
            assert values(again[3]) == values(failed[3])
            begin_anew()


def test_a_frozen_row_that_was_loaded_after_a_failure_shows_the_flags_of_its_state():
    frozen = {"autoreset_mode": "disabled", "on_done": "freeze", "states": "pickle"}
    with make([Walkers], **frozen) as envs:
        envs.reset(seed=[0])
        for _ in range(4):
            last = envs.step(actions_of(envs, 1.0))
        saved = envs.state_dict()
    assert values(last[2]) == [[False], [False], [True]]
    with make([lambda: Walkers(fails_at=1)], on_error="restart", **frozen) as envs:
        envs.reset()
        envs.step(actions_of(envs))
        envs.load_state_dict(saved)
        assert values(envs.step(actions_of(envs))[2]) == values(last[2])


def test_frozen_rows_in_flight_stay_frozen_whatever_is_asked_meanwhile():
    with make([Walkers] * 2, autoreset_mode="disabled", on_done="freeze", batch_size=1) as envs:
        envs.send_reset(seed=[0, 2])
        assert [envs.recv()[4]["env_index"][0] for _ in range(2)] == [0, 1]
        for _ in range(4):
            envs.send(actions_of(envs), [0, 1])
            infos = [envs.recv()[4] for _ in range(2)]
        assert [found["episode_over"][0] for found in infos] == [True, False]
        one = {name: action[:1] for name, action in actions_of(envs).items()}
        envs.send(one, [0])
        envs.send_reset(options={"env_index": [1]})
        shown = {int(found["env_index"][0]): found for found in (envs.recv()[4], envs.recv()[4])}
        assert not shown[0]["episode_over"][0]
        assert values(shown[0]["acted"]) == [[False]] * 3
        assert values(shown[1]["present"]) == [[True]] * 3
    with make([lambda: Walkers(1)], autoreset_mode="disabled", on_done="freeze") as envs:
        envs.reset(seed=0)
        envs.step(actions_of(envs))
        envs.send(actions_of(envs))
        with pytest.raises(gym.error.AlreadyPendingCallError):
            envs.step(actions_of(envs))
        infos = envs.recv()[4]
        assert infos["episode_over"].tolist() == infos["acted"]["walker_0"].tolist() == [True]


@MODES_OF_FAULTS
def test_a_limit_truncates_every_agent_that_lives(mode):
    with make([Walkers] * 2, max_episode_steps=3, autoreset_mode=mode) as envs:
        envs.reset(seed=0)
        for _ in range(3):
            _, rewards, terminations, truncations, infos = envs.step(actions_of(envs))
        assert values(terminations) == [[False, True], [True, False], [False, False]]
        assert values(truncations) == [[False, False], [False, True], [True, True]]
        assert values(infos["acted"])[0] == [False, True]
        assert values(rewards)[2] == [20, 20]
        assert infos["episode_over"].tolist() == [True, True]


def test_a_limit_of_repetitions_counts_each_of_them():
    with make([Walkers], max_episode_steps=4, action_repeat=2) as envs:
        envs.reset(seed=2)
        assert not envs.step(actions_of(envs))[4]["episode_over"][0]
        _, _, _, truncations, infos = envs.step(actions_of(envs))
        assert infos["episode_over"][0]
        # Walker 0 ends with the fourth repetition.
        assert values(truncations) == [[False], [True], [True]]


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_rows_that_are_sent_are_received_with_their_agents(executor):
    with make([Walkers] * 4, executor=executor, num_workers=2, batch_size=2) as envs:
        envs.send_reset(seed=[0, 0, 2, 2])
        times = np.zeros(4)
        for _ in range(12):
            observations, rewards, _, _, infos = envs.recv()
            rows = infos["env_index"]
            assert (observations["walker_1"][infos["present"]["walker_1"], 0] == 1).all()
            assert rewards["walker_2"].shape == infos["episode_over"].shape == (len(rows),)
            times[rows] = np.where(infos["acted"]["walker_2"], times[rows] + 1, 0)
            shown = infos["present"]["walker_2"]
            assert (observations["walker_2"][shown, 1] == times[rows][shown]).all()
            actions = {name: np.zeros((len(rows), 1)) for name in envs.possible_agents}
            envs.send(actions, rows)
        while envs.in_flight:
            envs.recv()


def test_steps_and_resets_of_some_rows_are_those_of_their_environments():
    with make([Walkers] * 3, full_batch=False) as envs:
        envs.reset(seed=0)
        actions = {name: np.ones((2, 1)) for name in envs.possible_agents}
        observations, rewards, _, _, infos = envs.step(actions, [2, 0])
        assert infos["env_index"].tolist() == [2, 0]
        assert rewards["walker_1"].tolist() == [11, 11]
        observations, infos = envs.reset(options={"env_index": [1]})
        assert observations["walker_1"].tolist() == [[1, 0, 0]]
        mask = np.array([True, False, False])
        observations, infos = envs.reset(options={"reset_mask": mask})
        assert observations["walker_1"][:, 1].tolist() == [0, 0, 1]
        assert values(infos["present"]) == [[True] * 3] * 3


class Kept(Duel):
    """Saves itself."""

    def get_state(self):
        return vars(self)

    def set_state(self, state):
        vars(self).update(state)


def ordered():
    """PettingZoo's wrapper refuses steps before a reset, and its conversion has no agents then."""
    return OrderEnforcingWrapper(Kept())


@pytest.mark.parametrize(
    ("env_fn", "executor"), [(Guests, "inline"), (Guests, "process"), (ordered, "inline")]
)
def test_a_loaded_state_continues_bit_for_bit(env_fn, executor):
    keywords = {"executor": executor, "autoreset_mode": "same_step"}
    with make([env_fn] * 3, **keywords) as envs, make([env_fn] * 3, **keywords) as others:
        rng = np.random.default_rng(1)
        envs.reset(seed=5)
        for _ in range(7):
            shown = envs.step(sampled(envs, rng))
        observations = others.load_state_dict(envs.state_dict())
        check_equal(observations, shown[0], ())
        for _ in range(20):
            actions = sampled(envs, rng)
            for one, other in zip(envs.step(actions), others.step(actions), strict=True):
                check_equal(other, one, ())
        observations, infos = others.set_state([2], envs.get_state([0]))
        assert infos["env_index"].tolist() == [2]


def test_a_loaded_state_shows_observations_that_were_converted():
    with make([Listed] * 2, states="pickle") as envs:
        envs.reset(seed=0)
        shown = envs.step(actions_of(envs))[0]
        state = envs.state_dict()
        envs.step(actions_of(envs))
        check_equal(envs.load_state_dict(state), shown, ())


def test_environments_without_states_are_refused_by_name_and_pickled_if_asked():
    with make([Walkers]) as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match=r"environments\.Walkers, cannot be saved: it has no"):
            envs.get_state()
    with make([Walkers] * 2, states="pickle") as envs:
        envs.reset(seed=0)
        envs.step(actions_of(envs))
        state = envs.state_dict()
        expected = tuple(envs.step(actions_of(envs))[0] for _ in range(6))
        envs.load_state_dict(state)
        check_equal(tuple(envs.step(actions_of(envs))[0] for _ in range(6)), expected, ())


def test_text_that_rows_say_last_is_in_the_final_observations():
    with make([Talkers] * 2, autoreset_mode="same_step") as envs:
        envs.reset()
        for _ in range(4):
            observations, _, _, _, infos = envs.step({"a": ("x", "yz"), "b": ("", "")})
        assert observations["a"] == ("hello", "hello")
        assert infos["final_obs"]["a"] == ("x", "yz")
        assert values(infos["_final_obs"]) == [[True, True], [False, False]]


class Overlong(Walkers):
    """The last observation of walker 2 is too long."""

    def observe(self, agent, action):
        observation = super().observe(agent, action)
        return np.append(observation, 0) if (agent, self.t) == ("walker_2", 4) else observation


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_a_large_last_observation_that_does_not_fit_names_the_agent(executor, monkeypatch):
    monkeypatch.setattr("cartwheel.multiagent.pool.MAX_DENSE_BYTES", -1)
    with make([Overlong] * 2, executor=executor, autoreset_mode="same_step") as envs:
        envs.reset(seed=[0, 0])
        for _ in range(3):
            envs.step(actions_of(envs))
        with pytest.raises(ValueError, match=r"agent 'walker_2' must have the shape \(3,\)"):
            envs.step(actions_of(envs))


class Stubborn(Walkers):
    """A reset fails if it is in ``fails``, by its number."""

    def __init__(self, fails):
        super().__init__()
        self.fails, self.resets = fails, 0

    def reset(self, seed=None, options=None):
        self.resets += 1
        if self.resets in self.fails:
            self.fails.remove(self.resets)
            raise OSError("jammed")
        return super().reset(seed, options)


def test_the_last_step_of_an_episode_stands_though_the_reset_after_it_failed():
    fails = {2}
    with make([lambda: Stubborn(fails)], on_error="restart", autoreset_mode="same_step") as envs:
        envs.reset(seed=[0])
        for _ in range(3):
            envs.step(actions_of(envs))
        _, rewards, terminations, truncations, infos = envs.step(actions_of(envs, 1.0))
        assert infos["env_error"][0] == "OSError: jammed"
        assert values(terminations) == [[False], [False], [True]]
        assert values(truncations) == [[False]] * 3
        assert values(rewards) == [[0], [0], [21]]
        assert values(infos["acted"]) == [[False], [False], [True]]
        assert infos["final_obs"]["walker_2"].tolist() == [[2, 4, 1]]
        assert values(infos["present"]) == [[True]] * 3


class Stretched(Walkers):
    """The observation of walker 2 is too long in the second step."""

    def observe(self, agent, action):
        observation = super().observe(agent, action)
        return np.append(observation, 0) if (agent, self.t) == ("walker_2", 2) else observation


def test_a_row_whose_observation_is_refused_shows_all_of_the_one_before():
    with make([Stretched], on_error="restart") as envs:
        envs.reset(seed=[2])
        before = envs.step(actions_of(envs, 1.0))[0]
        shown, _, _, truncations, infos = envs.step(actions_of(envs, -1.0))
        assert "agent 'walker_2' must have the shape (3,)" in infos["env_error"][0]
        check_equal(shown, before, ())
        assert values(truncations) == [[True]] * 3


@pytest.mark.parametrize("mode", MODES[1:], ids=lambda mode: mode.value)
def test_workers_that_are_replaced_between_episodes_change_no_result(mode):
    keywords = {"autoreset_mode": mode, "executor": "process"}
    with (
        make([Walkers] * 2, **keywords, max_episodes_per_worker=1) as envs,
        make([Walkers] * 2, **keywords) as others,
    ):
        processes = {process.pid for process in envs.processes}
        restarted = 0
        check_equal(envs.reset(seed=3)[0], others.reset(seed=3)[0], ())
        for _ in range(9):
            found, wanted = (one.step(actions_of(one)) for one in (envs, others))
            restarted += int(found[4].pop("restarted", np.zeros(2)).sum())
            found[4].pop("_restarted", None)
            for one, other in zip(found, wanted, strict=True):
                check_equal(one, other, ())
            if mode.value == "Disabled" and found[4]["episode_over"].any():
                options = {"reset_mask": found[4]["episode_over"]}
                reset = envs.reset(options=options)
                restarted += int(reset[1].pop("restarted", np.zeros(2)).sum())
                check_equal(reset[0], others.reset(options=options)[0], ())
        assert restarted >= 2
        assert not processes & {process.pid for process in envs.processes}


def test_a_step_of_agents_that_take_turns_needs_a_reset_first():
    with make([Duel, Duel]) as envs:
        actions = {name: np.zeros(2, int) for name in envs.possible_agents}
        with pytest.raises(gym.error.ResetNeeded, match="must be reset before its first step"):
            envs.step(actions)
        envs.reset(seed=1)
        envs.step(actions)


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_rows_in_flight_that_rest_do_so_whatever_others_do_meanwhile(executor):
    with make(
        [Walkers] * 4, autoreset_mode="disabled", on_done="freeze", executor=executor
    ) as envs:
        envs.reset(seed=[0, 0, 2, 0])
        for _ in range(4):
            envs.step(actions_of(envs))
        one = {name: np.zeros((1, 1)) for name in envs.possible_agents}
        envs.send(one, [0])
        envs.send(one, [3])
        with pytest.raises(ValueError, match="'walker_0'"):
            envs.step({**one, "walker_0": np.zeros((2, 1))}, [2])
        envs.send_reset(options={"env_index": [1]})
        results = [envs.step(one, [2])[4]]  # of rows in flight, too
        while envs.in_flight:
            results.append(envs.recv()[4])
        seen = {}
        for infos in results:
            acted = np.array([*infos["acted"].values()]).T.tolist()
            rows = zip(acted, infos["episode_over"].tolist(), strict=True)
            seen |= dict(zip(infos["env_index"].tolist(), rows, strict=True))
    rests = [False] * 3, False
    assert seen == {0: rests, 1: rests, 2: ([False, True, True], False), 3: rests}


class Worded(Walkers):
    """The reward of walker 1 is a word, in the first step or once walker 0 has ended."""

    def __init__(self, first):
        super().__init__()
        self.first = first

    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        if self.t == self.first:
            rewards["walker_1"] = "much"
        return observations, rewards, *rest


@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_reward_that_is_not_a_number_is_named_with_its_agent_and_row(first):
    with make([Walkers, lambda: Worded(first)]) as envs:
        envs.reset(seed=0)
        for _ in range(first - 1):
            envs.step(actions_of(envs))
        with pytest.raises(TypeError, match=r"must be numbers, got .*'walker_1': 'much'") as error:
            envs.step(actions_of(envs))
        assert_names_row(error.value, 1)
