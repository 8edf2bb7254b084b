"""Rollouts of rows of agents: steps of absent agents are not transitions."""

import pickle

import numpy as np
import pytest

import cartwheel
from tests.multiagent.environments import Walkers
from tests.multiagent.oracle import Alone
from tests.multiagent.test_lost_infos import losing


def halves(observations):
    return observations[:, :1] / 2


def half_of(columns):
    """The action of one agent; any for an absent one, which is ignored."""
    observation = columns["observation"]
    return np.zeros(1) if observation is None else halves(observation[None])[0]


@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_transitions_are_those_of_the_agents_that_acted(mode, executor):
    with cartwheel.ParallelVectorEnv([Walkers] * 2, autoreset_mode=mode, executor=executor) as envs:
        collector = cartwheel.Collector(envs.as_rows(), halves, 15, seed=0, progress=False)
        rollouts = [collector.collect(), collector.collect()]
        alone = [Alone(Walkers(), envs.autoreset_mode) for _ in range(2)]
        shown = [row.reset(seed) for seed, row in enumerate(alone)]
        for rollout in rollouts:
            for step in range(15):
                for row, env in enumerate(alone):
                    actions = {name: half_of(of) for name, of in shown[row].items()}
                    shown[row] = env.step(actions)
                    for place, of in enumerate(shown[row].values()):
                        at = step, 3 * row + place
                        assert rollout.valid[at] == of["acted"], at
                        assert rollout.rewards[at] == of["reward"], at
                        assert rollout.terminated[at] == of["terminated"], at
    assert not rollouts[1].valid.all()
    assert rollouts[1].valid.any()


class Halting(Walkers):
    """Walker 1 is cut short where the others are terminated."""

    def step(self, actions):
        observations, rewards, over, truncations, infos = super().step(actions)
        if over.get("walker_1"):
            over["walker_1"], truncations["walker_1"] = False, True
        return observations, rewards, over, truncations, infos


def value(observations):
    """A value for each observation."""
    return np.sin(observations @ [1.0, 2.0, 3.0])


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_collector_of_rows_of_agents_goes_on_from_a_state_of_another(mode):
    def made():
        keywords = {"autoreset_mode": mode, "executor": "inline", "states": "pickle"}
        return cartwheel.ParallelVectorEnv([Halting] * 2, **keywords)

    with made() as envs, made() as others:
        collector = cartwheel.Collector(envs.as_rows(), halves, 3, seed=1, progress=False)
        other = cartwheel.Collector(others.as_rows(), halves, 3, progress=False)
        for saved in range(12):
            expected = collector.collect()
            if saved:
                found = other.collect()
                for name in ("observations", "actions", "rewards", "terminated", "truncated"):
                    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
                for name in ("valid", "is_first", "final_observations", "final_index"):
                    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
                np.testing.assert_equal(vars(found.carry), vars(expected.carry))
            other.load_state_dict(pickle.loads(pickle.dumps(collector.state_dict())))
        state = collector.state_dict()
        with pytest.raises(ValueError, match="one of kind 'collector', not of 'agent_rows'"):
            others.as_rows().load_state_dict(state)
        fewer = cartwheel.ParallelVectorEnv([Halting], executor="inline")
        with fewer, pytest.raises(ValueError, match=r"num_envs=6; it cannot be .* num_envs=3"):
            fewer.as_rows().load_state_dict(state["envs"])


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_advantages_and_returns_are_those_of_the_episodes_of_each_agent(mode):
    gamma, lam = 0.9, 0.8
    with cartwheel.ParallelVectorEnv([Halting] * 2, autoreset_mode=mode, executor="inline") as envs:
        rollout = cartwheel.Collector(envs.as_rows(), halves, 20, seed=0, progress=False).collect()
        rollout.set_values(value(rollout.value_inputs()))
        advantages, targets = rollout.gae(gamma, lam)
        sums = rollout.discounted_returns(gamma, bootstrap="never")
        alone = [Alone(Halting(), envs.autoreset_mode) for _ in range(2)]
        compared = 0
        for row, env in enumerate(alone):
            shown, trajectory = env.reset(row), {name: [] for name in envs.possible_agents}
            for step in range(20):
                before = shown
                shown = env.step({name: half_of(of) for name, of in shown.items()})
                last = shown.final or shown
                for name, of in shown.items():
                    if of["acted"]:
                        seen = before[name]["observation"], last[name]["observation"]
                        flags = of["terminated"], of["truncated"]
                        trajectory[name].append((step, *seen, of["reward"], *flags))
            for place, steps in enumerate(trajectory.values()):
                advantage = total = 0.0
                for step, seen, after, reward, terminated, truncated in reversed(steps):
                    if terminated or truncated:
                        advantage = total = 0.0
                    elif step == 19:  # the rollout ends before the episode
                        total = value(after.astype(float))
                    own = value(seen.astype(float))
                    ahead = 0.0 if terminated else value(after.astype(float))
                    advantage = reward + gamma * ahead - own + gamma * lam * advantage
                    total = reward + gamma * total
                    at = step, 3 * row + place
                    assert advantages[at] == pytest.approx(advantage, abs=1e-6), at
                    assert targets[at] == pytest.approx(advantage + own, abs=1e-6), at
                    assert sums[at] == pytest.approx(total, abs=1e-6), at
                    compared += 1
    assert compared == rollout.valid.sum() > 60
    assert rollout.truncated.any()
    assert not rollout.valid.all()


class Quiet(Halting):
    """Walker 1 begins without an observation."""

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        del observations["walker_1"]
        return observations, infos


def seen_by(of):
    """The observation of an agent; zeros of one that has none."""
    return [0.0] * 3 if of["observation"] is None else of["observation"].tolist()


@pytest.mark.parametrize("steps", [1, 7, 21])
@pytest.mark.parametrize("made", [Halting, Quiet])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_parts_of_rollouts_and_beginnings_are_those_of_each_agent(mode, made, steps):
    """Transitions, episodes and marks, also where episodes go on in the next rollout."""
    firsts = []

    def policy(observations, env_index, first):
        firsts.append(first)
        assert env_index.tolist() == list(range(6))
        return halves(observations)

    with cartwheel.ParallelVectorEnv([made] * 2, autoreset_mode=mode, executor="inline") as envs:
        collector = cartwheel.Collector(
            envs.as_rows(), policy, steps, recurrent=True, seed=0, progress=False
        )
        moves, ended, rollouts = [[] for _ in range(6)], [[] for _ in range(6)], []
        while len(firsts) < 42:
            rollouts.append(rollout := collector.collect())
            assert rollout.windows(3).valid.sum() == rollout.valid.sum()
            found = rollout.transitions()
            for place, row in enumerate(found.env_index):
                observations = found.observations[place], found.next_observations[place]
                flags = found.terminated[place], found.truncated[place]
                moves[row].append(
                    (*(one.tolist() for one in observations), found.rewards[place], *flags)
                )
            for one in rollout.episodes(complete_only=True):
                flags = one.terminated, one.truncated
                ended[one.env_index].append((one.length, one.episode_return, *flags))
        alone = [Alone(made(), envs.autoreset_mode) for _ in range(2)]
    wanted, whole, began = [[] for _ in range(6)], [[] for _ in range(6)], []
    shown = [env.reset(seed) for seed, env in enumerate(alone)]
    running = [[] for _ in range(6)]
    for _ in range(42):
        marks = np.zeros(6, np.bool_)
        for number, env in enumerate(alone):
            before = shown[number]
            after = shown[number] = env.step({name: half_of(of) for name, of in before.items()})
            for place, (name, of) in enumerate(after.items()):
                if not of["acted"]:
                    continue
                row = 3 * number + place
                marks[row] = not running[row]
                last, flags = (after.final or after)[name], (of["terminated"], of["truncated"])
                wanted[row].append((seen_by(before[name]), seen_by(last), of["reward"], *flags))
                running[row].append(of["reward"])
                if any(flags):
                    whole[row].append((len(running[row]), sum(running[row]), *flags))
                    running[row] = []
        began.append(marks)
    assert moves == wanted
    assert ended == whole
    assert all(whole)
    valid = np.concatenate([rollout.valid for rollout in rollouts])
    assert not valid.all()
    np.testing.assert_array_equal(np.array(firsts)[valid], np.array(began)[valid])
    marked = np.concatenate([rollout.is_first[:-1] for rollout in rollouts])
    np.testing.assert_array_equal(marked, firsts)


class Returning(Walkers):
    """Walker 0 ends in step 2 and comes again in step 3."""

    def step(self, actions):
        observations, *rest = super().step(actions)
        if self.t == 3:
            self.agents.append("walker_0")
            observations["walker_0"] = self.observe("walker_0", 9)
        return observations, *rest


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_an_agent_that_ends_and_is_back_at_once_has_its_next_transition_and_beginning(mode):
    # Each episode has two steps: of three repetitions, in which walkers 0 and 1 end, and of one.
    with cartwheel.ParallelVectorEnv(
        [Returning], autoreset_mode=mode, executor="inline", action_repeat=3
    ) as envs:
        collector = cartwheel.Collector(envs.as_rows(), halves, 2, seed=[0], progress=False)
        rollout = collector.collect()
        assert rollout.valid.tolist() == [[True] * 3, [True, False, True]]
        assert rollout.terminated.tolist() == [[True, True, False], [True, False, True]]
        assert rollout.observations[1, 0].tolist() == [0, 3, 9]
        assert rollout.is_first[0].all()
        assert rollout.is_first[1][rollout.valid[1]].tolist() == [True, False]
        rollout.set_values(np.zeros(len(rollout.value_inputs())))
        advantages, _ = rollout.gae(1.0, 1.0)
        np.testing.assert_array_equal(advantages[1][rollout.valid[1]], rollout.rewards[1, ::2])
        assert advantages[0].tolist() == [*rollout.rewards[0, :2], rollout.rewards[:, 2].sum()]


def test_last_observations_of_agents_are_kept_for_values():
    with cartwheel.ParallelVectorEnv(
        [Walkers], autoreset_mode="same_step", executor="inline", max_episode_steps=3
    ) as envs:
        collector = cartwheel.Collector(envs.as_rows(), halves, 3, seed=[0], progress=False)
        rollout = collector.collect()
    assert rollout.final_index.tolist() == [[1, 0], [2, 1], [2, 2]]
    assert rollout.final_observations.tolist() == [[0, 2, 0], [1, 3, 0.5], [2, 3, 1]]
    assert rollout.truncated[2].tolist() == [False, False, True]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_steps_whose_infos_were_lost_are_transitions_of_agents_that_were_terminated_alone(mode):
    with losing(2, autoreset_mode=mode) as envs:
        collector = cartwheel.Collector(envs.as_rows(), halves, 3, seed=[2, 0], progress=False)
        rollout = collector.collect()
    assert rollout.valid[:2].tolist() == [[True] * 6, [True] * 4 + [False] * 2]
    assert rollout.terminated[1].tolist() == [False] * 3 + [True] + [False] * 2
    assert rollout.valid[2].tolist() == [True] * 3 + [False] + [True] * 2


def test_what_cannot_be_collected_or_evaluated_is_refused_with_a_way():
    with cartwheel.ParallelVectorEnv(
        [Walkers], autoreset_mode="disabled", executor="inline"
    ) as envs:
        with pytest.raises(TypeError, match="pass its `as_rows"):
            cartwheel.Collector(envs, halves, 3)
        with pytest.raises(ValueError, match="autoreset_mode='same_step'"):
            cartwheel.Collector(envs.as_rows(), halves, 3)
        with pytest.raises(TypeError, match="pass its `as_rows"):
            cartwheel.wrappers.RecordEpisodeStatistics(envs)
    with cartwheel.ParallelVectorEnv([Walkers], executor="inline") as envs:
        with pytest.raises(ValueError, match="count episodes of rows"):
            cartwheel.Collector(envs.as_rows(), halves, num_episodes=3)
        with pytest.raises(TypeError, match="pass the ParallelVectorEnv"):
            cartwheel.evaluate(envs.as_rows(), halves)
        with pytest.raises(TypeError, match="order='free'"):
            cartwheel.Collector(envs.as_rows(), halves, 3, order="free")
