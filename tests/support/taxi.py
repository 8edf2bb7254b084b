"""``Taxi-v4`` for the tests with Gymnasium 1.2, which has only ``Taxi-v3``.

The fourth version fixed the effect of rain, and has two more keywords.
"""

from copy import deepcopy

import gymnasium as gym
from gymnasium.envs.toy_text.taxi import TaxiEnv

#: Where rain drives a taxi instead, by its action: south, north, east or west.
ASIDE = {0: (2, 3), 1: (3, 2), 2: (1, 0), 3: (0, 1)}


class Taxi(TaxiEnv):
    def __init__(
        self,
        render_mode=None,
        is_rainy=False,
        fickle_passenger=False,
        rainy_probability=0.8,
        fickle_probability=0.3,
    ):
        super().__init__(render_mode)
        self.fickle_passenger = fickle_passenger
        self.rainy_probability = rainy_probability
        self.fickle_probability = fickle_probability
        if is_rainy:
            self.P = {state: self._in_rain(state, ways) for state, ways in self.P.items()}

    def _in_rain(self, state, ways):
        after = {action: ways[action][0][1] for action in ASIDE}
        aside = (1.0 - self.rainy_probability) / 2.0
        drives = {}
        for action, sides in ASIDE.items():
            chances = [(self.rainy_probability, action), (aside, sides[0]), (aside, sides[1])]
            stays = after[action] == state
            drives[action] = [
                (chance, state if stays else after[way], -1, False) for chance, way in chances
            ]
        return {**ways, **drives}

    def reset(self, *, seed=None, options=None):
        gym.Env.reset(self, seed=seed)
        random = deepcopy(self.np_random)
        result = super().reset(options=options)
        random.random()  # where the taxi starts
        self.fickle_step = self.fickle_passenger and random.random() < self.fickle_probability
        return result


if "Taxi-v4" not in gym.registry:
    gym.register(
        "Taxi-v4", entry_point="tests.support.taxi:Taxi", reward_threshold=8, max_episode_steps=200
    )
