"""Programs that fork while they hold batches.

A child runs a function with the argument ``wait``, a function that waits for the parent. The
result of the child's function is sent to the parent.
"""

import contextlib
import json
import os
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box

import cartwheel
from tests.programs.registry import program, tell
from tests.support.environments import LargeEnv

NUM_ENVS = 4
ACTIONS = [0] * NUM_ENVS


class CountingEnv(LargeEnv):
    observation_space = Box(0, 255, (100, 100), np.uint8)


def build(executor, **keywords):
    return cartwheel.VectorEnv(
        [CountingEnv] * NUM_ENVS, executor=executor, num_workers=2, context="fork", **keywords
    )


def shows(array, number):
    return bool((np.asarray(array) == number).all())


class Child:
    """A fork of this program that runs ``function``."""

    def __init__(self, function):
        go, self.going = os.pipe()
        self.told, tell_parent = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            answer = "the child failed"
            with contextlib.suppress(BaseException):
                answer = function(lambda: os.read(go, 1))
            os.write(tell_parent, json.dumps(answer).encode())
            os._exit(0)
        os.close(go)
        os.close(tell_parent)

    def go_on(self):
        os.write(self.going, b".")

    def answer(self):
        """Waits for the end of the child, and returns its result."""
        os.close(self.going)
        with open(self.told, "rb") as pipe:  # noqa: PTH123 (a descriptor)
            said = json.loads(pipe.read())
        os.waitpid(self.pid, 0)
        return said


@program
def parent_steps_on(executor):
    """The parent drops its batches and takes 100 steps; the child checks its own after each."""
    envs = build(executor)
    envs.reset()
    kept = [envs.step(ACTIONS)[0] for _ in range(3)]

    def look(wait):
        good = 0
        for _ in range(100):
            wait()
            good += all(shows(array, number) for number, array in enumerate(kept, 1))
        return good

    child = Child(look)
    slabs = envs.stats().batches_reserved
    kept.clear()
    for step in range(4, 104):
        assert shows(envs.step(ACTIONS)[0], step)
        child.go_on()
    tell(good=child.answer(), more=envs.stats().batches_reserved - slabs)
    envs.close()


@program
def child_writes(executor):
    envs = build(executor)
    envs.reset()
    kept = [envs.step(ACTIONS)[0] for _ in range(3)]

    def write(_wait):
        for array in kept:
            array[:] = 200
        return all(shows(array, 200) for array in kept)

    written = Child(write).answer()
    unharmed = [shows(array, number) for number, array in enumerate(kept, 1)]
    results = [shows(envs.step(ACTIONS)[0], step) for step in range(4, 10)]
    envs.close()
    tell(written=written, unharmed=unharmed, results=results)


@program
def fork_after_close(executor):
    """After ``close()`` nothing is shared: the child does not see later writes of the parent."""
    envs = build(executor)
    envs.reset()
    kept = [envs.step(ACTIONS)[0], envs.step(ACTIONS)[0]]
    before = [shows(array, number) for number, array in enumerate(kept, 1)]
    envs.close()
    after = [shows(array, number) for number, array in enumerate(kept, 1)]

    def look_and_write(wait):
        kept[0][:] = 200
        wait()
        return shows(kept[1], 2)

    child = Child(look_and_write)
    kept[1][:] = 100
    child.go_on()
    seen = child.answer()
    tell(before=before, after=after, child=seen, parent=[shows(kept[0], 1), shows(kept[1], 100)])


@program
def fork_twice(executor):
    """A child of the child starts with what the child wrote."""
    envs = build(executor)
    envs.reset()
    kept = envs.step(ACTIONS)[0]

    def write(_wait):
        kept[:2] = 200

        def look_and_write(_wait):
            seen = [shows(kept[:2], 200), shows(kept[2:], 1)]
            kept[:] = 100
            return seen

        seen = Child(look_and_write).answer()
        return [*seen, shows(kept[:2], 200), shows(kept[2:], 1)]

    answer = Child(write).answer()
    tell(child=answer, parent=shows(kept, 1))
    envs.close()


@program
def fork_with_a_rollout(executor):
    """Parent and child do not see each other's writes; the next rollout has memory of its own."""
    envs = build(executor)
    envs.reset()
    rollout = envs.rollout(5)
    for _ in range(5):
        envs.step(ACTIONS)

    def look_and_write(wait):
        wait()
        [rollout] = held
        good = [shows(rollout.observations[step], step) for step in range(6)]
        rollout.observations[:] = 200
        return good

    held = [rollout]
    child = Child(look_and_write)
    kept = rollout.observations[2]
    held.clear()
    del rollout
    assert shows(kept, 2)
    del kept
    numbers, again = [], []
    for _ in range(3):
        rollout = envs.rollout(5)
        numbers.append(len([line for line in maps() if "cartwheel-rollout" in line]))
        first = int(rollout.observations[0].flat[0])
        for _ in range(5):
            envs.step(ACTIONS)
        again.append([shows(rollout.observations[step], first + step) for step in range(6)])
        del rollout
    child.go_on()
    tell(child=child.answer(), again=again, mapped=numbers)
    envs.close()


@program
def fork_while_a_rollout_is_recorded(executor):
    """The parent records to the end; the child keeps what was recorded before the fork."""
    envs = build(executor)
    envs.reset()
    rollout = envs.rollout(6)
    for _ in range(2):
        envs.step(ACTIONS)

    def look(wait):
        wait()
        kept = [shows(rollout.observations[step], step) for step in range(3)]
        return [*kept, shows(rollout.rewards[:2], rewards)]

    rewards = rollout.rewards[:2].copy()
    child = Child(look)
    for _ in range(4):
        envs.step(ACTIONS)
    whole = [shows(rollout.observations[step], step) for step in range(7)]
    for _ in range(3):
        envs.step(ACTIONS)  # into slabs
    child.go_on()
    tell(child=child.answer(), parent=whole)
    envs.close()


def maps():
    return Path("/proc/self/maps").read_text().splitlines()


@program
def fork_while_a_step_is_pending(executor):
    envs = build(executor)
    envs.reset()
    for step in range(1, 30):
        envs.step_async(ACTIONS)
        child = Child(lambda _wait: "lived")
        assert shows(envs.step_wait()[0], step)
        assert child.answer() == "lived"
    envs.close()
    tell(steps=step)


@program
def fork_often(executor):
    """Forks after every step, while no batch is held; reports the number of slabs."""
    envs = build(executor, max_batches=8)
    envs.reset()
    slabs = []
    for step in range(1, 20):
        observations = envs.step(ACTIONS)[0]
        assert shows(observations, step)
        del observations
        assert Child(lambda _wait: "lived").answer() == "lived"
        slabs.append(envs.stats().batches_reserved)
    envs.close()
    tell(slabs=slabs)


@program
def use_in_a_child(executor):
    """The errors and results of every method of the vector environment in a child."""
    envs = build(executor)
    envs.reset()
    mask = np.ones(NUM_ENVS, np.bool_)
    calls = {
        "reset": envs.reset,
        "reset rows": lambda: envs.reset(options={"reset_mask": mask}),
        "reset_async": envs.reset_async,
        "reset_wait": envs.reset_wait,
        "step": lambda: envs.step(ACTIONS),
        "step rows": lambda: envs.step([0], [1]),
        "step_async": lambda: envs.step_async(ACTIONS),
        "step_wait": envs.step_wait,
        "send": lambda: envs.send(ACTIONS),
        "recv": envs.recv,
        "send_reset": envs.send_reset,
        "in_flight": lambda: envs.in_flight,
        "rollout": lambda: envs.rollout(3),
        "call": lambda: envs.call("observe"),
        "call_async": lambda: envs.call_async("observe"),
        "call_wait": envs.call_wait,
        "get_attr": lambda: envs.get_attr("steps"),
        "set_attr": lambda: envs.set_attr("steps", 3),
        "render": envs.render,
        "close": envs.close,
        "after close": lambda: envs.step(ACTIONS),
    }

    def use(_wait):
        raised = {}
        for name, call in calls.items():
            try:
                raised[name] = repr(call())
            except Exception as error:  # every call is tried
                raised[name] = type(error).__name__
        return raised

    answer = Child(use).answer()
    works = shows(envs.step(ACTIONS)[0], 1)
    envs.close()
    tell(raised=answer, works=works)
