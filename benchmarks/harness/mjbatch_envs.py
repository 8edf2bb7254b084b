"""Vector environments around mjbatch, a C++ pool for MuJoCo: an arm, and those of Gymnasium.

mjbatch steps simulations and shows their states as arrays. A reinforcement-learning environment
around it is the loop that its examples write: controls, steps, rewards, the ends of episodes, and
resets of the rows that ended. Here this loop has the functions of ``examples/arm.py``, and the
rewards, ends, observations and noise of Gymnasium's environments in version 5. A row is reset in
the step after its last one. The random numbers of resets come from one generator for all rows.

mjbatch does not call ``mj_rnePostConstraint``, so contact forces are missing: Ant, Humanoid and
HumanoidStandup are those that Gymnasium makes without them, by the keywords of ``WITHOUT_FORCES``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import mujoco
import numpy as np

from cartwheel.bench.envpool import load_package
from examples import arm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float64]]
    Rows = NDArray[np.intp]
    Actions = NDArray[np.float32]
    Flags = NDArray[np.bool_]

WITHOUT_FORCES: dict[str, dict[str, Any]] = {
    "Ant-v5": {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0},
    "Humanoid-v5": {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0},
    "HumanoidStandup-v5": {"include_cfrc_ext_in_observation": False, "impact_cost_weight": 0.0},
}


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
        actions: Those of the present step.
        past: What :meth:`before` returned in it.
    """

    model: Any
    frame_skip: int
    limit: int
    actions: Actions
    past: Any
    #: Names of the arrays that rewards and observations are computed from.
    observed: ClassVar[tuple[str, ...]] = ("qpos", "qvel")

    def __init__(self, num_envs: int) -> None:
        """Makes the simulations, on all processors."""
        self.num_envs = num_envs
        self.batch = load_package("mjbatch").Batch(self.model, num_envs)
        self.fields: Arrays = {name: self.batch.bind(name) for name in self.observed}
        self._ctrl = self.batch.bind("ctrl")
        self._generator = np.random.default_rng(0)
        self._over = np.ones(num_envs, np.bool_)  # so the first step resets
        self._elapsed = np.zeros(num_envs, np.int64)

    def step(self, actions: Actions) -> Any:
        """Steps all rows; those that are over begin again."""
        self.actions, self.past = actions, self.before()
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
        rewards, terminations, infos = self.rewarded()
        rewards[resets] = 0.0
        terminations &= ~resets
        truncations = self._elapsed >= self.limit
        self._over = terminations | truncations
        return self.observations(), rewards, terminations, truncations, infos

    def start(self) -> None:
        """Lets all rows go on from the states that were written, instead of resetting them."""
        self._over[:] = False

    def before(self) -> Any:
        """Copies of what :meth:`rewarded` needs of the states before the step."""
        return None

    @abstractmethod
    def reset(self, rows: Rows, rng: OneGenerator) -> None:
        """Resets rows."""

    @abstractmethod
    def rewarded(self) -> Any:
        """Rewards, terminations and infos of all rows."""

    @abstractmethod
    def observations(self) -> NDArray[np.float64]:
        """A copy of the observations of all rows."""

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

    def before(self) -> Arrays:
        """All fields: the functions of the example may read any."""
        return {name: field.copy() for name, field in self.fields.items()}

    def reset(self, rows: Rows, rng: OneGenerator) -> None:
        """Calls the function of the arms, and writes what it drew."""
        self.fields["qvel"][rows] = 0.0
        drawn = {name: field[rows] for name, field in self.written.items()}
        arm.reset(rng, rows, drawn)
        self.write(rows, drawn)

    def write(self, rows: Rows, drawn: Arrays) -> None:
        """Begins episodes with these fields."""
        for name, values in drawn.items():
            self.written[name][rows] = values
        self.batch.set_const(rows)
        self.batch.reset(rows)

    def rewarded(self) -> Any:
        """As ``examples/arm.py``, whose episodes do not terminate."""
        rewards = arm.reward(self.past, self.actions, self.fields)
        infos = arm.infos(self.past, self.actions, self.fields)
        return rewards, np.zeros(self.num_envs, np.bool_), infos

    def observations(self) -> NDArray[np.float64]:
        """All fields."""
        parts = [field.reshape(self.num_envs, -1) for field in self.fields.values()]
        return np.concatenate(parts, axis=1)


class GymnasiumEnvs(MjbatchEnvs):
    """An environment of Gymnasium, with the noise of its resets."""

    env_id: str
    #: Of positions, uniform to both sides, and of velocities.
    noise: float
    has_normal_velocities: bool = False
    #: Positions that observations leave out.
    hidden: int = 0

    def __init__(self, num_envs: int) -> None:
        """Takes model, initial state and lengths from Gymnasium's environment."""
        env: Any = gym.make(self.env_id)
        assert env.spec is not None
        plain = env.unwrapped
        self.model, self.frame_skip, self.dt = plain.model, plain.frame_skip, plain.dt
        self.limit = env.spec.max_episode_steps
        self._init_qpos, self._init_qvel = plain.init_qpos.copy(), plain.init_qvel.copy()
        super().__init__(num_envs)
        self.qpos, self.qvel = self.fields["qpos"], self.fields["qvel"]

    def reset(self, rows: Rows, rng: OneGenerator) -> None:
        """Noise around the initial state."""
        qpos, qvel = self.drawn(rng)
        self.qpos[rows], self.qvel[rows] = qpos, qvel
        self.batch.reset(rows)

    def drawn(self, rng: OneGenerator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positions and velocities of rows that begin."""
        noise, size = self.noise, (self.model.nv,)
        qpos = self._init_qpos + rng.uniform(-noise, noise, (self.model.nq,))
        if self.has_normal_velocities:
            return qpos, self._init_qvel + rng.normal(noise, size)
        return qpos, self._init_qvel + rng.uniform(-noise, noise, size)

    def observations(self) -> NDArray[np.float64]:
        """Positions but the hidden ones, and velocities."""
        return np.concatenate([self.qpos[:, self.hidden :], self.qvel], axis=1)

    def never(self) -> Flags:
        """No row terminates."""
        return np.zeros(self.num_envs, np.bool_)


class Runners(GymnasiumEnvs):
    """One that runs along the x axis, and terminates where it is not healthy."""

    forward_weight = 1.0
    ctrl_weight: float
    #: The reward of a step in health; none if it cannot fall.
    healthy_reward = 0.0

    def before(self) -> Any:
        """The place before the step."""
        return self.place().copy()

    def place(self) -> NDArray[np.float64]:
        """On the x axis."""
        return self.qpos[:, 0]

    def healthy(self) -> Flags:
        """Rows that go on."""
        return ~self.never()

    def rewarded(self) -> Any:
        """Speed and health, less the square of the action."""
        speed = (self.place() - self.past) / self.dt
        cost = self.ctrl_weight * np.square(self.actions).sum(axis=1)
        is_healthy = self.healthy()
        forward = self.forward_weight * speed
        infos = {"x_position": self.qpos[:, 0].copy(), "x_velocity": speed, "reward_ctrl": -cost}
        rewards = forward + self.healthy_reward * is_healthy - cost
        return rewards, ~is_healthy, infos


class HalfCheetahs(Runners):
    """HalfCheetah-v5."""

    env_id, noise, has_normal_velocities = "HalfCheetah-v5", 0.1, True
    hidden, ctrl_weight = 1, 0.1


class Swimmers(Runners):
    """Swimmer-v5."""

    env_id, noise, hidden, ctrl_weight = "Swimmer-v5", 0.1, 2, 1e-4


class Walkers(Runners):
    """Walker2d-v5."""

    env_id, noise, hidden = "Walker2d-v5", 5e-3, 1
    ctrl_weight, healthy_reward = 1e-3, 1.0

    def healthy(self) -> Flags:
        """Upright."""
        z, angle = self.qpos[:, 1], self.qpos[:, 2]
        return (z > 0.8) & (z < 2.0) & (np.abs(angle) < 1.0)

    def observations(self) -> NDArray[np.float64]:
        """With clipped velocities."""
        return np.concatenate([self.qpos[:, 1:], np.clip(self.qvel, -10, 10)], axis=1)


class Hoppers(Walkers):
    """Hopper-v5."""

    env_id = "Hopper-v5"

    def healthy(self) -> Flags:
        """Upright, and nothing is large."""
        is_sane = (np.abs(self.qpos[:, 2:]) < 100).all(axis=1) & (np.abs(self.qvel) < 100).all(1)
        return is_sane & (self.qpos[:, 1] > 0.7) & (np.abs(self.qpos[:, 2]) < 0.2)


class Ants(Runners):
    """Ant-v5 without contact forces."""

    env_id, noise, has_normal_velocities, hidden = "Ant-v5", 0.1, True, 2
    ctrl_weight, healthy_reward = 0.5, 1.0
    observed = ("qpos", "qvel", "xpos")

    def place(self) -> NDArray[np.float64]:
        """Of the torso."""
        return self.fields["xpos"][:, 1, 0]

    def healthy(self) -> Flags:
        """Neither on its back nor in the air."""
        is_finite = np.isfinite(self.qpos).all(axis=1) & np.isfinite(self.qvel).all(axis=1)
        return is_finite & (self.qpos[:, 2] >= 0.2) & (self.qpos[:, 2] <= 1.0)


class Humanoids(Runners):
    """Humanoid-v5 without contact forces."""

    env_id, noise, hidden = "Humanoid-v5", 1e-2, 2
    forward_weight, ctrl_weight, healthy_reward = 1.25, 0.1, 5.0
    observed: ClassVar[tuple[str, ...]] = (
        "qpos",
        "qvel",
        "cinert",
        "cvel",
        "qfrc_actuator",
        "xipos",
    )

    def place(self) -> NDArray[np.float64]:
        """Of the center of mass."""
        mass = self.model.body_mass
        center: NDArray[np.float64] = self.fields["xipos"][:, :, 0] @ mass / mass.sum()
        return center

    def healthy(self) -> Flags:
        """On its feet."""
        return (self.qpos[:, 2] > 1.0) & (self.qpos[:, 2] < 2.0)

    def observations(self) -> NDArray[np.float64]:
        """With inertia and velocity of each body, and the forces of the motors."""
        bodies = [
            self.fields[name][:, 1:].reshape(self.num_envs, -1) for name in self.observed[2:4]
        ]
        forces = self.fields["qfrc_actuator"][:, 6:]
        return np.concatenate([self.qpos[:, 2:], self.qvel, *bodies, forces], axis=1)


class Standups(Humanoids):
    """HumanoidStandup-v5 without contact forces."""

    env_id = "HumanoidStandup-v5"
    observed = Humanoids.observed[:-1]

    def before(self) -> Any:
        """Nothing."""

    def rewarded(self) -> Any:
        """Height, less the square of the action."""
        height = self.qpos[:, 2] / self.model.opt.timestep
        cost = 0.1 * np.square(self.actions).sum(axis=1)
        infos = {"reward_linup": height, "reward_quadctrl": -cost}
        return height - cost + 1, self.never(), infos


class Pendulums(GymnasiumEnvs):
    """InvertedPendulum-v5."""

    env_id, noise = "InvertedPendulum-v5", 0.01

    def rewarded(self) -> Any:
        """1 until it falls."""
        is_finite = np.isfinite(self.qpos).all(axis=1) & np.isfinite(self.qvel).all(axis=1)
        is_over = ~is_finite | (np.abs(self.qpos[:, 1]) > 0.2)
        rewards = (~is_over).astype(np.float64)
        return rewards, is_over, {"reward_survive": rewards}


class DoublePendulums(GymnasiumEnvs):
    """InvertedDoublePendulum-v5."""

    env_id, noise, has_normal_velocities = "InvertedDoublePendulum-v5", 0.1, True
    observed = ("qpos", "qvel", "site_xpos", "qfrc_constraint")

    def rewarded(self) -> Any:
        """Above the cart, and slow."""
        x, y = self.fields["site_xpos"][:, 0, 0], self.fields["site_xpos"][:, 0, 2]
        is_over = y <= 1
        distance = 0.01 * np.square(x) + np.square(y - 2)
        velocity = 1e-3 * np.square(self.qvel[:, 1]) + 5e-3 * np.square(self.qvel[:, 2])
        infos = {"distance_penalty": -distance, "velocity_penalty": -velocity}
        return 10.0 * ~is_over - distance - velocity, is_over, infos

    def observations(self) -> NDArray[np.float64]:
        """Angles as sines and cosines; what is clipped is as in Gymnasium."""
        angles = self.qpos[:, 1:]
        force = np.clip(self.fields["qfrc_constraint"][:, :1], -10, 10)
        parts = [self.qpos[:, :1], np.sin(angles), np.cos(angles), np.clip(self.qvel, -10, 10)]
        return np.concatenate([*parts, force], axis=1)


class Reachers(GymnasiumEnvs):
    """Reacher-v5."""

    env_id, noise = "Reacher-v5", 0.1
    observed = ("qpos", "qvel", "xpos")

    def __init__(self, num_envs: int) -> None:
        """Looks up bodies."""
        super().__init__(num_envs)
        self._tip, self._target = (self.model.body(each).id for each in ("fingertip", "target"))

    def drawn(self, rng: OneGenerator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A target within reach."""
        qpos, _ = super().drawn(rng)
        qpos[:, -2:] = drawn_until(rng, -0.2, 0.2, lambda goals: np.hypot(*goals.T) < 0.2)
        qvel = self._init_qvel + rng.uniform(-0.005, 0.005, (self.model.nv,))
        qvel[:, -2:] = 0.0
        return qpos, qvel

    def _apart(self) -> NDArray[np.float64]:
        xpos = self.fields["xpos"]
        return xpos[:, self._tip] - xpos[:, self._target]

    def rewarded(self) -> Any:
        """Near the target, by small actions."""
        distance = np.linalg.norm(self._apart(), axis=1)
        cost = np.square(self.actions).sum(axis=1)
        infos = {"reward_dist": -distance, "reward_ctrl": -cost}
        return -distance - cost, self.never(), infos

    def observations(self) -> NDArray[np.float64]:
        """Angles as cosines and sines."""
        angles = self.qpos[:, :2]
        parts = [np.cos(angles), np.sin(angles), self.qpos[:, 2:], self.qvel[:, :2]]
        return np.concatenate([*parts, self._apart()[:, :2]], axis=1)


class Pushers(GymnasiumEnvs):
    """Pusher-v5."""

    env_id, noise = "Pusher-v5", 0.0
    observed = ("qpos", "qvel", "xpos")

    def __init__(self, num_envs: int) -> None:
        """Looks up bodies."""
        super().__init__(num_envs)
        self._bodies = [self.model.body(each).id for each in ("tips_arm", "object", "goal")]

    def drawn(self, rng: OneGenerator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """An object that is not at the goal."""
        qpos, _ = super().drawn(rng)
        low, high = np.array([-0.3, -0.2]), np.array([0.0, 0.2])
        qpos[:, -4:-2] = drawn_until(rng, low, high, lambda places: np.hypot(*places.T) > 0.17)
        qpos[:, -2:] = 0.0
        qvel = self._init_qvel + rng.uniform(-0.005, 0.005, (self.model.nv,))
        qvel[:, -4:] = 0.0
        return qpos, qvel

    def rewarded(self) -> Any:
        """The hand near the object, the object near the goal, by small actions."""
        tip, thing, goal = (self.fields["xpos"][:, body] for body in self._bodies)
        near, far = (np.linalg.norm(thing - other, axis=1) for other in (tip, goal))
        cost = 0.1 * np.square(self.actions).sum(axis=1)
        infos = {"reward_dist": -far, "reward_ctrl": -cost, "reward_near": -0.5 * near}
        return -far - cost - 0.5 * near, self.never(), infos

    def observations(self) -> NDArray[np.float64]:
        """The arm, and the places of three bodies."""
        places = self.fields["xpos"][:, self._bodies].reshape(self.num_envs, -1)
        return np.concatenate([self.qpos[:, :7], self.qvel[:, :7], places], axis=1)


def drawn_until(rng: OneGenerator, low: Any, high: Any, is_right: Any) -> NDArray[np.float64]:
    """``(rows, 2)`` numbers; those that are not right are drawn again."""
    drawn = rng.uniform(low, high, (2,))
    while not (right := is_right(drawn)).all():
        drawn = np.where(right[:, None], drawn, rng.uniform(low, high, (2,)))
    return drawn


GYMNASIUM: tuple[type[GymnasiumEnvs], ...] = (
    Ants,
    HalfCheetahs,
    Hoppers,
    Humanoids,
    Standups,
    DoublePendulums,
    Pendulums,
    Pushers,
    Reachers,
    Swimmers,
    Walkers,
)
"""All of Gymnasium's, in the order of their ids."""
