"""Gray, resized and preprocessed images equal those of single environments in every mode."""

import copy
import re
from collections import deque
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cartwheel
from cartwheel.wrappers import (
    AtariPreprocessing,
    DelayAction,
    GrayscaleObservation,
    RecordEpisodeStatistics,
    ResizeObservation,
)
from tests.support import repetitions
from tests.support.comparison import assert_identical
from tests.support.wrapping import (
    MODES,
    Builds,
    D,
    N,
    S,
    Script,
    alone,
    assert_traces,
    build,
    drive,
    ways_of,
)

cv2 = pytest.importorskip("cv2")


class ScreenEnv(gym.Env):
    """Random frames. Episodes have 1 to 9 frames. The action 3 raises in every second frame."""

    observation_space = Box(0, 255, (21, 16, 3), np.uint8)
    action_space = Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.t, self.length = 0, int(self.np_random.integers(1, 10))
        return self.frame(), {"length": self.length}

    def step(self, action):
        self.t += 1
        if action == 3 and self.t % 2 == 0:
            raise ValueError("chosen to fail")
        over = self.t == self.length
        info = {"t": self.t, "action": float(action)}
        if self.t % 3 == 0:
            info["bonus"] = np.full(2, self.t)
        reward = float(self.np_random.normal())
        return self.frame(), reward, over and self.t % 2 == 0, over and self.t % 2 == 1, info

    def frame(self):
        return self.np_random.integers(0, 256, self.observation_space.shape, np.uint8)


class ShortEnv(ScreenEnv):
    """All rows are over at once, after one frame."""

    def reset(self, *, seed=None, options=None):
        frame, _ = super().reset(seed=seed, options=options)
        self.length = 1
        return frame, {}


def gray(frame):
    """The arithmetic of ``gymnasium.wrappers.GrayscaleObservation``."""
    return np.sum(np.multiply(frame, np.array([0.2125, 0.7154, 0.0721])), axis=-1).astype(np.uint8)


def resized(frame, height, width):
    """The mean of each area, in whole numbers, halves rounded up."""
    old_height, old_width, *channels = frame.shape
    fine = frame.astype(np.int64).repeat(height, axis=0).repeat(width, axis=1)
    areas = fine.reshape(height, old_height, width, old_width, *channels).sum(axis=(1, 3))
    points = old_height * old_width
    return ((2 * areas + points) // (2 * points)).astype(np.uint8)


class Preprocessed(gym.Wrapper):
    """One environment, preprocessed in NumPy."""

    def __init__(
        self, env, *, frame_skip=4, max_pool=True, size=(10, 8), colors=False, scale=False,
        newaxis=False, stack=None, channel_first=False,
    ):  # fmt: skip
        super().__init__(env)
        self.frame_skip, self.max_pool, self.size, self.colors = (
            frame_skip,
            max_pool,
            size,
            colors,
        )
        self.scale, self.newaxis, self.channel_first = scale, newaxis, channel_first
        self.frames = None if stack is None else deque(maxlen=stack)
        image = self.image(np.zeros(env.observation_space.shape, np.uint8))
        shape = image.shape if stack is None else (stack, *image.shape)
        self.observation_space = Box(0, 1 if scale else 255, shape, image.dtype.type)

    def image(self, frame):
        image = resized(frame if self.colors else gray(frame), *self.size)
        if self.scale:
            image = image.astype(np.float32) / np.float32(255)
        if self.newaxis and not self.colors:
            image = image[..., None]
        return np.moveaxis(image, -1, 0) if self.channel_first else image

    def shown(self, image, *, first=False):
        if self.frames is None:
            return image
        self.frames.extend([image] * (self.frames.maxlen if first else 1))
        return np.stack(self.frames)

    def reset(self, *, seed=None, options=None):
        frame, info = self.env.reset(seed=seed, options=options)
        return self.shown(self.image(frame), first=True), info

    def step(self, action):
        total, frames = 0.0, []
        for _ in range(self.frame_skip):
            frame, reward, terminated, truncated, info = self.env.step(action)
            frames.append(frame)
            total += reward
            if terminated or truncated:
                break
        pooled = np.maximum(*frames[-2:]) if self.max_pool and len(frames) > 1 else frames[-1]
        return self.shown(self.image(pooled)), total, terminated, truncated, info


#: Actions 0 to 2, so that nothing fails.
SCRIPT = Script(
    steps=12, resets={(1, 3): 50, (2, 9): 52}, actions=lambda row, number: (row + number) % 3
)
WRAPPED = {
    "gray": (
        lambda envs: GrayscaleObservation(envs),
        lambda env: gym.wrappers.GrayscaleObservation(env),
    ),
    "gray, axis": (
        lambda envs: GrayscaleObservation(envs, keep_dim=True),
        lambda env: gym.wrappers.GrayscaleObservation(env, keep_dim=True),
    ),
    "size, channels first": (
        lambda envs: ResizeObservation(envs, (7, 9), channel_first=True),
        lambda env: gym.wrappers.TransformObservation(
            env,
            lambda frame: np.moveaxis(resized(frame, 7, 9), -1, 0),
            Box(0, 255, (3, 7, 9), np.uint8),
        ),
    ),
    "every frame": (
        lambda envs: AtariPreprocessing(envs, frame_skip=1, screen_size=(10, 8), stack_size=2),
        lambda env: Preprocessed(env, frame_skip=1, stack=2),
    ),
}
SKIPPING = {
    "four frames": ({}, {}),
    "three frames, stacked": ({"frame_skip": 3, "stack_size": 3}, {"frame_skip": 3, "stack": 3}),
    "two frames, scaled": (
        {"frame_skip": 2, "scale_obs": True, "grayscale_newaxis": True, "channel_first": True},
        {"frame_skip": 2, "scale": True, "newaxis": True, "channel_first": True},
    ),
    "colors, no maximum": (
        {"max_pool": False, "grayscale_obs": False, "channel_first": True},
        {"max_pool": False, "colors": True, "channel_first": True},
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_images_are_those_of_single_environments(name):
    wrap, single = WRAPPED[name]
    expected = alone(ScreenEnv, SCRIPT, single)
    with Builds() as build:
        for kind in ("inline", "process", "sync") if name == "every frame" else ("inline",):
            for mode in MODES:
                for way in ways_of(kind, mode):
                    if kind == "process" and way != "send" and not repetitions.full:
                        continue  # the other ways are those of the kind `inline`
                    keywords = {"on_done": "freeze"} if way == "freeze" else {}
                    if way == "send":
                        keywords["batch_size"] = 2
                    envs = wrap(build(kind, ScreenEnv, mode, **keywords))
                    assert_traces(drive(envs, SCRIPT, way, close=False), expected)


@pytest.mark.parametrize("env_fn", [ScreenEnv, ShortEnv])
@pytest.mark.parametrize("name", SKIPPING)
def test_skipped_frames_are_those_of_single_environments(name, env_fn):
    keywords, single = SKIPPING[name]
    expected = alone(env_fn, SCRIPT, lambda env: Preprocessed(env, **single))
    with Builds() as build:
        in_processes = name == "three frames, stacked" and env_fn is ScreenEnv
        for kind in ("inline", "process") if in_processes else ("inline",):
            for mode in MODES:
                for way in ways_of(kind, mode):
                    if kind == "process" and way != "rows" and not repetitions.full:
                        continue  # the other ways are those of the kind `inline`
                    if way == "send":
                        continue
                    frozen = {"on_done": "freeze"} if way == "freeze" else {}
                    envs = build(kind, env_fn, mode, **frozen)
                    envs = AtariPreprocessing(envs, screen_size=(10, 8), **keywords)
                    assert_traces(drive(envs, SCRIPT, way, close=False), expected)


@pytest.mark.parametrize("final_obs", ["object", "dense"])
def test_one_row_and_seven_have_the_images_of_single_environments(final_obs):
    for num_envs in (1, 7):
        envs = build("inline", ScreenEnv, S, num_envs, final_obs=final_obs)
        envs = AtariPreprocessing(envs, screen_size=(10, 8))
        script = SCRIPT if num_envs > 1 else Script(12, actions=SCRIPT.actions)
        expected = alone(ScreenEnv, script, lambda env: Preprocessed(env), num_envs)
        assert_traces(drive(envs, script, "mask"), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stack", [None, 2])
def test_a_row_that_fails_within_a_step_shows_its_last_image_again(mode, stack):
    actions = SCRIPT.actions
    script = Script(10, fails={(1, 2): 3, (0, 5): 3}, actions=actions)
    expected = alone(ScreenEnv, script, lambda env: Preprocessed(env, stack=stack))
    assert any(moment.what == "failed" for trace in expected for moment in trace)
    for way in ("mask", "rows"):
        envs = build("inline", ScreenEnv, mode, on_error="restart")
        envs = AtariPreprocessing(envs, screen_size=(10, 8), stack_size=stack)
        assert_traces(drive(envs, script, way), expected)


def test_wrappers_inside_act_in_each_frame():
    """As in nested wrappers of single environments: a delay inside is one of frames."""
    envs = DelayAction(build("inline", ScreenEnv, N), 1)
    envs = AtariPreprocessing(envs, frame_skip=2, screen_size=6)
    for step in (envs.step, lambda actions: (envs.step_async(actions), envs.step_wait())[1]):
        envs.reset(seed=3)
        envs.set_attr("length", 99)
        for number in range(6):
            assert (step([number % 3] * 3)[4]["action"] == number % 3).all()
    envs.close()


def test_a_rollout_has_what_steps_return():
    steps = [np.array([0, 1, 2])] * 6
    for stack in (None, 2):
        wrapped = [
            AtariPreprocessing(build("inline", ScreenEnv, N), screen_size=6, stack_size=stack)
            for _ in range(2)
        ]
        first, _ = wrapped[0].reset(seed=3)
        wrapped[1].reset(seed=3)
        rollout = wrapped[1].rollout(len(steps))
        assert_identical(rollout.observations[0], first, "the first observations")
        for number, actions in enumerate(steps):
            observations, rewards, terminations, *_ = wrapped[0].step(actions)
            wrapped[1].step(actions)
            assert_identical(rollout.observations[number + 1], observations, "observations")
            assert_identical(rollout.rewards[number], rewards, "rewards")
            assert_identical(rollout.terminated[number], terminations, "terminations")
        for envs in wrapped:
            envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_other_wrappers_and_evaluations_see_steps_and_not_frames(mode):
    expected = [[] for _ in range(3)]
    for episodes, trace in zip(
        expected, alone(ScreenEnv, SCRIPT, lambda env: Preprocessed(env)), strict=True
    ):
        total, length = 0.0, 0
        for moment in trace:
            total, length = (0.0, 0) if moment.what == "reset" else (total, length + 1)
            total += moment.reward
            if moment.terminated or moment.truncated:
                episodes.append((total, length))
    counted = [[] for _ in range(3)]

    def count(result, rows):
        infos = result[-1]
        for place in np.flatnonzero(infos.get("_episode", [])):
            episode = infos["episode"]
            counted[rows[place]].append((episode["r"][place], episode["l"][place]))

    envs = AtariPreprocessing(build("inline", ScreenEnv, mode), screen_size=(10, 8))
    drive(RecordEpisodeStatistics(envs), SCRIPT, "mask", check=count, close=False)
    for found, episodes in zip(counted, expected, strict=True):
        assert len(episodes) > 3
        # Rows that were done early went on.
        np.testing.assert_allclose(found[: len(episodes)], episodes, rtol=1e-6)
    evaluation = cartwheel.evaluate(
        envs,
        lambda images: images[:, 0, 0].astype(int) % 3,
        episodes_per_env=4,
        seed=4,
        progress=False,
    )
    assert evaluation.lengths.max() <= 3  # of at most 9 frames
    envs.close()


def test_a_state_of_the_wrapper_goes_on_elsewhere():
    wrapped = [
        AtariPreprocessing(
            build("inline", ScreenEnv, D, on_done="freeze", states="pickle"),
            screen_size=6,
            stack_size=2,
        )
        for _ in range(2)
    ]
    for envs in wrapped:
        envs.reset(seed=3)
    for _ in range(4):
        shown = wrapped[0].step(np.array([0, 1, 2]))[0]
    state = wrapped[0].state_dict()
    assert_identical(wrapped[1].load_state_dict(state), shown)
    assert_identical(wrapped[1].state_dict(), state, "the state")
    mask = np.array([True, False, False])
    again, _ = wrapped[1].reset(seed=4, options={"reset_mask": mask})
    assert_identical(again[1:], shown[1:], "rows that were left alone")
    before, bad = wrapped[1].state_dict(), copy.deepcopy(state)
    bad["wrappers"][0]["state"]["images"] = np.zeros((2, 6, 6), np.uint8)
    with pytest.raises(ValueError, match=r"SkippedFrames: .*\(3, 6, 6\), got uint8 \(2, 6, 6\)"):
        wrapped[1].load_state_dict(bad)
    assert_identical(wrapped[1].state_dict(), before)
    for envs in wrapped:
        envs.close()


def test_sizes_are_opencvs_up_to_one_level():
    cv2.setNumThreads(1)  # it would keep its threads
    for size in [(7, 9), (40, 31), (21, 16)]:
        theirs = gym.wrappers.ResizeObservation(ScreenEnv(), size)
        ours = ResizeObservation(build("inline", ScreenEnv, N, 1), size)
        expected, _ = theirs.reset(seed=1)
        observations, _ = ours.reset(seed=1)
        assert ours.single_observation_space == theirs.observation_space
        assert abs(observations[0].astype(int) - expected).max() <= 1
        ours.close()


def test_spaces_are_those_of_gymnasium():
    single = ScreenEnv()
    envs = build("inline", ScreenEnv, N)
    for keep_dim in (False, True):
        space = gym.wrappers.GrayscaleObservation(single, keep_dim).observation_space
        assert GrayscaleObservation(envs, keep_dim).single_observation_space == space
    first = GrayscaleObservation(envs, keep_dim=True, channel_first=True)
    assert first.single_observation_space == Box(0, 255, (1, 21, 16), np.uint8)
    assert first.observation_space.shape == (3, 1, 21, 16)
    usual = AtariPreprocessing(envs, stack_size=4)
    assert usual.single_observation_space == Box(0, 255, (4, 84, 84), np.uint8)
    assert usual.observation_space.shape == (3, 4, 84, 84)
    envs.close()


#: Keywords, and the error that they raise.
BAD_PREPROCESSING = [
    ({"frame_skip": 0}, "`frame_skip` must be a positive integer, got 0"),
    ({"stack_size": 0}, "`stack_size` must be a positive integer, got 0"),
    ({"screen_size": 0}, "`screen_size` must be an integer from 1 to 65536, got 0"),
    ({"screen_size": (3, -1)}, "`screen_size[1]` must be an integer from 1 to 65536, got -1"),
    ({"screen_size": (3,)}, "`screen_size` must be a tuple (height, width), got (3,)"),
    ({"channel_first": True}, "got channel_first=True, but its images have no channels"),
]
BAD_SHAPES = [
    (84, TypeError, "`shape` must be a tuple (height, width), got 84"),
    ((1, 2, 3), ValueError, "`shape` must be a tuple (height, width), got (1, 2, 3)"),
    ((1.5, 2), ValueError, "`shape[0]` must be an integer from 1 to 65536, got 1.5"),
]


def test_bad_arguments_are_refused_before_anything_is_stepped():
    envs = build("inline", ScreenEnv, N)
    for keywords, message in BAD_PREPROCESSING:
        with pytest.raises(ValueError, match=re.escape(message)):
            AtariPreprocessing(envs, **keywords)
    for shape, error, message in BAD_SHAPES:
        with pytest.raises(error, match=re.escape(message)):
            ResizeObservation(envs, shape)
    with pytest.raises(ValueError, match="have no channels"):
        GrayscaleObservation(envs, channel_first=True)
    gray_envs = GrayscaleObservation(envs, keep_dim=True)
    message = "needs images with 3 channels, shape (height, width, 3), got (21, 16, 1)"
    with pytest.raises(ValueError, match=re.escape(message)):
        GrayscaleObservation(gray_envs)
    scaled = AtariPreprocessing(envs, scale_obs=True)
    with pytest.raises(ValueError, match="of dtype uint8, got float32 from"):
        ResizeObservation(scaled, (2, 2))
    envs.close()
    envs = cartwheel.make_vec("CartPole-v1", 2)
    for make in (GrayscaleObservation, AtariPreprocessing):
        with pytest.raises(ValueError, match="needs images"):
            make(envs)
    envs.close()
    envs = cartwheel.make_vec("Taxi-v4", 2)
    with pytest.raises(TypeError, match="needs observations in a Box, got Discrete"):
        GrayscaleObservation(envs)
    envs.close()


def test_skipping_frames_needs_rows_that_can_be_stepped_apart():
    envs = build("sync", ScreenEnv, N)
    with pytest.raises(TypeError, match="frame_skip=4 needs a vector environment whose rows can"):
        AtariPreprocessing(envs)
    envs.close()
    envs = build("inline", ScreenEnv, N, batch_size=2)
    with pytest.raises(ValueError, match="batch_size=2 below num_envs=3"):
        AtariPreprocessing(envs)
    envs.close()
    envs = AtariPreprocessing(build("inline", ScreenEnv, N))
    for call in (lambda: envs.send(np.zeros(3, int)), envs.recv, envs.send_reset):
        with pytest.raises(TypeError, match="needs frame_skip=1, got frame_skip=4"):
            call()
    envs.close()


@pytest.mark.parametrize(
    ("wrap", "flag"),
    [
        (partial(ResizeObservation, shape=(7, 9)), "channel_first"),
        (GrayscaleObservation, "keep_dim"),
        (GrayscaleObservation, "channel_first"),
        (AtariPreprocessing, "max_pool"),
        (AtariPreprocessing, "grayscale_obs"),
        (AtariPreprocessing, "grayscale_newaxis"),
        (AtariPreprocessing, "scale_obs"),
        (AtariPreprocessing, "channel_first"),
    ],
)
def test_a_flag_that_is_not_a_bool_is_refused(wrap, flag):
    envs = build("inline", ScreenEnv, N)
    with pytest.raises(TypeError, match=f"`{flag}` must be True or False, got 'no'"):
        wrap(envs, **{flag: "no"})
    envs.close()
