"""MuJoCo models against mjbatch, a C++ pool for MuJoCo: the same model, rewards and resets.

mjbatch steps simulations and shows their states as arrays. A reinforcement-learning environment
around it is the loop that its examples write: controls, steps, rewards, the ends of episodes, and
resets of the rows that ended. Here this loop has the functions of ``examples/arm.py``, and the
rewards, ends and noise of Gymnasium's HalfCheetah-v5 and Hopper-v5. Both contenders reset a row in
the step after its last one, and return copies of the observations. The random numbers of resets
come from a generator for each row in cartwheel, and from one for all rows in the loop.

Before the race, the simulations of both must have the same bits after the same actions.

mjbatch asks for one version of MuJoCo, so this runs in an environment of its own:
``make bench-mjbatch``.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from importlib import metadata
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import mujoco
import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env, options_of, ratios_of
from cartwheel.bench.contenders import Contender
from cartwheel.bench.envpool import load_package, why_not_loaded
from cartwheel.bench.race import race
from cartwheel.bench.runner import VectorRunner, sample_actions
from examples import arm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float64]]

#: Rows of a race, and what cartwheel's rate must be, in mjbatch's.
BOUNDS = {64: 1.0, 1024: 1.0}
#: Steps whose bits are compared, in an episode.
COMPARED = 15


class OneGenerator:
    """The random numbers of a reset, for all of its rows from one generator."""

    def __init__(self, generator: np.random.Generator, rows: int) -> None:
        """Draws nothing yet."""
        self._generator, self._rows = generator, rows

    def uniform(self, low: Any, high: Any, size: tuple[int, ...] = ()) -> NDArray[np.float64]:
        """``(rows, *size)`` numbers."""
        return self._generator.uniform(low, high, (self._rows, *size))

    def normal(self, scale: float, size: tuple[int, ...]) -> NDArray[np.float64]:
        """``(rows, *size)`` numbers."""
        return scale * self._generator.standard_normal((self._rows, *size))


class MjbatchEnvs(ABC):
    """A vector environment around mjbatch, in the autoreset mode ``NEXT_STEP``.

    Attributes:
        num_envs: Number of rows.
        fields: Arrays of all rows, as mjbatch shows them.
    """

    model: Any
    frame_skip: int
    limit: int
    #: Names of the arrays that rewards are computed from.
    observed: tuple[str, ...] = ("qpos", "qvel")

    def __init__(self, num_envs: int) -> None:
        """Makes the simulations, on all processors."""
        self.num_envs = num_envs
        self.batch = load_package("mjbatch").Batch(self.model, num_envs)
        self.fields: Arrays = {name: self.batch.bind(name) for name in self.observed}
        self._ctrl = self.batch.bind("ctrl")
        self._generator = np.random.default_rng(0)
        self._over = np.ones(num_envs, np.bool_)  # so the first step resets
        self._elapsed = np.zeros(num_envs, np.int64)

    def step(self, actions: NDArray[np.float32]) -> Any:
        """Steps all rows; those that are over begin again."""
        before = {name: field.copy() for name, field in self.fields.items()}
        resets = self._over
        self._ctrl[:] = actions
        if not resets.any():
            self.batch.step(nstep=self.frame_skip)
        else:
            if not resets.all():
                self.batch.step(~resets, nstep=self.frame_skip)
            rows = np.flatnonzero(resets)
            self._ctrl[rows] = 0.0
            self.reset(rows, OneGenerator(self._generator, len(rows)))
        self._elapsed += 1
        self._elapsed[resets] = 0
        rewards, terminations, infos = self.rewarded(before, actions)
        rewards[resets] = 0.0
        terminations &= ~resets
        truncations = self._elapsed >= self.limit
        self._over = terminations | truncations
        return self.observations(), rewards, terminations, truncations, infos

    @abstractmethod
    def reset(self, rows: NDArray[np.intp], rng: OneGenerator) -> None:
        """Resets rows."""

    @abstractmethod
    def rewarded(self, before: Arrays, actions: NDArray[np.float32]) -> Any:
        """Rewards, terminations and infos of all rows."""

    def observations(self) -> NDArray[np.float64]:
        """A copy of the observations of all rows."""
        parts = [field.reshape(self.num_envs, -1) for field in self.fields.values()]
        return np.concatenate(parts, axis=1)

    def close(self) -> None:
        """Drops the simulations, whose threads end with them."""
        del self.batch


class Arms(MjbatchEnvs):
    """The arms of ``examples/arm.py``."""

    model = mujoco.MjModel.from_xml_string(arm.ARM)
    frame_skip, limit, observed = arm.FRAME_SKIP, arm.LIMIT, arm.FIELDS

    def __init__(self, num_envs: int) -> None:
        """Makes the simulations, with masses and gains of their own."""
        super().__init__(num_envs)
        self.written = {
            "qpos": self.fields["qpos"],
            "mocap_pos": self.fields["mocap_pos"],
            "model.body_mass": self.batch.expand("body_mass"),
            "model.actuator_gear": self.batch.expand("actuator_gear"),
        }

    def reset(self, rows: NDArray[np.intp], rng: OneGenerator) -> None:
        """Calls the function of the arms, and writes what it drew."""
        self.fields["qvel"][rows] = 0.0
        drawn = {name: field[rows] for name, field in self.written.items()}
        arm.reset(rng, rows, drawn)
        self.write(rows, drawn)

    def write(self, rows: NDArray[np.intp], drawn: Arrays) -> None:
        """Begins episodes with these fields."""
        for name, values in drawn.items():
            self.written[name][rows] = values
        self.batch.set_const(rows)
        self.batch.reset(rows)

    def rewarded(self, before: Arrays, actions: NDArray[np.float32]) -> Any:
        """As ``examples/arm.py``, whose episodes do not terminate."""
        rewards = arm.reward(before, actions, self.fields)
        infos = arm.infos(before, actions, self.fields)
        return rewards, np.zeros(self.num_envs, np.bool_), infos


class Locomotion(MjbatchEnvs):
    """An environment of Gymnasium that runs along the x axis."""

    env_id: str

    def __init__(self, num_envs: int) -> None:
        """Takes model, noise and initial state from Gymnasium's environment."""
        env: Any = gym.make(self.env_id)
        plain = env.unwrapped
        self.model, self.frame_skip, self.limit = plain.model, plain.frame_skip, 1000
        self._plain = plain
        super().__init__(num_envs)

    def forward(self, before: Arrays, actions: NDArray[np.float32], weight: float) -> Any:
        """The reward of running, and infos."""
        x = self.fields["qpos"][:, 0]
        speed = (x - before["qpos"][:, 0]) / self._plain.dt
        cost = weight * np.square(actions).sum(axis=1)
        infos = {"x_position": x.copy(), "x_velocity": speed, "reward_ctrl": -cost}
        return speed - cost, infos


class HalfCheetahs(Locomotion):
    """HalfCheetah-v5."""

    env_id = "HalfCheetah-v5"

    def reset(self, rows: NDArray[np.intp], rng: OneGenerator) -> None:
        """Uniform noise of positions, normal noise of velocities."""
        model = self.model
        self.fields["qpos"][rows] = self._plain.init_qpos + rng.uniform(-0.1, 0.1, (model.nq,))
        self.fields["qvel"][rows] = self._plain.init_qvel + rng.normal(0.1, (model.nv,))
        self.batch.reset(rows)

    def rewarded(self, before: Arrays, actions: NDArray[np.float32]) -> Any:
        """Never terminates."""
        rewards, infos = self.forward(before, actions, 0.1)
        return rewards, np.zeros(self.num_envs, np.bool_), infos

    def observations(self) -> NDArray[np.float64]:
        """Positions without x, and velocities."""
        return np.concatenate([self.fields["qpos"][:, 1:], self.fields["qvel"]], axis=1)


class Hoppers(Locomotion):
    """Hopper-v5."""

    env_id = "Hopper-v5"

    def reset(self, rows: NDArray[np.intp], rng: OneGenerator) -> None:
        """Uniform noise."""
        model = self.model
        self.fields["qpos"][rows] = self._plain.init_qpos + rng.uniform(-5e-3, 5e-3, (model.nq,))
        self.fields["qvel"][rows] = self._plain.init_qvel + rng.uniform(-5e-3, 5e-3, (model.nv,))
        self.batch.reset(rows)

    def rewarded(self, before: Arrays, actions: NDArray[np.float32]) -> Any:
        """Terminates where the robot falls."""
        qpos, qvel = self.fields["qpos"], self.fields["qvel"]
        rewards, infos = self.forward(before, actions, 1e-3)
        is_sane = (np.abs(qpos[:, 2:]) < 100).all(axis=1) & (np.abs(qvel) < 100).all(axis=1)
        is_healthy = is_sane & (qpos[:, 1] > 0.7) & (np.abs(qpos[:, 2]) < 0.2)
        return rewards + is_healthy, ~is_healthy, infos

    def observations(self) -> NDArray[np.float64]:
        """Positions without x, and velocities, clipped."""
        qvel = np.clip(self.fields["qvel"], -10, 10)
        return np.concatenate([self.fields["qpos"][:, 1:], qvel], axis=1)


def own_arms(num_envs: int) -> Any:
    """The arms in cartwheel."""
    return arm.make(num_envs, autoreset_mode="NextStep")


def native(env_id: str) -> Callable[[int], Any]:
    """Makes native environments of an id."""
    return lambda num_envs: cartwheel.NativeVectorEnv(env_id, num_envs)


RACES: dict[str, tuple[Callable[[int], Any], type[MjbatchEnvs]]] = {
    "arm of `examples/arm.py`": (own_arms, Arms),
    "HalfCheetah-v5": (native("HalfCheetah-v5"), HalfCheetahs),
    "Hopper-v5": (native("Hopper-v5"), Hoppers),
}


def contenders(work: str) -> tuple[Contender, Contender]:
    """Cartwheel and mjbatch's loop."""
    make, theirs = RACES[work]

    def own_runner(env_fns: Sequence[Any]) -> VectorRunner:
        envs = make(len(env_fns))
        envs.reset(seed=0)
        return VectorRunner(envs, sample_actions(envs.action_space))

    def their_runner(env_fns: Sequence[Any]) -> VectorRunner:
        envs = make(len(env_fns))
        actions = sample_actions(envs.action_space)
        envs.close()
        runner: Any = theirs(len(env_fns))
        return VectorRunner(runner, actions)

    name = "cartwheel"
    return Contender(name, own_runner), Contender("mjbatch", their_runner)


def compare_bits(work: str, num_envs: int = 7) -> None:
    """Steps both from the same states with the same actions.

    Raises:
        AssertionError: A position or a reward differs in any bit.
    """
    make, theirs = RACES[work]
    envs, other = make(num_envs), theirs(num_envs)
    envs.reset(seed=1)
    rows = np.arange(num_envs)
    now = {
        name: np.stack(envs.get_attr(f"data.{name}"))
        for name in (*other.observed, *(["mocap_pos"] if isinstance(other, Arms) else []))
    }
    if isinstance(other, Arms):
        drawn = {name: now[name] for name in ("qpos", "mocap_pos")}
        drawn |= {
            name: np.stack(envs.get_attr(name))
            for name in ("model.body_mass", "model.actuator_gear")
        }
        other.write(rows, drawn)
    else:
        other.fields["qpos"][:], other.fields["qvel"][:] = now["qpos"], now["qvel"]
        other.batch.reset(rows)
    other._over[:] = False
    envs.action_space.seed(1)
    for _ in range(COMPARED):
        actions = envs.action_space.sample()
        _, rewards, terminations, *_ = envs.step(actions)
        _, theirs_rewards, theirs_terminations, *_ = other.step(actions)
        qpos = np.stack(envs.get_attr("data.qpos"))
        lives = ~(terminations | theirs_terminations)
        np.testing.assert_array_equal(qpos[lives], other.fields["qpos"][lives])
        np.testing.assert_array_equal(terminations, theirs_terminations)
        np.testing.assert_allclose(rewards, theirs_rewards, rtol=1e-6)  # sums of other dtypes
        if not lives.all():
            break
    envs.close()


def report(seconds: float, rounds: int) -> None:
    """Prints the ratios of all races as JSON, for ``benchmarks.figures``."""
    found = []
    for work in RACES:
        compare_bits(work)
        ours, theirs = contenders(work)
        name = re.sub(r"\W+", "_", work.lower()).strip("_")
        for num_envs in BOUNDS:
            measured = race(no_env, num_envs, [ours, theirs], seconds=seconds, rounds=rounds)
            ratios = ratios_of(measured, ours, theirs)
            found.append([name, f"{work}, native", num_envs, ratios, versions()])
    print(json.dumps(found))


def versions() -> str:
    """The versions of mjbatch and of MuJoCo."""
    return f"mjbatch {metadata.version('mjbatch')}, MuJoCo {mujoco.__version__}"


def main() -> None:
    """Compares bits, then measures."""
    reason = why_not_loaded("mjbatch", ": make bench-mjbatch")
    if reason is not None:
        print(f"skipped: {reason}")
        return
    options = options_of(__doc__, has_figures=True)
    if options.json:
        report(options.seconds, options.rounds)
        return
    print(versions())
    for work in RACES:
        compare_bits(work)
        ours, theirs = contenders(work)
        check(work, no_env, {rows: [Claim(ours, theirs, at)] for rows, at in BOUNDS.items()})
        print()


if __name__ == "__main__":
    main()
