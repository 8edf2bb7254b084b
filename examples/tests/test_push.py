"""Pushing a parcel: the physics is that of rapier2d, the same for the same seed."""

import numpy as np
import pytest

import cartwheel

ID = "my_physics/Push-v0"


def test_a_force_accelerates_the_robot_and_the_walls_hold_it():
    envs = cartwheel.make_vec(ID, 16, pillars=0)
    envs.reset(seed=1)
    for _ in range(60):
        seen, *_ = envs.step(np.tile(np.float32([1, 0]), (16, 1)))
    assert (seen[:, 2] > 2).all()  # all are at the wall on the right, or press the parcel to it
    assert (np.abs(seen[:, [2, 3, 6, 7]]) < 3).all()
    envs.close()


def test_a_robot_that_follows_the_parcel_moves_it():
    envs = cartwheel.make_vec(ID, 16, pillars=0)
    start, _ = envs.reset(seed=3)
    seen = start
    for _ in range(60):
        force = seen[:, 6:8] - seen[:, 2:4]
        seen, *_, infos = envs.step(force / np.linalg.norm(force, axis=1, keepdims=True))
        assert np.allclose(infos["distance"], np.linalg.norm(seen[:, 6:8] - seen[:, :2], axis=1))
    assert (np.linalg.norm(seen[:, 6:8] - start[:, 6:8], axis=1) > 0.3).all()
    envs.close()


def test_a_simulation_that_diverges_fails_its_row_and_no_other():
    envs = cartwheel.make_vec(ID, 3, on_error="restart")
    envs.reset(seed=1)
    envs.set_attr("force", [12.0, np.inf, 12.0])
    actions = np.tile(np.float32([0.5, 0.5]), (3, 1))
    *_, truncations, infos = envs.step(actions)
    assert truncations.tolist() == [False, True, False]
    assert "the simulation diverged" in str(infos["env_error"][1])
    envs.close()


@pytest.mark.parametrize("pillars", [-1, 13])
def test_the_room_has_at_most_twelve_pillars(pillars):
    with pytest.raises(ValueError, match="`pillars` must be"):
        cartwheel.make_vec(ID, 1, pillars=pillars)
