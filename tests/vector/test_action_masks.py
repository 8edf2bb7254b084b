"""``action_masks`` has the masks of the rows that the last call returned."""

import itertools
from contextlib import closing
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

import cartwheel
from tests.support.masked import MaskedEnv, expected

MODES = ["next_step", "same_step", "disabled"]
ROWS = 5
PARTS = MultiDiscrete([2, 3])


def counts(observations):
    return observations["count"] if isinstance(observations, dict) else observations


def shown(envs, observations, over, length=4):
    """Whether the masks are those of these observations; of rows that are over, all true."""
    over = over & (envs.autoreset_mode is not gym.vector.AutoresetMode.SAME_STEP)
    wanted = expected(counts(observations), length) | over[:, None]
    masks = envs.action_masks()
    assert masks.dtype == np.bool_
    np.testing.assert_array_equal(masks, wanted)


def played(envs, steps=25, length=4):
    """Plays with masked resets where the mode needs them; checks the masks of every batch."""
    over = np.zeros(envs.num_envs, np.bool_)
    observations, _ = envs.reset(seed=3)
    shown(envs, observations, over, length)
    ended = 0
    for _ in range(steps):
        if over.any() and envs.autoreset_mode is gym.vector.AutoresetMode.DISABLED:
            observations, _ = envs.reset(options={"reset_mask": over})
            over[:] = False
            shown(envs, observations, over, length)
        observations, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
        over = terminated | truncated
        ended += over.sum()
        shown(envs, observations, over, length)
    assert ended > 5, "too few episodes ended"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shows", [False, True], ids=["infos", "observations"])
def test_masks_are_those_of_the_observations(build, mode, shows):
    played(build([partial(MaskedEnv, shows=shows)] * ROWS, autoreset_mode=mode))


@pytest.mark.parametrize("mode", MODES)
def test_masks_of_native_rows_are_those_of_their_infos(mode):
    envs = cartwheel.make_vec("cartwheel/Taxi-v4", 6, autoreset_mode=mode, max_episode_steps=4)
    with closing(envs):
        _, infos = envs.reset(seed=1)
        for _ in range(10):
            masks = envs.action_masks()
            over = np.array(envs._pool.rows_over(), np.int64)
            wanted = infos["action_mask"].astype(np.bool_)
            wanted[over] = True
            np.testing.assert_array_equal(masks, wanted)
            assert masks[~np.isin(np.arange(6), over)].min(axis=1).sum() == 0
            if len(over) and mode == "disabled":
                envs.reset(options={"reset_mask": np.ones(6, np.bool_)})
            _, _, _, _, infos = envs.step(envs.action_space.sample())


@pytest.mark.parametrize("form", [list, tuple, np.bool_, np.int64, np.float32])
def test_a_mask_may_have_any_form_with_as_many_numbers(form):
    env = partial(MaskedEnv, action_space=PARTS, form=form)
    with closing(cartwheel.VectorEnv([env] * 3, executor="inline")) as envs:
        played(envs, length=5)


@pytest.mark.parametrize("shows", [False, True], ids=["infos", "observations"])
def test_masks_are_found_by_the_name_that_the_caller_gives(shows):
    env = partial(MaskedEnv, key="legal", shows=shows)
    with closing(cartwheel.VectorEnv([env] * 3, executor="inline", action_mask="legal")) as envs:
        assert envs.has_action_masks == shows
        played(envs)
        assert envs.has_action_masks
    with closing(cartwheel.VectorEnv([env] * 3, executor="inline")) as envs:
        envs.reset()
        assert not envs.has_action_masks
        with pytest.raises(ValueError, match="have the key 'action_mask'"):
            envs.action_masks()


def test_a_key_that_infos_never_have_is_an_error():
    envs = cartwheel.VectorEnv([MaskedEnv] * 2, executor="inline", action_mask="legel")
    with closing(envs):
        envs.reset()
        envs.step([1] * 2)
        with pytest.raises(ValueError, match="infos so far have the key 'legel'"):
            envs.action_masks()


@pytest.mark.parametrize("shows", [False, True], ids=["infos", "observations"])
def test_batches_of_some_rows_have_the_masks_of_these_rows(build, shows):
    envs = build([partial(MaskedEnv, shows=shows)] * 4, autoreset_mode="same_step")
    observations, _ = envs.reset(seed=1)
    known = counts(observations).copy()
    for rows in ([2, 0], [3], [1, 2], [0, 3]):
        envs.send([1] * len(rows), rows)
        observations, _, _, _, infos = envs.recv()
        np.testing.assert_array_equal(envs.action_masks(), expected(counts(observations)))
        known[infos["env_index"]] = counts(observations)
        np.testing.assert_array_equal(envs.action_masks(env_index=range(4)), expected(known))
        np.testing.assert_array_equal(envs.action_masks([3, 1]), expected(known[[3, 1]]))
    observations, _ = envs.reset(options={"env_index": [1, 3]})
    np.testing.assert_array_equal(envs.action_masks(), expected(counts(observations)))
    known[[1, 3]] = counts(observations)
    np.testing.assert_array_equal(envs.action_masks(env_index=range(4)), expected(known))


def test_a_rollout_begins_with_the_masks_of_the_last_batch():
    keywords = {"executor": "inline", "autoreset_mode": "same_step"}
    with closing(cartwheel.VectorEnv([MaskedEnv] * 3, **keywords)) as envs:
        envs.reset(seed=1)
        observations, *_ = envs.step([1] * 3)
        before = envs.action_masks()
        envs.rollout(2)
        np.testing.assert_array_equal(envs.action_masks(), before)
        observations, *_ = envs.step([1] * 3)
        np.testing.assert_array_equal(envs.action_masks(), expected(observations))


def test_rows_whose_results_were_lost_allow_everything_until_their_next_step():
    fails = [(), (20, 21, 22), ()]
    env_fns = [partial(MaskedEnv, fails=which) for which in fails]
    with closing(
        cartwheel.VectorEnv(env_fns, executor="inline", autoreset_mode="same_step")
    ) as envs:
        envs.reset(seed=1)
        with pytest.raises(ValueError, match="on purpose"):
            any(envs.step([1] * 3) is None for _ in range(60))
        assert envs.action_masks().all()
        observations, _ = envs.reset(options={"reset_mask": np.array([False, True, False])})
        masks = envs.action_masks()
        np.testing.assert_array_equal(masks[1], expected(observations[[1]])[0])
        assert masks[[0, 2]].all()


class RefusingEnv(MaskedEnv):
    def reset(self, *, seed=None, options=None):
        if options:
            raise ValueError("refused on purpose")
        return super().reset(seed=seed)


class Gathering(cartwheel.VectorEnv):
    """Refuses infos of masked resets, as it gathers them."""

    refuses = False

    def _add_info(self, *arguments):
        if self.refuses:
            raise ValueError("refused on purpose")
        return super()._add_info(*arguments)


@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize("by", ["environment", "owner"])
def test_a_masked_reset_that_raises_leaves_the_masks_of_other_rows(executor, by):
    with closing(Gathering([RefusingEnv] * 3, executor=executor)) as envs:
        before = expected(envs.reset(seed=1)[0])
        assert not before[[0, 2]].all()
        envs.refuses = by == "owner"
        options = {"reset_mask": np.array([False, True, False])}
        with pytest.raises(ValueError, match="on purpose"):
            envs.reset(options=options | ({"refused": 1} if by == "environment" else {}))
        masks = envs.action_masks()
        np.testing.assert_array_equal(masks[[0, 2]], before[[0, 2]])
        assert masks[1].all()


def test_rows_that_are_replaced_have_the_mask_of_the_reset():
    env_fns = [partial(MaskedEnv, fails=(20, 21, 22))] * 3
    keywords = {"executor": "inline", "autoreset_mode": "same_step", "on_error": "restart"}
    with closing(cartwheel.VectorEnv(env_fns, **keywords)) as envs:
        envs.reset(seed=1)
        failed = 0
        for _ in range(30):
            observations, _, _, _, infos = envs.step([1] * 3)
            failed += "env_error" in infos
            np.testing.assert_array_equal(envs.action_masks(), expected(observations))
        assert failed


@pytest.mark.parametrize("shows", [False, True], ids=["infos", "observations"])
def test_masks_are_those_of_before_after_a_state_is_loaded(shows):
    def build():
        env = partial(MaskedEnv, shows=shows)
        return cartwheel.VectorEnv([env] * 3, executor="inline")

    with closing(build()) as envs, closing(build()) as others:
        envs.reset(seed=1)
        for _ in range(4):
            envs.step([1] * 3)
        masks, state = envs.action_masks(), envs.state_dict()
        others.load_state_dict(state)
        np.testing.assert_array_equal(others.action_masks(), masks)
        envs.step([1] * 3)
        envs.load_state_dict(state)
        np.testing.assert_array_equal(envs.action_masks(), masks)
        state["envs"]["action_masks"] = b"\1"
        with pytest.raises(ValueError, match=r"'action_masks'\]` must be 12 bytes, got 1 bytes"):
            envs.load_state_dict(state)
        np.testing.assert_array_equal(envs.action_masks(), masks)


@pytest.mark.parametrize("rows", [False, True], ids=["load_state_dict", "set_state"])
def test_masks_stay_if_an_environment_refuses_its_state(monkeypatch, rows):
    set_state, calls = MaskedEnv.set_state, itertools.count()

    def refuse(env, state):
        if next(calls) == 2:
            raise ValueError("refused")
        set_state(env, state)

    with closing(cartwheel.VectorEnv([MaskedEnv] * 3, executor="inline")) as envs:
        envs.reset(seed=1)
        state, states = envs.state_dict(), envs.get_state(range(3))
        envs.step([1] * 3)
        masks = envs.action_masks()
        monkeypatch.setattr(MaskedEnv, "set_state", refuse)
        with pytest.raises(ValueError, match="refused"):
            envs.set_state(range(3), states) if rows else envs.load_state_dict(state)
        np.testing.assert_array_equal(envs.action_masks(), masks)


class ManyActions(gym.Env):
    """Has more actions than a mask could have numbers; its infos are always the same."""

    observation_space: gym.Space = Box(0, 1)
    action_space: gym.Space = Discrete(2**62)

    def __init__(self, **infos):
        self.infos = infos

    def reset(self, *, seed=None, options=None):
        del seed, options
        return self.observation_space.sample(), self.infos

    def step(self, _):
        return self.observation_space.sample(), 0.0, False, False, self.infos

    def get_state(self):
        return None

    def set_state(self, state):
        assert state is None


def test_a_space_without_masks_may_have_any_number_of_actions():
    with closing(cartwheel.VectorEnv([ManyActions] * 3, executor="inline")) as envs:
        envs.reset(seed=1)
        envs.step(envs.action_space.sample())
        assert not envs.has_action_masks


class NoActions(ManyActions):
    """Its mask has no numbers."""

    observation_space = Dict(action_mask=Box(0, 1, (0,), np.int8), count=Box(0, 1))
    action_space = MultiDiscrete(np.zeros(0, np.int64))


def test_a_space_without_actions_has_no_masks():
    with closing(cartwheel.VectorEnv([NoActions] * 3, executor="inline")) as envs:
        envs.reset(seed=1)
        envs.step(envs.action_space.sample())
        assert not envs.has_action_masks


def test_rows_whose_masks_are_none_have_none_in_a_state():
    def build():
        env = partial(ManyActions, action_mask=None)
        return cartwheel.VectorEnv([env] * 3, executor="inline")

    with closing(build()) as envs, closing(build()) as others:
        envs.reset(seed=1)
        state = envs.state_dict()
        assert state["envs"]["action_masks"] == b""
        others.load_state_dict(state)
        assert others.has_action_masks


def test_wrappers_have_the_masks_of_their_environments():
    envs = cartwheel.VectorEnv([MaskedEnv] * 3, executor="inline")
    with closing(cartwheel.wrappers.RecordEpisodeStatistics(envs)) as wrapped:
        observations, _ = wrapped.reset(seed=1)
        assert wrapped.has_action_masks
        np.testing.assert_array_equal(wrapped.action_masks(), expected(observations))


class PaintedEnv(MaskedEnv):
    """Shows its count as an image."""

    def __init__(self):
        super().__init__()
        self.observation_space = Box(0, 255, (8, 8, 3), np.uint8)

    def shown(self):
        count, info = super().shown()
        return np.full((8, 8, 3), count[0], np.uint8), info


def skipping(mode):
    envs = cartwheel.VectorEnv([PaintedEnv] * ROWS, executor="inline", autoreset_mode=mode)
    return cartwheel.wrappers.AtariPreprocessing(envs, frame_skip=3, screen_size=8)


def adapted(mode):
    envs = cartwheel.VectorEnv([MaskedEnv] * ROWS, executor="inline", autoreset_mode="disabled")
    return cartwheel.wrappers.AutoresetAdapter(envs, mode)


@pytest.mark.parametrize("build", [skipping, adapted])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_wrappers_that_make_several_calls_have_the_masks_of_the_rows_that_they_return(mode, build):
    rng = np.random.default_rng(1)
    with closing(build(mode)) as envs:
        envs.reset(seed=1)
        for step in range(40):
            rows = None if step % 2 else rng.permutation(ROWS)[: rng.integers(1, ROWS + 1)]
            actions = np.zeros(ROWS if rows is None else len(rows), np.int64)
            envs.step(actions, rows)
            wanted = envs.action_masks(np.arange(ROWS) if rows is None else rows)
            np.testing.assert_array_equal(envs.action_masks(), wanted)
        envs.reset(options={"reset_mask": np.arange(ROWS) == 1})
        assert envs.action_masks().shape == (ROWS, 4)
        envs.reset(options={"env_index": [3, 1]})
        np.testing.assert_array_equal(envs.action_masks(), envs.action_masks([3, 1]))


def test_vector_environments_of_gymnasium_have_no_masks_in_wrappers_that_make_several_calls():
    envs = gym.vector.SyncVectorEnv([MaskedEnv] * 2, autoreset_mode="Disabled")
    assert not hasattr(cartwheel.wrappers.AutoresetAdapter(envs, "same_step"), "action_masks")


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"action_mask": 3}, r"`action_mask` must be the key of masks .*, got 3"),
        ({"action_mask": "legal"}, r"names Box.* and a mask of Discrete\(4\) is an array of 4"),
    ],
)
def test_wrong_keys_are_refused_at_construction(keywords, error):
    class Wrong(MaskedEnv):
        def __init__(self):
            super().__init__(shows=True)
            self.observation_space["legal"] = gym.spaces.Box(0, 1, (3,), np.int8)

    with pytest.raises((TypeError, ValueError), match=error):
        cartwheel.VectorEnv([Wrong], **keywords)


def test_environments_without_masks_say_why():
    envs = cartwheel.make_vec("cartwheel/Pendulum-v1", 2)
    with closing(envs), pytest.raises(ValueError, match=r"Box.* is not discrete"):
        envs.action_masks()
    with pytest.raises(ValueError, match="needs discrete actions"):
        cartwheel.make_vec("cartwheel/Pendulum-v1", 2, action_mask="legal")
    with closing(cartwheel.make_vec("cartwheel/Taxi-v4", 2, action_mask=None)) as envs:
        envs.reset()
        with pytest.raises(ValueError, match="made with action_mask=None"):
            envs.action_masks()
    with pytest.raises(ClosedEnvironmentError):
        envs.action_masks()


def test_a_mask_of_another_length_is_an_error_that_names_its_row():
    class Wrong(MaskedEnv):
        def formed(self, mask):
            return mask[:3]

    env_fns = [partial(MaskedEnv, key="other"), Wrong]
    with closing(cartwheel.VectorEnv(env_fns, executor="inline")) as envs:
        envs.reset(seed=1)
        with pytest.raises(ValueError, match=r"action_mask.*\]` of row 1 has 3 values, .* 4"):
            envs.action_masks()
        with pytest.raises(ValueError, match="2"):
            envs.action_masks([2])
