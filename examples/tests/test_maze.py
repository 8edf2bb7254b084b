"""The maze: its spaces, options, infos, parameters and pictures."""

from collections import deque

import gymnasium as gym
import numpy as np
import pytest

import cartwheel

ID = "my_game/Maze-v0"
WAYS = [(1, 0), (-1, 0), (0, 1), (0, -1)]


def paths(walls, to):
    """Steps to a cell from each cell, as a breadth-first search finds them; -1 for walls."""
    steps = np.full(walls.shape, -1)
    steps[to] = 0
    queue = deque([to])
    while queue:
        cell = queue.popleft()
        for down, right in WAYS:
            near = cell[0] + down, cell[1] + right
            if not walls[near] and steps[near] < 0:
                steps[near] = steps[cell] + 1
                queue.append(near)
    return steps


def test_spaces_have_the_bounds_of_the_size():
    envs = cartwheel.make_vec(ID, 2, size=7)
    spaces = {
        "player": gym.spaces.Box(1, 5, (2,), np.int64),
        "walls": gym.spaces.MultiBinary((7, 7)),
    }
    assert envs.single_observation_space == gym.spaces.Dict(spaces)
    assert envs.single_action_space == gym.spaces.MultiDiscrete([3, 3])
    envs.close()


@pytest.mark.parametrize("size", [5, 9, 31])
def test_the_exit_is_reached_on_the_shortest_path(size):
    envs = cartwheel.make_vec(ID, 1, size=size, autoreset_mode="disabled")
    for seed in range(10):
        seen, infos = envs.reset(seed=seed)
        to = (size - 2, size - 2)
        steps = paths(seen["walls"][0], to)
        free = seen["walls"][0] == 0
        assert (steps[free] >= 0).all()  # there is a way from everywhere
        cell, over = tuple(seen["player"][0]), False
        while not over:
            way = next(w for w in WAYS if steps[cell[0] + w[0], cell[1] + w[1]] == steps[cell] - 1)
            seen, rewards, terminations, _, infos = envs.step(np.array([way]) + 1)
            assert tuple(seen["player"][0]) == (cell[0] + way[0], cell[1] + way[1])
            cell, over = tuple(seen["player"][0]), terminations[0]
            assert infos["distance"][0] == 2 * (size - 2) - sum(cell)
        assert cell == to
        assert rewards[0] == 1
    envs.close()


def test_walls_stop_the_player():
    envs = cartwheel.make_vec(ID, 64, size=9)
    seen, _ = envs.reset(seed=2)
    for _ in range(100):
        seen, *_ = envs.step(envs.action_space.sample())
        rows, columns = seen["player"].T
        assert not seen["walls"][np.arange(64), rows, columns].any()
    envs.close()


def test_an_episode_is_cut_after_200_steps():
    env = gym.make(ID)
    env.reset(seed=1)
    flags = [env.step(np.array([1, 1]))[2:4] for _ in range(200)]  # stands still
    assert flags == [(False, False)] * 199 + [(False, True)]
    env.close()


def test_a_reset_starts_where_it_is_told():
    envs = cartwheel.make_vec(ID, 3)
    seen, infos = envs.reset(seed=1, options={"start": [1, 3]})
    assert seen["player"].tolist() == [[1, 3]] * 3
    assert infos["distance"].tolist() == [10] * 3
    envs.close()


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"size": 8}, ValueError, "`size` must be an odd number from 5 to 99, got 8"),
        ({"size": -3}, ValueError, "`size` must be a whole number that is not negative, got -3"),
        ({"size": "big"}, ValueError, "`size` must be a whole number .* got 'big'"),
        ({"sise": 9}, TypeError, "`sise` is not a keyword .* did you mean `size`"),
    ],
)
def test_wrong_keywords_are_named(keywords, error, text):
    with pytest.raises(error, match=text):
        cartwheel.make_vec(ID, 2, **keywords)


def test_wrong_options_of_a_reset_are_named_and_change_nothing():
    envs = cartwheel.make_vec(ID, 2)
    first, _ = envs.reset(seed=1)
    with pytest.raises(cartwheel.EnvFailedError, match=r"`start` is not a free cell: \[0, 4\]"):
        envs.reset(options={"start": [0, 4]})
    with pytest.raises(ValueError, match="`start`"):
        envs.reset(options={"start": "here"})
    again, _ = envs.reset(seed=1)
    assert np.array_equal(again["walls"], first["walls"])
    envs.close()


def test_the_probability_that_a_move_fails_is_a_parameter():
    envs = cartwheel.make_vec(ID, 4)
    envs.set_attr("slip", [0.0, 1.0, 0.0, 1.0])
    assert envs.get_attr("slip") == (0.0, 1.0, 0.0, 1.0)
    with pytest.raises(
        ValueError, match="`slip` of row 2 must be a probability from 0 to 1, got 2"
    ):
        envs.set_attr("slip", [0.0, 1.0, 2.0, 1.0])
    assert envs.get_attr("slip") == (0.0, 1.0, 0.0, 1.0)
    before, _ = envs.reset(seed=[5, 5, 5, 5], options={"start": [1, 1]})
    for action in ([2, 1], [1, 2]):  # one of the two ways is open
        after, *_ = envs.step(np.tile(action, (4, 1)))
    moved = (before["player"] != after["player"]).any(1)
    assert moved.tolist() == [True, False, True, False]
    envs.close()


def test_the_picture_shows_what_is_observed():
    looks = {"#": (40, 40, 40), " ": (255, 255, 255), "@": (220, 60, 40), "X": (40, 160, 80)}
    text, image = (gym.make(ID, render_mode=mode, size=11) for mode in ("ansi", "rgb_array"))
    seen, _ = text.reset(seed=4)
    image.reset(seed=4)
    cells = np.array([list(line) for line in text.render().splitlines()])
    assert np.array_equal(cells == "#", seen["walls"] == 1)
    assert np.argwhere(cells == "@").tolist() == [seen["player"].tolist()]
    assert np.argwhere(cells == "X").tolist() == [[9, 9]]
    colors = np.array([[looks[cell] for cell in row] for row in cells], np.uint8)
    assert np.array_equal(image.render(), np.kron(colors, np.ones((16, 16, 1), np.uint8)))
    text.close()
    image.close()
