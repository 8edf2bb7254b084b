"""With ``on_error="restart"``, an environment that raises ends its own episode, nothing else."""

import logging
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, Sequence

import cartwheel
from tests.support.executors import INLINE
from tests.support.faulty import (
    ExitingEnv,
    FailingAutoresetEnv,
    FaultyEnv,
    UnclosableEnv,
    fault,
)
from tests.support.restarts import MODES, ROWS, actions

SEED = 11
#: Exceptions of every kind that an environment may raise.
RAISED = [
    "value error",
    "two arguments",
    "unpicklable",
    "refusing",
    "unprintable",
    "chained",
    "long message",
    "recursion",
    "surrogate",
]

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def replacement(row, number):
    """The environment that replaces the row's, after its own reset."""
    env = FaultyEnv(row)
    env.reset(seed=int(np.random.SeedSequence([SEED + row, number]).generate_state(1)[0]))
    return env


def assert_others_equal(row, result, undisturbed):
    others = [other for other in range(5) if other != row]
    for got, expected in zip(result[:4], undisturbed[:4], strict=True):
        np.testing.assert_array_equal(got[others], expected[others])


@pytest.mark.parametrize("mode", MODES)
def test_the_row_is_truncated_and_goes_on_as_its_mode_says(build_everywhere, mode):
    row, build = 3, build_everywhere
    envs = build(ROWS, autoreset_mode=mode, on_error="restart")
    twin = build(ROWS, autoreset_mode=mode)
    envs.reset(seed=SEED)
    twin.reset(seed=SEED)
    for number in (1, 2):
        before, *_ = envs.step(actions())
        twin.step(actions())
        result, undisturbed = envs.step(actions(row, "value error")), twin.step(actions())
        assert_others_equal(row, result, undisturbed)
        observations, rewards, terminations, truncations, infos = result
        assert (rewards[row], terminations[row], truncations[row]) == (0.0, False, True)
        assert infos["env_error"][row] == "ValueError: ('boom', 7)"
        assert infos["_env_error"].tolist() == [False, False, False, True, False]
        env = replacement(row, number)
        if mode == "SameStep":
            np.testing.assert_array_equal(infos["final_obs"][row], before[row])
            np.testing.assert_array_equal(observations[row], env.reset()[0])
        else:
            np.testing.assert_array_equal(observations[row], before[row])
        if mode == "NextStep":
            result, undisturbed = envs.step(actions()), twin.step(actions())
            assert_others_equal(row, result, undisturbed)
            np.testing.assert_array_equal(result[0][row], env.reset()[0])
            assert (result[1][row], result[2][row], result[3][row]) == (0.0, False, False)
        if mode == "Disabled":
            with pytest.raises(cartwheel.EpisodeOverError, match=r"\[3\]"):
                envs.step(actions())
            mask = np.arange(5) == row
            result = envs.reset(options={"reset_mask": mask})
            np.testing.assert_array_equal(result[0][row], env.reset()[0])
        result, undisturbed = envs.step(actions()), twin.step(actions())
        assert_others_equal(row, result, undisturbed)
        expected = env.step(fault("none"))
        np.testing.assert_array_equal(result[0][row], expected[0])
        assert result[1][row] == expected[1]
        assert "env_error" not in result[4]


def test_exceptions_of_every_kind_are_described_in_the_infos(build, caplog):
    # Nothing is logged: pytest-xdist cannot send a captured text with lone surrogates.
    caplog.set_level(logging.CRITICAL, "cartwheel")
    envs = build(ROWS[:2], on_error="restart", max_restarts=None)
    for name in RAISED:
        envs.reset(seed=SEED)
        _, _, _, truncations, infos = envs.step([fault(name), fault("none")])
        assert truncations.tolist() == [True, False], name
        text = infos["env_error"][0]
        assert isinstance(text, str)
        assert "Error" in text
        assert len(text) <= 4096


def test_all_rows_may_fail_at_once(build_everywhere):
    envs = build_everywhere(ROWS, on_error="restart", autoreset_mode="SameStep")
    envs.reset(seed=SEED)
    for _ in range(3):
        _, _, _, truncations, infos = envs.step(np.full(5, fault("value error")))
        assert truncations.all()
        assert infos["_env_error"].all()
        assert infos["_final_obs"].all()
    assert not envs.step(actions())[3].any()


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_were_sent_are_replaced_too(build_everywhere, mode):
    envs = build_everywhere(ROWS, on_error="restart", autoreset_mode=mode, batch_size=2)
    envs.send_reset(seed=SEED)
    seen = {}
    turns = dict.fromkeys(range(5), 0)
    for _ in range(40):
        observations, rewards, _, truncations, infos = envs.recv()
        rows = infos["env_index"]
        for at, row in enumerate(rows.tolist()):
            turns[row] += 1
            failing = row == 3 and turns[row] == 4
            assert truncations[at] == failing
            assert ("env_error" in infos and infos["_env_error"][at]) == failing
            if failing:
                assert rewards[at] == 0
                last = infos["final_obs"][at] if mode == "SameStep" else observations[at]
                np.testing.assert_array_equal(last, seen[row])
            seen[row] = observations[at].copy()
        going = [row for row in rows.tolist() if mode != "Disabled" or (row, turns[row]) != (3, 4)]
        if len(going) < len(rows):
            envs.send_reset(options={"env_index": [3]})
        if going:
            faults = [
                fault("value error" if (row, turns[row]) == (3, 3) else "none") for row in going
            ]
            envs.send(np.array(faults), going)


def test_a_run_with_failures_can_be_repeated(build_everywhere):
    def run():
        envs = build_everywhere(ROWS, on_error="restart")
        batches = [envs.reset(seed=SEED)[0]]
        steps = (envs.step(actions(step % 5, "value error")) for step in range(12))
        batches.extend(step[0] for step in steps)
        return np.stack(batches)

    np.testing.assert_array_equal(run(), run())


def test_an_error_beyond_max_restarts_is_raised_and_a_reset_recovers(build):
    envs = build(ROWS, on_error="restart", autoreset_mode="SameStep", max_restarts=2)
    envs.reset(seed=SEED)
    for _ in range(2):
        envs.step(actions(1, "value error"))
    with pytest.raises(ValueError, match="boom") as failure:
        envs.step(actions(1, "value error"))
    assert any("replaced 2 times" in note for note in failure.value.__notes__)
    envs.reset(seed=SEED)
    assert envs.step(actions(2, "value error"))[3].tolist() == [False, False, True, False, False]


def test_max_restarts_of_none_is_no_limit():
    envs = INLINE(ROWS, on_error="restart", autoreset_mode="SameStep", max_restarts=None)
    envs.reset(seed=SEED)
    for _ in range(30):
        assert envs.step(actions(1, "value error"))[3][1]
    envs.close()


class NumberedEnv(FaultyEnv):
    """The second one that is made cannot be reset. Each notes that it was made and closed."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.number = folder, len(list(folder.glob("made-*")))
        (folder / f"made-{self.number}").touch()

    def reset(self, *, seed=None, options=None):
        if self.number == 1:
            raise OSError("the server does not answer")
        return super().reset(seed=seed, options=options)

    def close(self):
        (self.folder / f"closed-{self.number}").touch()


def test_a_replacement_that_cannot_be_reset_is_closed(build, tmp_path):
    envs = build([partial(NumberedEnv, tmp_path)], on_error="restart")
    envs.reset(seed=SEED)
    with pytest.raises(OSError, match="the server does not answer"):
        envs.step([fault("value error")])
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["closed-0", "closed-1", "made-0", "made-1"]


class FailsOnceEnv(FaultyEnv):
    """Episodes of one step; the first autoreset in this process fails."""

    failed = False

    def reset(self, *, seed=None, options=None):
        if seed is None and not FailsOnceEnv.failed:
            FailsOnceEnv.failed = True
            raise RuntimeError("only once")
        return super().reset(seed=seed, options=options)

    def step(self, action):
        observation, reward, _, truncated, info = super().step(action)
        return observation, reward, True, truncated, info


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_an_autoreset_that_fails_is_tried_again_with_a_new_environment(build, mode):
    FailsOnceEnv.failed = False
    envs = build([FailsOnceEnv], on_error="restart", autoreset_mode=mode)
    envs.reset(seed=SEED)
    result = envs.step([0])
    assert result[2].all(), "the episode ended by itself"
    if mode == "NextStep":
        result = envs.step([0])
        assert not result[2].any()
    assert not result[3].any(), "nothing was truncated"
    assert result[4]["env_error"].tolist() == ["RuntimeError: only once"]
    np.testing.assert_array_equal(result[0][0], replacement(0, 1).reset()[0])
    assert envs.step([0])[2].all()


def test_an_explicit_reset_that_fails_is_tried_again_with_its_seed(build):
    FailsOnceEnv.failed = False
    envs = build([FailsOnceEnv], on_error="restart")
    observations, infos = envs.reset()
    assert infos["env_error"].tolist() == ["RuntimeError: only once"]
    assert observations.shape == (1, 3)


def test_an_environment_that_never_resets_is_raised(build):
    envs = build([FailingAutoresetEnv, partial(FailingAutoresetEnv, 1)], on_error="restart")
    envs.reset(seed=SEED)
    envs.step([0, 0])
    with pytest.raises(ValueError, match="boom") as failure:
        envs.step([0, 0])
    assert any("row 1" in note for note in failure.value.__notes__)
    envs.reset(seed=SEED)
    envs.step([0, 0])


@pytest.mark.parametrize("name", ["base exception", "keyboard interrupt"])
def test_a_base_exception_that_is_not_an_exception_is_raised(build_workers, name):
    envs = build_workers(ROWS, on_error="restart")
    envs.reset(seed=SEED)
    with pytest.raises(BaseException, match=r".*") as failure:
        envs.step(actions(1, name))
    assert any("row 1" in note for note in failure.value.__notes__)


def test_a_row_that_was_never_reset_has_no_episode_to_truncate(build):
    envs = build([lambda: gym.make("CartPole-v1")] * 2, on_error="restart")
    with pytest.raises(gym.error.ResetNeeded):
        envs.step([0, 0])


class WrongObservationEnv(FaultyEnv):
    """Returns an observation of a wrong shape for action 1."""

    def step(self, action):
        observation, *rest = super().step(0)
        return (observation[:2] if action == 1 else observation, *rest)


@pytest.mark.parametrize("mode", MODES)
def test_an_observation_of_a_wrong_shape_is_a_failure_like_any_other(build, mode):
    envs = build([WrongObservationEnv] * 2, on_error="restart", autoreset_mode=mode)
    before, _ = envs.reset(seed=SEED)
    observations, _, _, truncations, infos = envs.step([1, 0])
    assert truncations.tolist() == [True, False]
    assert "shape" in infos["env_error"][0]
    last = infos["final_obs"][0] if mode == "SameStep" else observations[0]
    np.testing.assert_array_equal(last, before[0])


class UnpicklableObservationEnv(gym.Env):
    """Counts its steps; for action 1 its observation has an object that cannot be pickled."""

    observation_space, action_space = Sequence(Discrete(9)), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.count = 0
        return (0,), {}

    def step(self, action):
        self.count += 1
        observation = (self.count, threading.Lock() if action == 1 else 0)
        return observation, 0.0, False, False, {"count": self.count}


@pytest.mark.parametrize("mode", MODES)
def test_an_observation_that_cannot_be_pickled_is_a_failure_of_its_row_alone(build_processes, mode):
    envs = build_processes([UnpicklableObservationEnv] * 3, on_error="restart", autoreset_mode=mode)
    envs.reset(seed=SEED)
    observations, _, _, truncations, infos = envs.step([0, 1, 0])
    assert truncations.tolist() == [False, True, False]
    assert "pickle" in infos["env_error"][1]
    assert observations == ((1, 0), (0,), (1, 0))
    assert infos["_count"].tolist() == [True, False, True]


class WrongFirstObservationEnv(FaultyEnv):
    """Episodes of one step; the first autoreset in this process returns a wrong shape."""

    wrong = True

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed, options=options)
        if seed is None and WrongFirstObservationEnv.wrong:
            WrongFirstObservationEnv.wrong, observation = False, observation[:2]
        return observation, info

    def step(self, action):
        observation, _, _, truncated, info = super().step(action)
        return observation, 7.0, True, truncated, info


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("sent", [False, True])
def test_an_autoreset_of_a_wrong_shape_is_tried_again_and_the_step_keeps_its_result(
    build, sent, mode
):
    WrongFirstObservationEnv.wrong = True
    envs = build([WrongFirstObservationEnv], on_error="restart", autoreset_mode=mode)

    def step():
        if not sent:
            return envs.step([0])
        envs.send([0])
        return envs.recv(30)

    envs.reset(seed=SEED)
    result = step()
    assert (result[1].tolist(), result[2].tolist()) == ([7], [True])
    if mode == "NextStep":
        result = step()
        assert (result[1].tolist(), result[2].tolist()) == ([0], [False])
    assert not result[3].any(), "nothing was truncated"
    assert "shape" in result[4]["env_error"][0]
    np.testing.assert_array_equal(result[0][0], replacement(0, 1).reset()[0])


class GrowingEnv(FaultyEnv):
    """Has one action more each time that it is created in this process."""

    made = 0

    def __init__(self):
        super().__init__()
        GrowingEnv.made += 1
        self.action_space = Discrete(30 + GrowingEnv.made)


def test_a_replacement_with_other_spaces_is_refused(build):
    envs = build([GrowingEnv], on_error="restart")
    envs.reset(seed=SEED)
    text = r"the action_space of a replacement must be .*, got Discrete\(3\d\)"
    with pytest.raises(RuntimeError, match=text):
        envs.step([fault("value error")])


@pytest.mark.parametrize("kind", [UnclosableEnv, ExitingEnv])
def test_an_environment_that_cannot_even_be_closed_is_replaced(build, kind):
    envs = build([kind], on_error="restart", autoreset_mode="SameStep")
    envs.reset(seed=SEED)
    assert envs.step([fault("value error")])[3].all()
    assert not envs.step([fault("none")])[3].any()


def test_every_replacement_is_logged(caplog):
    envs = INLINE(ROWS, on_error="restart")
    envs.reset(seed=SEED)
    with caplog.at_level(logging.WARNING, logger="cartwheel"):
        envs.step(actions(4, "value error"))
    envs.close()
    [record] = caplog.records
    assert "row 4" in record.getMessage()
    assert record.exc_info[0] is ValueError


def test_a_rollout_goes_on(build):
    envs = build(ROWS, on_error="restart")
    envs.reset(seed=SEED)
    rollout = envs.rollout(6)
    steps = [envs.step(actions(2, "value error" if step == 3 else "none")) for step in range(6)]
    np.testing.assert_array_equal(rollout.observations[1:], [step[0] for step in steps])
    np.testing.assert_array_equal(rollout.truncated, [step[3] for step in steps])
    assert rollout.truncated.sum() == 1


class PictureEnv(gym.Env):
    """Keeps one array and changes it in place."""

    observation_space = Box(0, 255, (8, 8), np.uint8)
    action_space = Discrete(2)

    def __init__(self):
        self.picture = np.zeros((8, 8), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.picture[:] = 1
        return self.picture, {}

    def step(self, action):
        if action:
            raise ValueError("boom")
        self.picture += 1
        return self.picture, 0.0, False, False, {}


def test_the_last_observation_is_shown_although_its_environment_reuses_the_array(build):
    envs = build([PictureEnv] * 2, on_error="restart")
    envs.reset()
    envs.step([0, 0])
    observations, *_ = envs.step([1, 0])
    assert observations[:, 0, 0].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"on_error": "ignore"}, "`on_error` must be one of 'raise', 'restart', got 'ignore'"),
        ({"on_worker_death": "no"}, "`on_worker_death` must be one of 'raise', 'restart'"),
        ({"max_restarts": -1}, "`max_restarts` must be an integer from 0 on, got -1"),
        ({"max_restarts": 1.5}, "`max_restarts` must be an integer from 0 on, got 1.5"),
    ],
)
def test_invalid_arguments_are_refused_before_an_environment_is_created(keywords, text):
    def never():
        raise AssertionError("an environment was created")

    with pytest.raises(ValueError, match=text):
        cartwheel.VectorEnv([never], **keywords)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_native_environment_that_panics_is_replaced(mode, workers):
    def make(**keywords):
        envs = cartwheel.NativeVectorEnv(
            "Acrobot-v1", 4, autoreset_mode=mode, num_workers=workers, **keywords
        )
        envs.reset(seed=SEED)
        return envs

    envs, twin = make(on_error="restart", max_restarts=2), make()
    others = [0, 1, 3]

    def break_row():
        states = list(envs.get_attr("state"))
        states[2] = np.full(4, np.inf)
        envs.set_attr("state", states)

    for _ in range(2):
        break_row()
        result, undisturbed = envs.step([0, 1, 2, 0]), twin.step([0, 1, 2, 0])
        for got, expected in zip(result[:4], undisturbed[:4], strict=True):
            np.testing.assert_array_equal(got[others], expected[others])
        observations, rewards, terminations, truncations, infos = result
        assert (rewards[2], terminations[2], truncations[2]) == (0.0, False, True)
        assert "overflowed" in infos["env_error"][2]
        assert infos["_env_error"].tolist() == [False, False, True, False]
        assert envs.single_observation_space.contains(observations[2])
        if mode == "SameStep":
            assert envs.single_observation_space.contains(infos["final_obs"][2])
        if mode == "Disabled":
            envs.reset(options={"reset_mask": np.arange(4) == 2})
        else:
            result, undisturbed = envs.step([0, 1, 2, 0]), twin.step([0, 1, 2, 0])
            np.testing.assert_array_equal(result[0][others], undisturbed[0][others])
            assert not result[3].any()
    break_row()
    with pytest.raises(cartwheel.EnvPanicError, match="overflowed"):
        envs.step([0, 1, 2, 0])
    envs.close()
    twin.close()
