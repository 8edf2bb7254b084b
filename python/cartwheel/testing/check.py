"""``check_vector_env``: runs every check in turn and reports."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_integer
from cartwheel._internal.spaces import has_fixed_shape
from cartwheel._internal.suggestions import shown, suggest, vector_env_instead
from cartwheel.multiagent.agent_rows import AgentRows
from cartwheel.multiagent.base import AgentsBase
from cartwheel.testing.attributes import check_parameters, check_states
from cartwheel.testing.episodes import (
    check_frozen_rows,
    check_masked_reset,
    check_other_seeds,
    check_same_seed,
    check_time_limit,
)
from cartwheel.testing.independence import (
    check_executors,
    check_modes,
    check_num_envs,
    check_rows,
    check_send_recv,
)
from cartwheel.testing.kit import Kit
from cartwheel.testing.rendering import check_rendering
from cartwheel.testing.report import EnvCheckError, EnvCheckReport, Unchecked
from cartwheel.testing.values import check_infos, check_spaces
from cartwheel.testing.written import check_written

if TYPE_CHECKING:
    from collections.abc import Collection

_CHECKS = {
    "spaces": check_spaces,
    "written": check_written,
    "same_seed": check_same_seed,
    "other_seeds": check_other_seeds,
    "infos": check_infos,
    "rows": check_rows,
    "num_envs": check_num_envs,
    "executors": check_executors,
    "modes": check_modes,
    "masked_reset": check_masked_reset,
    "frozen_rows": check_frozen_rows,
    "time_limit": check_time_limit,
    "send_recv": check_send_recv,
    "parameters": check_parameters,
    "states": check_states,
    "rendering": check_rendering,
}
#: The names of all checks, in their order, for the argument ``skip`` of :func:`check_vector_env`.
CHECKS = tuple(_CHECKS)


def check_vector_env(
    envs: gym.vector.VectorEnv[Any, Any, Any] | AgentsBase,
    *,
    seed: int = 0,
    steps: int = 64,
    skip: Collection[str] = (),
    ignore_infos: Collection[str] = (),
) -> EnvCheckReport:
    """Checks that environments keep the promises of Gymnasium's interface and of cartwheel's.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 3)
        >>> report = cartwheel.testing.check_vector_env(envs)
        >>> sorted(report.passed)[:4]
        ['executors', 'frozen_rows', 'infos', 'masked_reset']
        >>> envs.close()

    Each check plays runs with sampled actions and compares them bit for bit:

    * ``spaces``: observations, final ones too, lie in their spaces with exact dtype and shape;
      rewards are finite. An environment in Python is also played alone, where nothing is converted.
    * ``written``: native environments: every element of an observation is always written. The
      memory is filled with two patterns in turn.
    * ``same_seed``: the same seed gives the same observations, rewards, flags and infos, twice in
      the same object and in a new one.
    * ``other_seeds``: other seeds differ, if anything is random: if a second episode, without a new
      seed, differs from the first although its actions are the same.
    * ``infos``: a key has the same type in all steps, and at all resets.
    * ``rows``: row ``i`` with the seed ``s + i`` equals the single environment.
    * ``num_envs``, ``executors``: nothing depends on the number of rows, blocks, shards and
      workers, nor on the executor.
    * ``modes``: all autoreset modes show the same episodes.
    * ``masked_reset``, ``frozen_rows``: rows that are not reset, or that are over and frozen,
      repeat their observation and continue as if nothing had happened.
    * ``time_limit``: no episode is longer than ``max_episode_steps``.
    * ``send_recv``: rows that are sent and received are those of ``step``.
    * ``parameters``: native environments: reading a parameter, and writing back what was read,
      changes nothing.
    * ``states``: rows continue alike after ``set_state``, if there is one.
    * ``rendering``: frames have the promised type, dtype and shape, and drawing changes nothing.

    Environments of the same kind are made from the ``spec`` or the functions of ``envs``, and
    closed again. Where no episode ends within ``steps``, they get a limit of steps. A vector
    environment that cannot be made again is checked alone, and the report names the checks that
    were left out.

    Several agents. Of a :class:`~cartwheel.ParallelVectorEnv` the rows are checked. Errors name the
    parts of a row: ``observation['agents']['0'][row, agent]`` are the observations of the first
    agents that share a space, ``observation['flags']`` the flags of all agents. The rules of agents
    themselves are tested by ``pettingzoo.test.parallel_api_test(envs.as_parallel_env())``.

    Args:
        envs: A vector environment of cartwheel, or of Gymnasium. It is reset with the seed in the
            end, and stays open. After a failure, close it: rows may be in flight.
        seed: Row ``i`` gets the seed ``seed + i``; the actions are always the same.
        steps: Steps of each run. With too few steps, no episode ends.
        skip: Names of checks that are left out, of :data:`CHECKS`.
        ignore_infos: Keys of infos that are not compared, because they show times or count
            episodes, such as ``"episode"`` of ``RecordEpisodeStatistics``.

    Returns:
        The checks that passed, and those that were skipped, with the reason.

    Raises:
        EnvCheckError: The first check that fails. What the environment raised is its cause.
        TypeError: ``envs`` is not a vector environment, or is wrapped; or names are not a list.
        ValueError: There is no check of a name in ``skip``, ``steps`` or ``seed`` is too small, or
            ``envs`` has ``staggered_reset=True``; or observations of agents have no fixed shape, or
            are large in the mode ``SAME_STEP``.
        gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
        gymnasium.error.ClosedEnvironmentError: ``envs`` is closed.
    """
    rows = _rows_of(envs)
    for argument, names in (("skip", skip), ("ignore_infos", ignore_infos)):
        if isinstance(names, str):
            raise TypeError(f"`{argument}` must be a list of names, got {names!r}.")
    seed, steps = as_integer("seed", seed, 0), as_integer("steps", steps, 1)
    left_out = _left_out(skip, envs)
    kit = Kit(rows, seed, steps, ignore_infos)
    report = EnvCheckReport(kit.name, notes=kit.notes)
    try:
        for name, check in _CHECKS.items():
            if name in left_out:
                report.skipped[name] = left_out[name]
                continue
            kit.check = name
            try:
                report.passed[name] = check(kit)
            except Unchecked as reason:
                report.skipped[name] = str(reason)
            except (EnvCheckError, AlreadyPendingCallError, ClosedEnvironmentError):
                raise
            except (Exception, SystemExit) as error:  # games call `sys.exit`
                raise _raised(kit, error) from error
    finally:
        kit.close()
    _reset(envs, seed)
    return report


def _rows_of(envs: Any) -> Any:
    """Returns the vector environment to check, of several agents the one of their rows."""
    if isinstance(envs, gym.vector.VectorWrapper):
        raise TypeError(
            f"`envs` is wrapped by {type(envs).__name__}: pass `envs.unwrapped`. Wrappers of all "
            "rows change what rows show."
        )
    if isinstance(envs, AgentRows):
        raise TypeError("`envs` has a row for each agent: pass the ParallelVectorEnv, `envs.envs`.")
    rows = _pool_of(envs) if isinstance(envs, AgentsBase) else envs
    if not isinstance(rows, gym.vector.VectorEnv):
        raise TypeError(
            f"`envs` must be a vector environment, got {shown(envs)}: {vector_env_instead(envs)}."
        )
    rules = getattr(rows, "_rules", None)
    if rules is not None and rules.staggered_reset:
        raise ValueError(
            "`envs` has staggered_reset=True, so the length of an episode depends on how its row "
            "is reset: make it without `staggered_reset` for this check."
        )
    return rows


def _left_out(skip: Collection[str], envs: Any) -> dict[str, str]:
    """Returns the reason for each check that is left out."""
    left_out = dict.fromkeys(skip, "left out by `skip`")
    for name in left_out:
        if name not in _CHECKS:
            meant = suggest(name, CHECKS)
            rest = f"did you mean {meant!r}?" if meant else f"there are {', '.join(CHECKS)}."
            raise ValueError(f"`skip` has no check {name!r}: {rest}")
    if isinstance(envs, AgentsBase) and _excludes_absent(envs):
        left_out.setdefault("spaces", "absent agents show values that a space excludes")
    return left_out


def _pool_of(envs: AgentsBase) -> Any:
    """Returns the rows of environments of several agents."""
    for agent, space in envs.single_observation_space.items():
        if not has_fixed_shape(space):
            raise ValueError(
                f"the observations of agent {agent!r} have no fixed shape, so rows are not "
                f"checked: their space is {space}. Test one environment by "
                "pettingzoo.test.parallel_api_test(envs.as_parallel_env())."
            )
    pool = envs._pool
    if pool.autoreset_mode == AutoresetMode.SAME_STEP and pool.final_obs != "dense":
        raise ValueError(
            "`envs` has large observations, whose last ones are not checked in the mode SAME_STEP: "
            "make it with autoreset_mode='next_step'. The check tries all modes."
        )
    return pool


def _excludes_absent(envs: AgentsBase) -> bool:
    """Whether observations of absent agents are outside of their spaces."""
    shows_nan = math.isnan(envs._pool.absent)
    return any(
        (shows_nan and np.dtype(part.dtype).kind in "fc")
        or not part.contains(np.zeros(part.shape or (), part.dtype))
        for part in nested.leaves(envs.single_observation_space)
    )


def _reset(envs: Any, seed: int) -> None:
    """Resets all rows; none is in flight afterwards."""
    envs.reset(seed=seed)
    while getattr(envs, "in_flight", ()):  # with a `batch_size` below the number of rows
        envs.recv()


def _raised(kit: Kit, error: BaseException) -> EnvCheckError:
    """The failure for an exception of the environment."""
    notes = "; ".join([str(error).rstrip("."), *getattr(error, "__notes__", [])])
    return EnvCheckError(
        kit.check,
        kit.name,
        f"it raised {type(error).__name__}: {notes}",
        "Every action of `action_space` must be accepted in every state, and `reset`, `render` and "
        "`close` must work at any time. The traceback of the environment is above.",
    )
