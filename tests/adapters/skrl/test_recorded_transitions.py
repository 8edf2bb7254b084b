"""skrl stores the transitions of episodes whose every observation is known."""

import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.wrappers import NumpyToTorch
from tests.support.one_thread import one_thread

pytestmark = pytest.mark.torch
NUM_ENVS, STEPS = 3, 24
SPACES = {
    "array": gym.spaces.Box(-1e6, 1e6, (2,), np.float32),
    "dict": gym.spaces.Dict(
        episode=gym.spaces.Box(-1e6, 1e6, (1,), np.float32), step=gym.spaces.Discrete(100)
    ),
}


class Counting(gym.Env):
    """Shows the number of the episode and of the step; a reward is the number of the step."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, length, form="array", *, terminates=False):
        self.length, self.form, self.terminates = length, form, terminates
        self.observation_space = SPACES[form]
        self.episode = -1

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self.shown(), {}

    def step(self, action):  # noqa: ARG002 - every action does the same
        self.time += 1
        over = self.time >= self.length
        ends = over and self.terminates, over and not self.terminates
        return self.shown(), float(self.time), *ends, {}

    def shown(self):
        if self.form == "dict":
            return {"episode": np.array([self.episode], np.float32), "step": self.time}
        return np.array([self.episode, self.time], np.float32)


@pytest.fixture(scope="module")
def skrl():
    """The parts of skrl that the tests use, by their names."""
    one_thread()

    class Parts:
        wrap_env = staticmethod(importlib.import_module("skrl.envs.wrappers.torch").wrap_env)
        DQN = importlib.import_module("skrl.agents.torch.dqn").DQN
        PPO = importlib.import_module("skrl.agents.torch.ppo").PPO
        Trainer = importlib.import_module("skrl.trainers.torch").SequentialTrainer
        RandomMemory = importlib.import_module("skrl.memories.torch").RandomMemory
        models = importlib.import_module("skrl.models.torch")
        ours = importlib.import_module("cartwheel.skrl").TrueNextObservations

    return Parts


def stored(skrl, envs, base, steps=STEPS):
    """The transitions in the memory of an agent after its trainer has made ``steps`` steps."""

    torch = importlib.import_module("torch")

    class Q(skrl.models.DeterministicMixin, skrl.models.Model):
        def __init__(self, observation_space, action_space):
            skrl.models.Model.__init__(
                self, observation_space=observation_space, action_space=action_space, device="cpu"
            )
            skrl.models.DeterministicMixin.__init__(self)
            self.net = torch.nn.LazyLinear(2)

        def compute(self, inputs, role):  # noqa: ARG002 - skrl's signature
            return self.net(inputs["observations"]), {}

    env = skrl.wrap_env(envs, verbose=False)
    models = {
        name: Q(env.observation_space, env.action_space)
        for name in ("q_network", "target_q_network")
    }
    for model in models.values():
        model.init_state_dict(role="q_network")
    memory = skrl.RandomMemory(memory_size=steps, num_envs=env.num_envs, device="cpu")
    agent = base(
        models=models,
        memory=memory,
        observation_space=env.observation_space,
        action_space=env.action_space,
        device="cpu",
        cfg={
            "learning_starts": steps + 1,
            "experiment": {"write_interval": 0, "checkpoint_interval": 0},
        },
    )
    cfg = {"timesteps": steps, "headless": True, "disable_progressbar": True}
    trainer = skrl.Trainer(cfg={**cfg, "close_environment_at_exit": False}, env=env, agents=agent)
    trainer.train()
    env.close()
    names = ("observations", "rewards", "next_observations", "terminated")
    columns = [memory.get_tensor_by_name(name).numpy() for name in names]
    return [np.swapaxes(column, 0, 1) for column in columns]  # [N, steps, …]


def lived(length, steps, *, terminates):
    """The transitions of one row, as they must be: (episode, time) before and after, reward, end.

    Written by hand for episodes of a known length, without any autoreset.
    """
    rows = [divmod(step, length) for step in range(steps)]
    return [
        ((episode, time), time + 1, (episode, time + 1), terminates and time + 1 == length)
        for episode, time in rows
    ]


@pytest.mark.parametrize("form", ["array", "dict"])
@pytest.mark.parametrize("final_obs", ["object", "dense"])
@pytest.mark.parametrize("lengths", [(1, 1, 1), (3, 3, 3), (2, 5, 1)])
def test_a_memory_holds_the_transitions_that_were(skrl, lengths, final_obs, form):
    class TrueDQN(skrl.ours, skrl.DQN):
        pass

    for terminates in (False, True):
        fns = [lambda n=n, t=terminates: Counting(n, form, terminates=t) for n in lengths]
        envs = cartwheel.VectorEnv(
            fns, executor="inline", autoreset_mode="same_step", final_obs=final_obs
        )
        columns = stored(skrl, envs, TrueDQN)
        for row, length in enumerate(lengths):
            expected = lived(length, STEPS, terminates=terminates)
            for step, (before, reward, after, ends) in enumerate(expected):
                shown, rewards, next_shown, terminated = (column[row, step] for column in columns)
                assert tuple(shown) == before
                assert rewards.item() == reward
                assert tuple(next_shown) == after
                assert terminated.item() == ends


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor:UserWarning")  # skrl's own
@pytest.mark.parametrize("form", ["array", "dict"])
@pytest.mark.parametrize("final_obs", ["object", "dense"])
def test_tensors_are_recorded_as_the_arrays_are_that_they_were_made_of(skrl, final_obs, form):
    class TrueDQN(skrl.ours, skrl.DQN):
        pass

    def made():
        fns = [lambda n=n: Counting(n, form, terminates=n == 2) for n in (1, 2, 4)]
        keywords = {"autoreset_mode": "same_step", "final_obs": final_obs}
        return cartwheel.VectorEnv(fns, executor="inline", **keywords)

    tensors = stored(skrl, NumpyToTorch(made()), TrueDQN)
    for one, other in zip(tensors, stored(skrl, made(), TrueDQN), strict=True):
        np.testing.assert_array_equal(one, other)


def test_gymnasiums_own_environments_are_recorded_in_the_same_way(skrl):
    class TrueDQN(skrl.ours, skrl.DQN):
        pass

    fns = [lambda n=n: Counting(n) for n in (1, 2, 4)]
    ours = cartwheel.VectorEnv(fns, num_workers=2, executor="process", autoreset_mode="same_step")
    theirs = SyncVectorEnv(fns, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    for mine, other in zip(stored(skrl, ours, TrueDQN), stored(skrl, theirs, TrueDQN), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_without_it_skrl_stores_the_first_observation_of_another_episode(skrl):
    # The reason for the class. If this fails, skrl has learned of autoreset modes: remove ours.
    fns = [lambda: Counting(3)] * 2
    same = cartwheel.VectorEnv(fns, executor="inline", autoreset_mode="same_step")
    _, _, next_shown, _ = stored(skrl, same, skrl.DQN, 3)
    assert tuple(next_shown[0, 2]) == (1, 0)
    late = cartwheel.VectorEnv(fns, executor="inline", autoreset_mode="next_step")
    shown, rewards, next_shown, terminated = stored(skrl, late, skrl.DQN, 4)
    junk = shown[0, 3], rewards[0, 3].item(), next_shown[0, 3], terminated[0, 3].item()
    assert (tuple(junk[0]), junk[1], tuple(junk[2]), junk[3]) == ((0, 3), 0, (1, 0), False)


def test_other_modes_are_refused_where_the_first_episode_ends(skrl):
    class TrueDQN(skrl.ours, skrl.DQN):
        pass

    envs = cartwheel.VectorEnv([lambda: Counting(2)] * 3, executor="inline")
    with pytest.raises(ValueError, match=r"rows \[0, 1, 2\] ended.*autoreset_mode='same_step'"):
        stored(skrl, envs, TrueDQN)
    envs.close()


def test_a_row_that_failed_leads_to_its_last_observation_and_is_not_terminated(skrl):
    class Failing(Counting):
        def step(self, action):
            if self.time == 2:
                raise RuntimeError("a part is loose")
            return super().step(action)

    class TrueDQN(skrl.ours, skrl.DQN):
        pass

    envs = cartwheel.VectorEnv(
        [lambda: Failing(9)] * 2,
        executor="inline",
        autoreset_mode="same_step",
        on_error="restart",
        max_restarts=None,
    )
    shown, rewards, next_shown, terminated = stored(skrl, envs, TrueDQN, 6)
    for row in range(2):
        assert shown[row].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
        assert next_shown[row].tolist() == [[0, 1], [0, 2], [0, 2], [1, 1], [1, 2], [1, 2]]
        assert rewards[row, :, 0].tolist() == [1, 2, 0] * 2
    assert not terminated.any()


def test_a_row_whose_last_observation_was_lost_with_its_worker_keeps_the_one_shown(skrl):
    recorded = []

    class Agent:
        observation_space, device = SPACES["array"], "cpu"

        def record_transition(self, *, next_observations, **_):
            recorded.append(next_observations.tolist())

    class TrueAgent(skrl.ours, Agent):
        pass

    torch = importlib.import_module("torch")
    shown = torch.zeros(2, 2)
    lost = np.array([False, True])
    infos = {"worker_restarted": lost, "_worker_restarted": lost}
    final = np.array([np.array([3, 4], np.float32), None], object)
    others = {"final_obs": final, "_final_obs": ~lost}
    for over, told in ((np.ones(2, bool), {**infos, **others}), (lost, infos)):
        flags = torch.from_numpy(over)[:, None]
        TrueAgent().record_transition(
            next_observations=shown, terminated=~flags & False, truncated=flags, infos=told
        )
    assert recorded == [[[3, 4], [0, 0]], [[0, 0], [0, 0]]]
    assert not shown.any()


def test_the_wrong_order_of_classes_is_refused():
    true = importlib.import_module("cartwheel.skrl").TrueNextObservations
    dqn = importlib.import_module("skrl.agents.torch.dqn").DQN
    with pytest.raises(TypeError, match=r"`class Late\(TrueNextObservations, DQN\)`"):
        type("Late", (dqn, true), {})
    own = {"record_transition": lambda self, **step: super(first, self).record_transition(**step)}
    first = type("First", (true, dqn), own)
    assert issubclass(type("Second", (first,), {}), true)
    for other in ("jax", "warp"):
        base = type("DQN", (), {"__module__": f"skrl.agents.{other}.dqn.dqn"})
        with pytest.raises(TypeError, match=rf"skrl.agents.torch, got DQN of skrl.agents.{other}"):
            type("Other", (true, base), {})


def test_several_agents_are_refused(skrl):
    class Agent:
        def record_transition(self, **_):
            raise AssertionError("recorded")

    class TrueAgent(skrl.ours, Agent):
        pass

    torch = importlib.import_module("torch")
    ends = torch.ones(2, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match="2 rows and the infos are those of 4"):
        TrueAgent().record_transition(
            next_observations=torch.zeros(2, 2),
            terminated=ends,
            truncated=ends,
            infos={"_final_obs": np.ones(4, np.bool_)},
        )
