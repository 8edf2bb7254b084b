"""Impossible arguments are refused before anything is made, in the words of the caller.

What is made looks for signals meanwhile.
"""

import signal

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel import envpool
from cartwheel._cartwheel import NativeEnvs
from cartwheel._internal.arguments import MAX_BATCHES, MAX_ENVS
from tests.support.cases import POLE
from tests.support.programs import run_program

#: More than any number of something, than a register holds, and than a number of C holds.
LARGE = [2**31, 2**63, 2**64 - 1, 10**30]


@pytest.mark.parametrize("number", [MAX_ENVS + 1, *LARGE])
def test_more_environments_than_there_are_numbers_for_are_refused(number):
    text = rf"^`num_envs` must be at most {MAX_ENVS}, got {number}\.$"
    for make in (cartwheel.make_vec, gym.make_vec):
        with pytest.raises(ValueError, match=text):
            make("cartwheel/CartPole-v1", number)
    for call in (
        lambda: cartwheel.make_vec("CartPole-v1", number),
        lambda: cartwheel.NativeVectorEnv("CartPole-v1", number),
        lambda: envpool.make("CartPole-v1", num_envs=number),
    ):
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.parametrize("number", [MAX_BATCHES + 1, 10**8, 2**40, *LARGE])
def test_more_batches_than_can_be_kept_are_refused(build_any, number):
    text = rf"^`max_batches` must be at most {MAX_BATCHES}, got {number}\.$"
    with pytest.raises(ValueError, match=text):
        build_any([POLE] * 2, max_batches=number)


def test_as_many_batches_as_can_be_kept_take_no_memory_at_first(build_any):
    envs = build_any([POLE] * 2, max_batches=MAX_BATCHES)
    envs.reset(seed=1)
    kept = [envs.step([0, 1])[0] for _ in range(20)]
    assert len({each.tobytes() for each in kept}) > 2
    assert envs.stats().copies == 0


@pytest.mark.parametrize("number", LARGE)
def test_a_first_processor_of_any_number_is_one_of_this_machine_or_refused(number):
    keywords = {"executor": "thread", "num_workers": 4, "thread_affinity_offset": number}
    if number > 2**32:
        with pytest.raises(ValueError, match=r"^`thread_affinity_offset` must be at most "):
            cartwheel.NativeVectorEnv("CartPole-v1", 4096, **keywords)
        return
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 4096, **keywords)
    assert envs.reset(seed=1)[0].shape == (4096, 4)
    envs.close()


WITH_VALUE = (
    *("num_workers", "max_concurrency", "batch_size", "max_restarts", "max_batches"),
    *("max_episode_steps", "action_repeat"),
)


@pytest.mark.parametrize("number", LARGE)
def test_every_number_is_taken_or_refused_by_name(build_any, number):
    for name in WITH_VALUE:
        try:
            build_any([POLE] * 2, **{name: number}).close()
        except ValueError as error:  # either is fine
            assert str(error).startswith(f"`{name}` must be "), error  # noqa: PT017
    envs = build_any([POLE] * 2)
    envs.reset(seed=number)
    for call, name in [
        (lambda: envs.rollout(number), "num_steps"),
        (lambda: envs.recv(max_rows=number), "max_rows"),
        (lambda: cartwheel.wrappers.FrameStack(envs, number), "stack_size"),
        (lambda: cartwheel.evaluate(envs, np.zeros_like, episodes_per_env=number + 2**32), "epi"),
        (
            lambda: cartwheel.wrappers.RecordEpisodeStatistics(envs, buffer_length=number + 2**32),
            "buffer_length",
        ),
    ]:
        with pytest.raises(ValueError, match=f"^`{name}.* must be (at most|an integer from) "):
            call()


@pytest.mark.usefixtures("program_server")
@pytest.mark.parametrize("env_id", ["cartwheel/CartPole-v1", "CartPole-v1", "cartwheel/Taxi-v4"])
def test_environments_that_do_not_fit_into_memory_are_refused_before_one_is_made(env_id):
    facts = run_program("make_with_8_gib", env_id, MAX_ENVS)
    assert facts["error"][0] == "MemoryError"
    assert facts["mib"] < 300


class Interrupted(Exception):
    """The exception of a signal handler."""


def test_a_signal_is_noticed_while_environments_are_made():
    def interrupt(*_):
        raise Interrupted

    def make_until_the_alarm():
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        envs.make()

    rows = [(first, first + 1000) for first in range(0, 400_000, 1000)]
    envs = NativeEnvs("FrozenLake-v1", "{}", rows, autoreset_mode="NextStep", freeze=False)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupted):
            make_until_the_alarm()
    finally:
        signal.signal(signal.SIGALRM, before)
    envs.make()  # it was not completed
    with pytest.raises(RuntimeError, match="made already"):
        envs.make()
