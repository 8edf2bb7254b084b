"""The environment keeps the promises of a vector environment."""

import my_game  # noqa: F401 - registers the environment

import cartwheel


def test_every_check_passes() -> None:
    envs = cartwheel.make_vec("my_game/Maze-v0", 5, size=7)
    print(cartwheel.testing.check_vector_env(envs))
    envs.close()
