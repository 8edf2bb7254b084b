"""Abilities that every environment of the examples gets from cartwheel, through its id."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import cartwheel
from cartwheel import envpool, testing

MODES = ["next_step", "same_step", "disabled"]


def test_the_packages_come_from_wheels():
    for name in ("cartwheel", "my_game", "my_physics"):
        assert sys.modules[name].__file__.startswith(sys.prefix)


@pytest.mark.parametrize("mode", MODES)
def test_every_promise_of_a_vector_environment_is_kept(env_id, mode):
    envs = cartwheel.make_vec(env_id, 5, autoreset_mode=mode, num_workers=2)
    report = testing.check_vector_env(envs, seed=3)
    assert {"spaces", "same_seed", "rows", "num_envs", "modes", "send_recv"} <= set(report.passed)
    envs.close()


def test_gymnasium_makes_the_same_environments(env_id):
    ours, theirs = cartwheel.make_vec(env_id, 3), gym.make_vec(env_id, 3)
    assert data_equivalence(ours.reset(seed=5), theirs.reset(seed=5))
    for _ in range(20):
        actions = ours.action_space.sample()
        assert data_equivalence(ours.step(actions), theirs.step(actions))
    ours.close()
    theirs.close()


def test_one_environment_is_a_row_of_many(env_id):
    one, many = gym.make(env_id), cartwheel.make_vec(env_id, 2)
    observation, _ = one.reset(seed=8)
    rows, _ = many.reset(seed=7)
    for _ in range(20):
        row = {key: of[1] for key, of in rows.items()} if isinstance(rows, dict) else rows[1]
        assert data_equivalence(observation, row)
        action = one.action_space.sample()
        observation, *_ = one.step(action)
        rows, *_ = many.step(np.stack([action, action]))
    one.close()
    many.close()


@pytest.mark.filterwarnings("ignore:.*infinity:UserWarning")  # speeds have no bounds
def test_gymnasium_checks_one_environment_and_finds_nothing(env_id):
    env = gym.make(env_id).unwrapped
    gym.utils.env_checker.check_env(env, skip_render_check=True)
    env.close()


def test_rows_are_sent_and_received(env_id):
    envs = cartwheel.make_vec(env_id, 6, batch_size=2, num_workers=2)
    envs.send_reset(seed=1)
    seen = np.zeros(6, int)
    while not (seen > 3).all():
        *_, infos = envs.recv()
        rows = infos["env_index"]
        seen[rows] += 1
        envs.send(envs.action_space.sample()[: len(rows)], env_index=rows)
    envs.close()


def test_the_interface_of_envpool_has_them(env_id):
    pool = envpool.make(env_id, env_type="gymnasium", num_envs=4, seed=1)
    pool.reset()
    actions = np.stack([pool.action_space.sample() for _ in range(4)])
    _, rewards, *_, infos = pool.step(actions)
    assert rewards.dtype == np.float32
    assert infos["elapsed_step"].tolist() == [1] * 4
    pool.close()


@pytest.mark.parametrize("render_mode", ["rgb_array", "ansi"])
def test_each_is_drawn_in_the_modes_that_it_declares(env_id, render_mode):
    if render_mode not in gym.make(env_id).unwrapped.metadata["render_modes"]:
        with pytest.raises(ValueError, match=render_mode):
            cartwheel.make_vec(env_id, 2, render_mode=render_mode)
        return
    envs = cartwheel.make_vec(env_id, 2, render_mode=render_mode)
    envs.reset(seed=1)
    first, second = envs.render()
    if render_mode == "ansi":
        assert first != second
        assert first.endswith("\n")
    else:
        assert (first.dtype, first.shape[2]) == (np.uint8, 3)
        assert (first != second).any()
    envs.close()


@pytest.mark.parametrize("package_id", ["my_game/Maze-v0", "my_physics/Push-v0"])
def test_the_command_line_lists_and_shows_an_environment_of_a_package(package_id):
    package = package_id.partition("/")[0]

    def page(*arguments):
        command = [sys.executable, "-m", "cartwheel", "envs", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert package_id in page("--import", package)
    assert package_id in page(f"{package}:{package_id}")


def test_an_id_imports_its_package():
    code = (
        "import cartwheel\n"
        "envs = cartwheel.make_vec('my_game:my_game/Maze-v0', 2)\n"
        "print(envs.reset(seed=1)[0]['player'].shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(2, 2)\n"
