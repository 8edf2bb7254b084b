"""Environments of several agents: ``ParallelVectorEnv`` against bare loops and other packages.

Runs where all of them are, in ``.venv-agents``: ``make bench-agents``. The loops step
each environment by its own methods, on all cores at once. Loops that wait for each other after each
turn are the limit of a ``step`` of all environments. ``VectorEnv`` over the same environments,
of which it gets no observations, costs what a worker does anyway: the rest is that of the agents.

Loops count a reset as a step, as in ``NEXT_STEP``. In ``SAME_STEP`` each counted step is one of an
environment, and resets come on top, so loops that reset at once do the same work for it.

The other packages are AgileRL's ``AsyncPettingZooVecEnv``, SuperSuit's ``concat_vec_envs_v1`` in
this process and in processes, and TorchRL's ``ParallelEnv``. Each gets its own form of the actions
before the clock starts. They are imported where they are built: worker processes import this file.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections import OrderedDict
from importlib import metadata
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim
from benchmarks.harness.peers import PeerClaim, PeerRace, measure
from benchmarks.harness.runners import stepping
from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.ceiling import Ceiling
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import ACTION_BATCHES, VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cartwheel._internal.literals import Mode


class Cheap:
    """Three agents and next to no work, for the cost of the vector environment itself."""

    metadata: dict[str, Any] = {"name": "cheap"}  # noqa: RUF012 - as PettingZoo's
    render_mode = None

    def __init__(self) -> None:
        """Makes the spaces."""
        self.possible_agents = ["agent_0", "agent_1", "agent_2"]
        self.agents: list[str] = []
        self._observation_space = gym.spaces.Box(-1, 1, (18,), np.float32)
        self._action_space = gym.spaces.Discrete(5)
        self._observation = np.zeros(18, np.float32)
        self._t = 0

    def observation_space(self, agent: str) -> Any:
        """Returns the only space."""
        return self._observation_space

    def action_space(self, agent: str) -> Any:
        """Returns the only space."""
        return self._action_space

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        """Returns the only observation, of each agent."""
        self._t, self.agents = 0, list(self.possible_agents)
        return dict.fromkeys(self.agents, self._observation), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[Any, ...]:
        """Ends after a hundred steps."""
        self._t += 1
        acting, over = list(actions), self._t >= 100
        self.agents = [] if over else acting
        return (
            dict.fromkeys(acting, self._observation),
            dict.fromkeys(acting, 1.0),
            dict.fromkeys(acting, False),
            dict.fromkeys(acting, over),
            {name: {} for name in acting},
        )

    @property
    def unwrapped(self) -> Cheap:
        """Itself, which AgileRL asks for."""
        return self

    def close(self) -> None:
        """Does nothing."""


class Bare(gym.Env[Any, Any]):
    """An environment of several agents as the loop of a :class:`Ceiling` steps it."""

    observation_space = gym.spaces.Discrete(1)

    def __init__(self, make: Callable[[], Any]) -> None:
        """Makes the environment."""
        self.env = make()
        agents = self.env.possible_agents
        self.action_space = gym.spaces.Dict(
            OrderedDict((agent, self.env.action_space(agent)) for agent in agents)
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Resets it."""
        self.env.reset(seed=seed, options=options)
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps the agents that live."""
        self.env.step({agent: action[agent] for agent in self.env.agents})
        return 0, 0.0, not self.env.agents, False, {}


class BareAtOnce(Bare):
    """The same, reset in the step in which its episode ends, as in autoreset mode ``SAME_STEP``."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps the agents that live, and resets the environment if none is left."""
        super().step(action)
        if not self.env.agents:
            self.env.reset()
        return 0, 0.0, False, False, {}


def make_env(module: str, keywords: dict[str, Any]) -> Any:
    """Makes an environment; its module may warn that names of it are old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(module).parallel_env(**keywords)


def ours(mode: Mode) -> Contender:
    """``ParallelVectorEnv`` with worker processes."""

    def build(env_fns: Sequence[Any]) -> VectorRunner:
        envs: Any = cartwheel.ParallelVectorEnv(env_fns, executor="process", autoreset_mode=mode)
        envs.reset(seed=0)
        return VectorRunner(envs, sample_actions(envs.action_space))

    return Contender(f"cartwheel {mode}", build)


def lockstep(env_fns: Sequence[Any]) -> VectorRunner:
    """``VectorEnv`` with worker processes over environments that show nothing."""
    makes = [functools.partial(Bare, env_fn) for env_fn in env_fns]
    envs = cartwheel.VectorEnv(makes, executor="process")
    envs.reset(seed=0)
    return VectorRunner(envs, sample_actions(envs.action_space))


def agilerl(env_fns: Sequence[Any]) -> VectorRunner:
    """One process for each environment, and actions by agent."""
    from agilerl.vector.pz_async_vec_env import AsyncPettingZooVecEnv

    envs: Any = AsyncPettingZooVecEnv(list(env_fns))
    envs.reset(seed=0)
    by_agent = OrderedDict((agent, envs.action_space(agent)) for agent in envs.possible_agents)
    return VectorRunner(envs, sample_actions(gym.spaces.Dict(by_agent)))


def supersuit_with(num_cpus: int) -> Callable[[Sequence[Any]], VectorRunner]:
    """A row for each agent, in this process or in ``num_cpus`` processes."""

    def build(env_fns: Sequence[Any]) -> VectorRunner:
        import supersuit

        one = supersuit.pettingzoo_env_to_vec_env_v1(env_fns[0]())
        envs = supersuit.concat_vec_envs_v1(one, len(env_fns), num_cpus)
        envs.reset(seed=0)
        space = gym.vector.utils.batch_space(one.action_space, envs.num_envs)
        return stepping(len(env_fns), envs.step, sample_actions(space), envs.close)

    return build


def wrapped(env_fn: Callable[[], Any]) -> Any:
    """TorchRL's wrapper, which warns of newer versions; agents that are gone are masked."""
    from torchrl.envs import PettingZooWrapper

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PettingZooWrapper(env_fn(), use_mask=True)


def torchrl(env_fns: Sequence[Any]) -> VectorRunner:
    """One process for each environment, and tensordicts."""
    import torch
    from torchrl.envs import ParallelEnv

    threads = torch.get_num_threads()
    make = [functools.partial(wrapped, env_fn) for env_fn in env_fns]
    envs: Any = ParallelEnv(len(make), make, mp_start_method="spawn")
    shown = envs.reset()
    torch.set_num_threads(threads)  # which it changes

    def step(actions: Any) -> None:
        nonlocal shown
        shown = envs.step_and_maybe_reset(shown.update(actions))[1]

    actions = [envs.full_action_spec.rand() for _ in range(ACTION_BATCHES)]
    return stepping(len(make), step, actions, envs.close)


BARE = Contender(
    "bare loops", lambda env_fns: Ceiling([functools.partial(Bare, env_fn) for env_fn in env_fns])
)
BARE_AT_ONCE = Contender(
    "bare loops that reset at once",
    lambda env_fns: Ceiling([functools.partial(BareAtOnce, env_fn) for env_fn in env_fns]),
)
BARE_IN_LOCKSTEP = Contender(
    "bare loops in lockstep",
    lambda env_fns: Ceiling([functools.partial(Bare, env_fn) for env_fn in env_fns], lockstep=True),
)
LOCKSTEP = Contender("lockstep", lockstep)
AGILERL = Contender("AgileRL", agilerl)
PEERS = [
    AGILERL,
    Contender("SuperSuit", supersuit_with(0)),
    Contender("SuperSuit processes", supersuit_with(usable_cpus())),
    Contender("TorchRL", torchrl),
]
SPREAD = functools.partial(make_env, "mpe2.simple_spread_v3", {})
PISTONBALL = functools.partial(make_env, "pettingzoo.butterfly.pistonball_v6", {})

NEXT_STEP, SAME_STEP = ours("next_step"), ours("same_step")
#: For each race its name among the figures, work, function, number of environments and claims.
RACES: list[tuple[str, str, Callable[[], Any], int, list[Claim]]] = [
    (
        "spread",
        "MPE2's simple_spread, three agents",
        SPREAD,
        16,
        [
            Claim(NEXT_STEP, BARE, 0.9),
            Claim(SAME_STEP, BARE, 0.9),
            Claim(SAME_STEP, BARE_AT_ONCE, 0.9),
            Claim(NEXT_STEP, BARE_IN_LOCKSTEP, 0.93),
            Claim(NEXT_STEP, LOCKSTEP, 0.95),
            *(Claim(NEXT_STEP, peer, 1.35) for peer in PEERS),
        ],
    ),
    (
        "pistonball",
        "PettingZoo's pistonball, twenty agents with images",
        PISTONBALL,
        8,
        [
            Claim(NEXT_STEP, BARE, 0.95),
            Claim(SAME_STEP, BARE, 0.92),
            Claim(SAME_STEP, BARE_AT_ONCE, 0.92),
            Claim(NEXT_STEP, BARE_IN_LOCKSTEP, 0.95),
            Claim(NEXT_STEP, LOCKSTEP, 0.95),
        ],
    ),
    ("cheap", "three agents that do nothing", Cheap, 16, [Claim(NEXT_STEP, AGILERL, 5.0)]),
]


def called(rival: Contender) -> str:
    """Returns what pages call a contender."""
    if rival is BARE:
        return "the ceiling: bare loops on all cores"
    if rival is BARE_AT_ONCE:
        return "the same loops, which reset in the step that ends an episode"
    if rival is BARE_IN_LOCKSTEP:
        return "the ceiling in lockstep: bare loops that wait for each other after each turn"
    if rival is LOCKSTEP:
        return "`VectorEnv` of environments that show nothing"
    package, _, how = rival.name.partition(" ")
    return f"{package} {metadata.version(package)}{how and ', a process for each core'}"


def races() -> Iterator[PeerRace]:
    """One for each kind of environments."""
    for name, work, make, num_envs, claims in RACES:
        peers = []
        for claim in claims:
            ours, rival = claim.contender.name, claim.against
            key = f"{name}_{ours}_{rival.name}".lower().replace(" ", "_")
            mode = ours.removeprefix("cartwheel ")
            peers.append(PeerClaim(key, f"{work}, `{mode}`", claim, called(rival)))
        yield PeerRace(num_envs, peers, make)


if __name__ == "__main__":
    measure(__doc__, races())
