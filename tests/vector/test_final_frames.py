"""Terminal states of chosen rows are drawn before SAME_STEP resets them."""

import os
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError

import cartwheel
from tests.support.cases import Case
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import TranscriptEnv, transcripts
from tests.support.oracle import MODE, D, S
from tests.support.platforms import needs_pygame


class PaintedEnv(TranscriptEnv):
    """Frames have the row, the episode and its steps; the same array each time.

    Action 8 ends the process; a drawing in episode ``fails_in`` raises.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as Gymnasium
    render_mode = "rgb_array"

    def __init__(self, row, length):
        super().__init__(length)
        self.row, self.drawings, self.fails_in = row, 0, None
        self.frame = np.zeros((1, 2, 3), np.uint8)

    def step(self, action):
        if action == 8:
            os._exit(3)
        return super().step(action)

    def render(self):
        if self.episodes == self.fails_in:
            raise RuntimeError("no paint")
        self.drawings += 1
        self.frame[0, 0] = [self.row, self.episodes % 256, self.t]
        return self.frame


def painted(*lengths):
    return [partial(PaintedEnv, row, length) for row, length in enumerate(lengths)]


def frames_of(infos):
    """Place and contents of each frame."""
    frames, mask = infos["final_frame"], infos["_final_frame"]
    assert (frames.dtype, frames.shape, mask.dtype) == (object, mask.shape, np.bool_)
    assert [frame is not None for frame in frames] == mask.tolist()
    return {place: frames[place][0, 0].tolist() for place in np.flatnonzero(mask).tolist()}


@pytest.mark.parametrize("final_obs", ["object", "dense"])
def test_chosen_rows_are_drawn_when_their_episode_ends(build_everywhere, final_obs):
    lengths = np.array([2, 3, 1, 2])
    envs = build_everywhere(painted(*lengths), autoreset_mode=S, final_obs=final_obs)
    twin = build_everywhere(transcripts(*lengths), autoreset_mode=S, final_obs=final_obs)
    envs.draw_final_frames([3, 1, 2])
    envs.reset()
    twin.reset()
    kept = []
    for step in range(1, 13):
        if step == 7:
            envs.draw_final_frames(np.array([0]))
        *_, infos = envs.step([1] * 4)
        chosen = {1, 2, 3} if step < 7 else {0}
        ended = {row for row in chosen if step % lengths[row] == 0}
        assert ("final_frame" in infos) == ("_final_frame" in infos) == bool(ended)
        if ended:
            expected = {row: [row, step // lengths[row], lengths[row]] for row in ended}
            assert frames_of(infos) == expected
            kept.append((infos["final_frame"].copy(), expected))
            del infos["final_frame"], infos["_final_frame"]
        assert_identical(infos, twin.step([1] * 4)[4])
    # Frames are copies, although the environment draws into one array.
    for frames, expected in kept:
        assert {row: frames[row][0, 0].tolist() for row in expected} == expected
    assert envs.get_attr("drawings") == (3, 2, 6, 3)
    envs.draw_final_frames([])
    for _ in range(2):
        assert "final_frame" not in envs.step([1] * 4)[4]
    assert envs.get_attr("drawings") == (3, 2, 6, 3)


def test_rows_that_are_sent_are_drawn_too(build_everywhere):
    envs = build_everywhere(painted(2, 2, 2, 2, 2), autoreset_mode=S, batch_size=2)
    envs.draw_final_frames([0, 4])
    envs.send_reset()
    steps = np.full(5, -1)
    drawn = 0
    while steps.min() < 6:
        infos = envs.recv()[4]
        rows = infos["env_index"]
        steps[rows] += 1
        expected = {
            place: [row, steps[row] // 2 % 256, 2]
            for place, row in enumerate(rows.tolist())
            if row in (0, 4) and steps[row] > 0 and steps[row] % 2 == 0
        }
        assert (frames_of(infos) if "final_frame" in infos else {}) == expected
        drawn += len(expected)
        envs.send(np.ones(len(rows), int), rows)
    assert drawn >= 6


@MODE
def test_other_modes_draw_nothing(build, mode):
    envs = build(painted(1, 2), autoreset_mode=mode, on_done="freeze")
    envs.draw_final_frames([0, 1])
    envs.reset()
    found = ["final_frame" in envs.step([1, 1])[4] for _ in range(4)]
    assert any(found) == (mode is S)


def test_a_new_worker_keeps_the_choice(build_processes):
    envs = build_processes(
        painted(3, 3, 3), autoreset_mode=S, on_worker_death="restart", num_workers=2
    )
    envs.draw_final_frames([0, 2])
    envs.reset()
    envs.step([1, 1, 8])
    batches = [envs.step([1] * 3)[4] for _ in range(6)]
    seen = [frames_of(infos) for infos in batches if "final_frame" in infos]
    assert {row for frames in seen for row in frames} == {0, 2}
    assert all(t == 3 for frames in seen for _, _, t in frames.values())


def test_an_exception_of_render_is_one_of_the_step(build):
    envs = build(painted(2, 2), autoreset_mode=S)
    envs.draw_final_frames([0, 1])
    envs.set_attr("fails_in", [None, 1])
    envs.reset()
    envs.step([1, 1])
    with pytest.raises(RuntimeError, match="no paint") as raised:
        envs.step([1, 1])
    assert_names_row(raised.value, 1)
    envs.reset(options={"reset_mask": np.array([False, True])})
    envs.step([1, 1])
    assert frames_of(envs.step([1, 1])[4]) == {0: [0, 2, 2], 1: [1, 2, 2]}


def test_an_environment_that_was_replaced_has_no_frame(build):
    envs = build(painted(2, 2), autoreset_mode=S, on_error="restart")
    envs.draw_final_frames([0, 1])
    envs.set_attr("fails_in", [None, 1])
    envs.reset()
    envs.step([1, 1])
    *_, truncations, infos = envs.step([1, 1])
    assert truncations.tolist() == [False, True]
    assert infos["env_error"][1] == "RuntimeError: no paint"
    assert frames_of(infos) == {0: [0, 1, 2]}
    envs.step([1, 1])
    assert frames_of(envs.step([1, 1])[4]) == {0: [0, 2, 2], 1: [1, 2, 2]}


class TurnsEnv(PaintedEnv):
    """Fails if two environments of a process render at the same time."""

    drawing = threading.Lock()

    def render(self):
        assert self.drawing.acquire(blocking=False), "two at the same time"
        try:
            return super().render()
        finally:
            self.drawing.release()


def test_threads_draw_in_turns():
    fns = [partial(TurnsEnv, row, 1) for row in range(6)]
    envs = cartwheel.VectorEnv(fns, executor="thread", num_workers=3, autoreset_mode=S)
    envs.draw_final_frames(range(6))
    envs.reset()
    for step in range(1, 30):
        assert frames_of(envs.step([1] * 6)[4]) == {row: [row, step, 1] for row in range(6)}
    envs.close()


# Native rows


def alone(env_id, seed, actions, **keywords):
    """The frames at the ends of the episodes of a single environment of Gymnasium, by step."""
    env = gym.make(env_id, **keywords)
    env.reset(seed=seed)
    frames = {}
    for step, action in enumerate(actions):
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            frames[step] = env.render()
            env.reset()
    env.close()
    return frames


NATIVE = {
    "CartPole-v1": {"max_episode_steps": 7},
    "MountainCar-v0": {"max_episode_steps": 4},
    "Pendulum-v1": {"max_episode_steps": 3},
    "Acrobot-v1": {"max_episode_steps": 5},
    "Blackjack-v1": {},
    "FrozenLake-v1": {},
    "CliffWalking-v1": {"max_episode_steps": 4},
    "Taxi-v4": {"max_episode_steps": 3, "fickle_passenger": True},
}


@needs_pygame
@pytest.mark.parametrize("env_id", NATIVE)
@pytest.mark.parametrize("form", ["object", "dense"])
def test_native_frames_have_the_pixels_of_a_single_environment(env_id, form):
    keywords = {"render_mode": "rgb_array", **NATIVE[env_id]}
    envs = cartwheel.NativeVectorEnv(env_id, 5, autoreset_mode=S, final_obs=form, **keywords)
    twin = cartwheel.NativeVectorEnv(env_id, 5, autoreset_mode=S, final_obs=form, **keywords)
    envs.draw_final_frames([3, 0])
    envs.action_space.seed(2)
    batches = [envs.action_space.sample() for _ in range(16)]
    expected = {
        row: alone(env_id, 20 + row, [batch[row] for batch in batches], **keywords)
        for row in (3, 0)
    }
    assert_identical(envs.reset(seed=20), twin.reset(seed=20))
    drawn = 0
    for step, actions in enumerate(batches):
        result, other = envs.step(actions), twin.step(actions)
        infos = result[4]
        frames = infos.pop("final_frame", np.full(5, None))
        mask = infos.pop("_final_frame", np.zeros(5, np.bool_))
        assert_identical(result, other)
        assert mask.tolist() == [row in (0, 3) and step in expected[row] for row in range(5)]
        for row in np.flatnonzero(mask).tolist():
            assert_identical(frames[row], expected[row][step])
            drawn += 1
    assert drawn >= 2
    assert_identical(envs.render(), twin.render())
    envs.close()
    twin.close()


@pytest.mark.parametrize("env_id", ["Taxi-v4", "FrozenLake-v1"])
def test_native_text_is_drawn_too(env_id):
    keywords = {"render_mode": "ansi", "max_episode_steps": 3}
    envs = cartwheel.NativeVectorEnv(env_id, 3, autoreset_mode=S, batch_size=2, **keywords)
    envs.draw_final_frames([0, 1, 2])
    envs.action_space.seed(4)
    actions = [[1, 2, 3, 0, 2, 1, 3], [0, 0, 1, 2, 3, 3, 1], [3, 2, 1, 1, 0, 2, 2]]
    expected = {row: alone(env_id, 9 + row, actions[row], **keywords) for row in range(3)}
    envs.send_reset(seed=9)
    steps = np.zeros(3, int)
    found = {row: {} for row in range(3)}
    while envs.in_flight:
        infos = envs.recv()[4]
        rows = infos["env_index"]
        for place in np.flatnonzero(infos.get("_final_frame", [])).tolist():
            found[int(rows[place])][int(steps[rows[place]]) - 1] = infos["final_frame"][place]
        rows = rows[steps[rows] < 7]
        if len(rows):
            envs.send(np.array([actions[row][steps[row]] for row in rows]), rows)
            steps[rows] += 1
    assert found == expected
    assert sum(map(len, found.values())) >= 6
    envs.close()


@pytest.mark.parametrize("steps", [1, 2])
def test_many_native_rows_may_be_drawn_at_once(steps):
    case = {"render_mode": "ansi", "max_episode_steps": steps, "num_workers": 2}
    envs = cartwheel.NativeVectorEnv("Taxi-v4", 40, autoreset_mode=S, **case)
    twin = cartwheel.NativeVectorEnv("Taxi-v4", 40, autoreset_mode=D, on_done="freeze", **case)
    envs.draw_final_frames(range(40))
    envs.reset(seed=1)
    twin.reset(seed=1)
    for step in range(1, 5):
        actions = np.arange(40) % 4
        infos = envs.step(actions)[4]
        over = np.logical_or(*twin.step(actions)[2:4])
        assert ("final_frame" in infos) == (step % steps == 0)
        if step % steps == 0:
            assert infos["final_frame"].tolist() == list(twin.render())
            twin.reset(options={"reset_mask": over})
    envs.close()
    twin.close()


@MODE
def test_native_rows_of_other_modes_draw_nothing(mode):
    envs = cartwheel.NativeVectorEnv(
        "Taxi-v4", 2, autoreset_mode=mode, render_mode="ansi", max_episode_steps=1, on_done="freeze"
    )
    envs.draw_final_frames([0, 1])
    envs.reset(seed=1)
    assert ("final_frame" in envs.step([0, 0])[4]) == (mode is S)
    envs.close()


# Errors


def test_other_rows_are_refused(build_any):
    native = build_any.executor == "native"
    case = Case("Taxi-v4", {"render_mode": "ansi", "max_episode_steps": 1})
    envs = build_any([case] * 3 if native else painted(1, 1, 1), autoreset_mode=S)
    envs.draw_final_frames([1])
    for rows, error, text in (
        ([3], ValueError, "`env_index` names row 3; there are rows 0 to 2"),
        ([1, 1], ValueError, "`env_index` names row 1 twice"),
        ([0.5], TypeError, "`env_index` must be a one-dimensional array of integers"),
        (1, TypeError, "`env_index` must be a one-dimensional array of integers"),
    ):
        with pytest.raises(error, match=text):
            envs.draw_final_frames(rows)
    envs.reset(seed=1)
    assert envs.step([0] * 3)[4]["_final_frame"].tolist() == [False, True, False]


def test_environments_without_frames_are_refused(build_any):
    envs = build_any([Case("CartPole-v1")] * 2, autoreset_mode=S)
    text = "return frames, such as those with render_mode='rgb_array'; these have render_mode=None"
    with pytest.raises(ValueError, match=text):
        envs.draw_final_frames([0])
    envs.draw_final_frames([])
    envs.draw_final_frames(None)


def test_it_is_refused_while_a_call_is_pending(build_any):
    native = build_any.executor == "native"
    case = Case("Taxi-v4", {"render_mode": "ansi"})
    envs = build_any([case] * 2 if native else painted(2, 2), autoreset_mode=S)
    envs.reset()
    envs.step_async([0, 0])
    with pytest.raises(AlreadyPendingCallError, match="draw_final_frames"):
        envs.draw_final_frames([0])
    envs.step_wait()
    envs.draw_final_frames([0])
