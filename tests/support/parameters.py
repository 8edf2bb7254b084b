"""Parameters of native environments, which are attributes of Gymnasium's environments."""

from typing import Any

import numpy as np

#: A new value for every parameter that Gymnasium's environments read again when they step or
#: reset. A list has one value for each row.
OTHER_VALUES: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "state": [np.array([0.1, -0.2, 0.05, 0.3]), np.zeros(4), np.full(4, -0.1)],
        "gravity": [9.81, 0, -3.7],
        "masscart": 2.5,
        "masspole": 0.35,
        "total_mass": [1.0, 2.0, 3.3],
        "length": 1.7,
        "polemass_length": 0.3,
        "force_mag": [1, 30.0, -10.0],
        "tau": 0.1,
        "theta_threshold_radians": 0.05,
        "x_threshold": 0.02,
        "kinematics_integrator": ["semi-implicit euler", "euler", "other"],
    },
    "MountainCar-v0": {
        "state": np.array([-0.3, 0.02]),
        "goal_velocity": 0.01,
        "min_position": -0.5,
        "max_position": -0.45,
        "max_speed": 0.001,
        "goal_position": [-0.4, -0.5, -0.6],
        "force": 0.1,
        "gravity": [0.0, 0.01, -0.0025],
    },
    "MountainCarContinuous-v0": {
        "state": [
            np.array([-0.3, 0.02]),
            np.array([-0.3, 0.02], np.float32),
            np.array([0.1, -0.07], np.float32),
        ],
        "goal_velocity": 0.01,
        "min_action": [-0.5, 0.5, 0.0],
        "max_action": [0.5, -0.5, 0.1],
        "min_position": -0.5,
        "max_position": -0.45,
        "max_speed": 0.001,
        "goal_position": [-0.4, -0.5, -0.6],
        "power": 0.05,
    },
    "Pendulum-v1": {
        "state": [np.array([3.0, 7.5]), np.array([-300.0, 0.1]), np.zeros(2)],
        "max_speed": [1, 0.5, 100.0],
        "max_torque": [0.3, 5.0, 0.0],
        "dt": 0.01,
        "g": [0, 9.81, -5.0],
        "m": [0.1, 3.0, 1.7],
        "l": [0.7, 1.3, 2],
    },
    "Acrobot-v1": {
        "state": [np.array([3.0, -2.5, 12.0, -20.0]), np.zeros(4), np.full(4, 0.1)],
        "dt": 0.05,
        "LINK_LENGTH_1": 1.3,
        "LINK_LENGTH_2": 0.7,
        "LINK_MASS_1": 0.9,
        "LINK_MASS_2": 2.1,
        "LINK_COM_POS_1": 0.3,
        "LINK_COM_POS_2": 0.7,
        "LINK_MOI": 0.6,
        "MAX_VEL_1": 0.2,
        "MAX_VEL_2": 0.1,
        "AVAIL_TORQUE": [[-3.0, 0.5, 2.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.5]],
        "torque_noise_max": [0.0, 1.5, 0.3],
        "book_or_nips": ["nips", "book", "nips"],
    },
    "FrozenLake-v1": {"s": [14, 3, 10], "lastaction": 2},
    "CliffWalking-v1": {"s": [0, 35, 11], "lastaction": 1},
    "Taxi-v4": {
        "s": [16, 479, 97],
        "lastaction": None,
        "fickle_passenger": [True, False, True],
        "fickle_probability": 1.0,
        "fickle_step": True,
    },
    "Blackjack-v1": {
        "player": [[1, 10], [5, 5, 1], [10, 10, 1]],
        "dealer": [[10, 6], [1, 10], [2, 2]],
        "natural": True,
        "sab": [False, True, False],
    },
}
