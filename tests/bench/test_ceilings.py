"""Loops of a ceiling in lockstep make the same turns, however long each takes."""

import functools
import random
import threading

import gymnasium as gym
import pytest

from cartwheel.bench.ceiling import NO_TURN, Ceiling, Lockstep


@pytest.mark.parametrize("number", [1, 2, 3])
def test_all_end_with_the_same_turn(number):
    turns = [0] * number + [NO_TURN]
    made = [0] * number

    def loop(place):
        lockstep, wish = Lockstep(turns, place), random.Random(place).randrange(1, 20)
        is_last = False
        while not is_last:
            made[place] += 1
            assert max(made) - min(made) <= 1
            is_last = lockstep.wait(made[place], is_over=made[place] >= wish)

    threads = [threading.Thread(target=loop, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1
    assert made[0] == random.Random(0).randrange(1, 20) + 1  # the first decides, one turn ahead


@pytest.mark.parametrize("num_envs", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_ceiling_runs_again_and_again(num_envs):
    ceiling = Ceiling([functools.partial(gym.make, "CartPole-v1")] * num_envs, lockstep=True)
    try:
        assert all(ceiling.run(0.02) > 0 for _ in range(3))
    finally:
        ceiling.close()
