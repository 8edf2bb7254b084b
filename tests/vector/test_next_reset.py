"""Seeds and options of the next automatic reset: as single environments that are reset so."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv, TranscriptEnv, transcripts
from tests.support.executors import EVERY_NATIVE, INLINE, NATIVE, PROCESS, THREAD, Executor
from tests.support.faulty import FaultyEnv, fault
from tests.support.in_parts import Oracle, Sender
from tests.support.oracle import N, S
from tests.support.stateful import TouchyWalkEnv, walk

POLE = Case("CartPole-v1", {"max_episode_steps": 5})
WIDE, NARROW = {"low": -0.2, "high": 0.2}, {"low": -0.01, "high": 0.01}
AUTOMATIC = pytest.mark.parametrize("mode", [N, S], ids=lambda mode: mode.value)


class Chosen(gym.Wrapper):
    """Its next reset without seed and options uses the keywords ``chosen``, once."""

    chosen = None

    def reset(self, *, seed=None, options=None):
        chosen, self.chosen = self.chosen, None
        if seed is not None or options is not None or chosen is None:
            return self.env.reset(seed=seed, options=options)
        return self.env.reset(**chosen)


def pole():
    return Chosen(POLE())


def choose(random, envs, singles, rows):
    """Chooses seeds and options for some of these rows; the same for the single environments."""
    rows = random.permutation(rows)[: random.integers(1, len(rows) + 1)].tolist()
    shared = random.random() < 0.5
    seed = [None if random.random() < 0.3 else int(random.integers(2**40)) for _ in rows]
    options = [[None, WIDE, NARROW, {}][random.integers(4)] for _ in rows]
    if shared:
        seed, options = int(random.integers(1000)), WIDE
    envs.next_reset(seed=seed, options=options, env_index=np.array(rows))
    for at, row in enumerate(rows):
        own = {"seed": seed + row, "options": options} if shared else None
        singles[row].chosen = own or {"seed": seed[at], "options": options[at]}


@AUTOMATIC
def test_automatic_resets_use_them_once_as_single_environments_do(build_anywhere, mode):
    envs = build_anywhere([POLE] * 5, autoreset_mode=mode)
    oracle, random = SyncVectorEnv([pole] * 5, autoreset_mode=mode), np.random.default_rng(3)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    used = 0
    for _ in range(60):
        if random.random() < 0.3:
            choose(random, envs, oracle.envs, range(5))
        if random.random() < 0.05:  # an explicit reset discards what was chosen for its rows
            mask = random.random(5) < 0.5
            mask[random.integers(5)] = True
            for env in np.array(oracle.envs)[mask]:
                env.chosen = None
            options = {"reset_mask": mask}
            assert_identical(
                envs.reset(seed=9, options=dict(options)), oracle.reset(seed=9, options=options)
            )
        before = sum(env.chosen is not None for env in oracle.envs)
        actions = random.integers(2, size=5)
        assert_identical(envs.step(actions), oracle.step(actions))
        used += before - sum(env.chosen is not None for env in oracle.envs)
    assert used > 10
    oracle.close()


@AUTOMATIC
@pytest.mark.parametrize("batch_size", [1, 3, 5])
def test_rows_that_are_sent_use_them_while_others_are_in_flight(build_any, mode, batch_size):
    envs = build_any([POLE] * 5, autoreset_mode=mode, batch_size=batch_size)
    oracle, random = Oracle([pole] * 5, mode), np.random.default_rng(batch_size)
    sender = Sender(envs, oracle)
    singles = [row.env for row in oracle.rows]
    sender.reset(range(5), [10, 11, 12, 13, 14])
    while sender.counts.min() < 40:
        if sender.idle and (not sender.sent or random.random() < 0.6):
            if random.random() < 0.4:
                choose(random, envs, singles, sender.idle)
            if random.random() < 0.05:
                sender.reset(
                    sender.idle, [int(seed) for seed in random.integers(99, size=len(sender.idle))]
                )
                continue
            rows = random.permutation(sender.idle)[: random.integers(1, len(sender.idle) + 1)]
            sender.step(rows.tolist(), random.integers(2, size=len(rows)))
        else:
            sender.receive()
    while sender.sent:
        sender.receive()
    oracle.close()


@AUTOMATIC
def test_rollouts_and_parts_of_a_step_use_them(build_any, mode):
    envs = build_any([POLE] * 3, autoreset_mode=mode)
    oracle, random = SyncVectorEnv([pole] * 3, autoreset_mode=mode), np.random.default_rng(0)
    envs.reset(seed=1)
    oracle.reset(seed=1)
    for _ in range(2):
        arrays = envs.rollout(8)
        choose(random, envs, oracle.envs, range(3))
        for _ in range(8):
            actions = random.integers(2, size=3)
            assert_identical(envs.step(actions), oracle.step(actions))
        choose(random, envs, oracle.envs, range(3))
        for _ in range(8):
            actions = random.integers(2, size=3)
            expected = oracle.step(actions)
            for rows in ([2], [0, 1]):
                observations = envs.step(actions[rows], np.array(rows))[0]
                assert_identical(observations, expected[0][rows])
        del arrays
    oracle.close()


@AUTOMATIC
@pytest.mark.parametrize(
    "executor", [INLINE, Executor("process", {"num_workers": 7}), THREAD], ids=str
)
def test_environments_get_copies_of_any_options_in_episodes_of_one_step(executor, mode):
    envs = executor(transcripts(1, 1, 1), autoreset_mode=mode)
    envs.reset()
    options = {"level": [1], "large": np.zeros(200_000)}
    envs.next_reset(options=options)
    options["level"].append(2)
    steps = [envs.step(np.zeros(3, int))[-1] for _ in range(4)]
    used = [infos["opt"][0][:15] for infos in steps if "opt" in infos]
    assert used == ["{'level': [1], ", *["None"] * (len(used) - 1)]
    assert len(used) == (2 if mode == N else 4)
    envs.close()


def test_a_later_choice_replaces_an_earlier_one_and_an_empty_one_takes_it_back(build_any):
    envs = build_any([POLE] * 4, autoreset_mode=S)
    envs.reset(seed=1)
    envs.next_reset(seed=100, options=WIDE)
    envs.step(np.zeros(4, int))  # delivers the first choice
    envs.next_reset(seed=[7, None], env_index=[3, 1])
    envs.next_reset(env_index=[2])
    for _ in range(5):
        envs.step(np.zeros(4, int))
    assert envs.np_random_seed == (100, 2, 3, 7)


@AUTOMATIC
def test_actions_through_the_channel_do_not_mix_with_them(mode):
    text = gym.spaces.Text(5)
    fns = [partial(_TextActions, text) for _ in range(3)]
    for executor in (INLINE, THREAD, PROCESS):
        envs = executor(fns, autoreset_mode=mode)
        envs.reset(seed=0)
        for round_ in range(3):
            envs.next_reset(seed=10 * round_)
            envs.step(("a", "b", "c"))
            envs.send(("d", "e"), [2, 1])
            envs.send(("f",), [0])
            while envs.in_flight:
                envs.recv()
        # Every second step of NEXT_STEP is a reset.
        heard = ("a" * 3, "b" * 3, "c" * 3) if mode == N else ("af" * 3, "be" * 3, "cd" * 3)
        assert envs.get_attr("heard") == heard
        assert envs.np_random_seed == (20, 21, 22)
        envs.close()


class _TextActions(TranscriptEnv):
    def __init__(self, space):
        super().__init__(1)
        self.action_space, self.heard = space, ""

    def step(self, action):
        self.heard += action
        return (*super().step(1)[:4], {})


@pytest.mark.parametrize("executor", [INLINE, THREAD, PROCESS, *EVERY_NATIVE], ids=str)
def test_wrong_arguments_change_nothing(executor):
    envs = executor([POLE] * 3, autoreset_mode=S)
    envs.reset(seed=1)
    envs.next_reset(seed=50)
    for keywords, error, words in [
        ({"seed": -1}, gym.error.Error, "greater or equal to zero"),
        ({"seed": [1, 2]}, ValueError, "length"),
        ({"seed": [1, 2], "env_index": [0]}, ValueError, "one entry for each of the 1 rows"),
        ({"seed": "7"}, TypeError, "`seed` must be None"),
        ({"options": [{}, {}]}, ValueError, "each of the 3 rows, got 2"),
        ({"options": 3}, TypeError, "a list with one dictionary or None"),
        ({"options": [None, 3, None]}, TypeError, "must be a dictionary"),
        ({"options": {"env_index": [0]}}, ValueError, "as `env_index` of `next_reset`"),
        ({"options": {"reset_mask": np.ones(3, bool)}}, ValueError, "cannot select rows"),
        ({"env_index": [3]}, ValueError, "row 3"),
        ({"env_index": [1, 1]}, ValueError, "twice"),
        ({"env_index": []}, ValueError, "empty"),
        ({"env_index": [0.5]}, TypeError, "integers"),
    ]:
        with pytest.raises(error, match=words):
            envs.next_reset(**keywords)
    for _ in range(5):
        envs.step(np.zeros(3, int))
    assert envs.np_random_seed == (50, 51, 52)
    envs.send(np.zeros(2, int), [0, 1])
    with pytest.raises(gym.error.AlreadyPendingCallError):
        envs.next_reset(seed=1)
    envs.next_reset(seed=[1], env_index=[2])
    while envs.in_flight:
        envs.recv()
    envs.step_async(np.zeros(3, int))
    with pytest.raises(gym.error.AlreadyPendingCallError):
        envs.next_reset(seed=1)
    envs.step_wait()
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.next_reset(seed=1)


def test_native_environments_refuse_options_that_they_do_not_have():
    envs = NATIVE([POLE] * 2)
    with pytest.raises(ValueError, match="no option 'lo' of a reset: did you mean 'low'"):
        envs.next_reset(options=[None, {"lo": 1}])
    with pytest.raises(ValueError, match="must be a finite number"):
        envs.next_reset(options={"low": "x"})
    envs.close()


def test_a_mode_without_automatic_resets_refuses(build_any):
    envs = build_any([POLE] * 2, autoreset_mode="disabled")
    with pytest.raises(RuntimeError, match="autoreset_mode='disabled' makes none"):
        envs.next_reset(seed=1)


def test_options_that_cannot_be_sent_are_refused_at_once():
    envs = PROCESS(transcripts(1, 1))
    envs.reset()
    with pytest.raises(TypeError, match="cannot pickle 'generator' object"):
        envs.next_reset(options={"generator": (number for number in range(3))})
    envs.step(np.zeros(2, int))
    envs.close()


@AUTOMATIC
def test_the_replacement_of_an_environment_that_failed_is_reset_with_them(build, mode):
    envs = build(
        [partial(FaultyEnv, row) for row in range(3)], autoreset_mode=mode, on_error="restart"
    )
    envs.reset(seed=1)
    envs.next_reset(seed=40)
    actions = np.array([fault("none"), fault("value error"), fault("none")])
    observations = envs.step(actions)[0]  # row 1 fails, and its episode is truncated
    if mode == N:
        observations = envs.step(np.zeros(3, int) + fault("none"))[0]
    single = FaultyEnv(1)
    assert_identical(observations[1], single.reset(seed=41)[0])
    # A reset that fails itself is made again, by the replacement, with the same seed.
    envs.next_reset(seed=60, options={"faults": {1: "value error"}}, env_index=[1])
    if mode == N:
        envs.step(actions)
    with pytest.raises(ValueError, match="boom"):
        envs.step(actions)
    envs.reset(seed=2)


@AUTOMATIC
def test_a_restarted_worker_goes_on_without_what_it_had_received(build_processes, mode):
    envs = build_processes(
        [partial(FaultyEnv, row) for row in range(4)],
        autoreset_mode=mode,
        on_worker_death="restart",
    )
    envs.reset(seed=1)
    envs.next_reset(seed=40)
    actions = np.full(4, fault("none"))
    actions[0] = fault("kill")
    for _ in range(3):
        infos = envs.step(actions)[-1]
        actions[0] = fault("none")
        if "worker_restarted" in infos:
            assert infos["worker_restarted"].tolist() == [True, True, False, False]
    envs.next_reset(seed=70)
    actions[3] = fault("kill")
    envs.step(actions)
    actions[3] = fault("none")
    for _ in range(3):
        envs.step(actions)
    assert len(envs.get_attr("resets")) == 4


def test_evaluations_and_resets_of_rows_discard_them(build_any):
    envs = build_any([POLE] * 3, autoreset_mode=S)
    envs.reset(seed=1)
    envs.next_reset(seed=50)
    envs.reset(options={"env_index": np.array([1])})
    envs.step(np.zeros(3, int))
    envs.reset(options={"env_index": np.array([2])})
    for _ in range(5):
        envs.step(np.zeros(3, int))
    assert envs.np_random_seed == (50, 2, 3)


def test_a_refused_state_discards_none_of_them(build):
    envs = build([partial(walk, TouchyWalkEnv, 2)] * 2)
    envs.reset(seed=1)
    states = envs.get_state()
    envs.next_reset(seed=[70, 71])
    envs.set_attr("touchy", [False, True])
    with pytest.raises(ValueError, match="this state is refused"):
        envs.set_state(None, states)
    for _ in range(3):
        envs.step(np.zeros(2, int))
    assert envs.np_random_seed == (70, 71)


def test_recorded_resets_show_seeds_and_options():
    class Short(RecordingEnv):
        def step(self, action):
            return (*super().step(action)[:2], True, False, {})

    envs = cartwheel.VectorEnv([Short] * 2, autoreset_mode="same_step", executor="inline")
    envs.reset(seed=3)
    envs.next_reset(seed=8, options={"a": 1}, env_index=[1])
    envs.step(np.zeros(2, int))
    assert envs.get_attr("resets") == ([(3, None), (None, None)], [(4, None), (9, {"a": 1})])
    envs.close()


class Repeated(gym.Wrapper):
    """Repeats its action once, unless the episode ends; its next own reset has ``seed``."""

    seed = None

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not (terminated or truncated):
            observation, more, terminated, truncated, info = self.env.step(action)
            reward += more
        return observation, reward, terminated, truncated, info

    def reset(self, *, seed=None, options=None):
        chosen, self.seed = self.seed, None
        return self.env.reset(seed=chosen if seed is None else seed, options=options)


@AUTOMATIC
def test_a_step_that_repeats_its_action_resets_with_them(build_any, mode):
    for case in (Case("CartPole-v1", {"max_episode_steps": 7}), Case("FrozenLake-v1")):
        envs = build_any([case] * 3, autoreset_mode=mode, action_repeat=2)
        oracle = SyncVectorEnv([lambda case=case: Repeated(case())] * 3, autoreset_mode=mode)
        random = np.random.default_rng(1)
        assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
        for step in range(40):
            if step % 5 == 0:
                envs.next_reset(seed=1000 * step)
                for row, env in enumerate(oracle.envs):
                    env.seed = 1000 * step + row
            actions = random.integers(2, size=3)
            assert_identical(envs.step(actions), oracle.step(actions))
        oracle.close()
