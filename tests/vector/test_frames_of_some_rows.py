"""``render(env_index)`` draws the chosen rows and calls no other environment."""

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, ResetNeeded

from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv
from tests.support.platforms import needs_pygame


class PaintedEnv(TranscriptEnv):
    """A frame has the number of the row, the steps of the episode and the number of drawings."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as Gymnasium
    render_mode = "rgb_array"

    def __init__(self, row, length=100):
        super().__init__(length)
        self.row, self.drawings = row, 0

    def render(self):
        self.drawings += 1
        return np.array([[[self.row, self.t, self.drawings]]], np.uint8)


def painted(count, length=100):
    return [lambda row=row: PaintedEnv(row, length) for row in range(count)]


def test_only_the_chosen_environments_are_called(build_everywhere):
    envs = build_everywhere(painted(5))
    envs.reset()
    envs.step([0] * 5)
    drawings = np.zeros(5, int)
    for rows in ([3], [4, 0, 2], (1,), np.array([2, 4], np.int16)):
        frames = envs.render(rows)
        drawings[list(rows)] += 1
        assert isinstance(frames, tuple)
        assert [frame.tolist() for frame in frames] == [[[[row, 1, drawings[row]]]] for row in rows]
        assert envs.get_attr("drawings") == tuple(drawings)
    assert len(envs.render(env_index=None)) == len(envs.render()) == 5
    assert envs.get_attr("drawings") == tuple(drawings + 2)


@needs_pygame
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("env_id", ["Taxi-v4", "CartPole-v1"])
def test_native_rows_are_those_of_all_frames(build_native, env_id, workers):
    case = Case(env_id, {"render_mode": "rgb_array"})
    envs = build_native([case] * 6, num_workers=workers)
    envs.reset(seed=1)
    for _ in range(3):
        envs.step(np.arange(6) % 2)
    frames = envs.render()
    for rows in ([5], [4, 0, 3], [0, 1, 2, 3, 4, 5], np.array([2])):
        assert_identical(envs.render(rows), tuple(frames[row] for row in rows))


def test_rows_that_are_drawn_need_a_reset_and_others_do_not(build_native):
    envs = build_native([Case("Taxi-v4", {"render_mode": "ansi"})] * 3)
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert len(envs.render([1])) == 1
    with pytest.raises(ResetNeeded, match=r"rows \[0, 2\] have not been reset"):
        envs.render([2, 1, 0])


def test_rows_that_go_back_to_before_their_first_reset_are_not_drawn(build_native):
    envs = build_native([Case("Taxi-v4", {"render_mode": "ansi"})] * 2)
    before = envs.get_state([1])
    envs.reset(seed=1)
    assert len(envs.render()) == 2
    envs.set_state([1], before)
    for refused in (envs.render, lambda: envs.step(np.zeros(2, int))):
        with pytest.raises(ResetNeeded):
            refused()
    assert len(envs.render([0])) == 1


def test_rendering_is_refused_while_calls_are_pending_and_after_close(build_any):
    native = build_any.executor == "native"
    envs = build_any([Case("Taxi-v4", {"render_mode": "ansi"})] * 2 if native else painted(2))
    envs.reset()
    envs.send([0], [1])
    with pytest.raises(AlreadyPendingCallError):
        envs.render([0])
    envs.recv()
    assert len(envs.render([0])) == 1
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.render([7])
