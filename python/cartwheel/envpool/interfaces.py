"""The interfaces of EnvPool's pools: Gymnasium's, that of gym before 0.26, and dm_env's."""

from __future__ import annotations

import enum
import keyword
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from cartwheel._internal.arguments import as_timeout
from cartwheel._internal.versions import keep_open
from cartwheel.envpool.pool import EnvPool
from cartwheel.envpool.spec import Specs, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.envpool.pool import Batch


Floats: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]


class GymnasiumEnvPool(  # type: ignore[misc]  # they differ in np_random_seed
    EnvPool[tuple[Any, Floats, Flags, Flags, dict[str, Any]]],
    gym.vector.VectorEnv[Any, Any, Any],
    gym.Env[Any, Any],
):
    """A pool whose results have Gymnasium's form.

    As in EnvPool, the pool is a ``gymnasium.vector.VectorEnv`` and a ``gymnasium.Env``, so vector
    wrappers and subclasses of ``gymnasium.Wrapper`` can wrap it.

    In every batch, ``info`` has three entries in addition to the infos of the environments, which
    are batched with ``_key`` masks as in Gymnasium. ``env_id`` (``int32``) is the environment of
    each row. ``players`` is a dictionary whose ``env_id`` (``int32``) is the environment of each
    row of observations and rewards. ``elapsed_step`` (``int32``) is the number of steps of the
    episode to which the reward and flags of the row belong; 0 if the row is the result of a reset.
    After 2,147,483,647 steps it stays at that number.

    With several players, observations and rewards have one row for each player: first all players
    of the first environment of the batch, then all of the second, and so on. ``players`` also has
    ``id`` (``int32``, the index in the environment's possible agents), ``terminated`` and
    ``truncated`` (``bool``). The infos of an agent are under its name. ``terminated`` and
    ``truncated`` of the batch have one row for each environment.

    In the mode ``SAME_STEP``, infos have ``final_obs`` and ``final_info``, and if a row ends,
    ``elapsed_step`` is the length of the ended episode, although the observation belongs to the
    next one. ``final_obs`` has the form of the environment's own observations.

    Attributes:
        is_vector_env: True, for programs written for gym before 0.26.
    """

    is_vector_env = True
    __del__ = keep_open

    def reset(
        self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets environments and receives a batch.

        Args:
            env_id: The environments; all by default.
            seed: As for :meth:`async_reset`. (EnvPool ignores the seed.)
            options: Passed to the environments. The entry ``"reset_mask"``, ``bool`` of shape
                ``(num_envs,)``, selects the environments instead of ``env_id``. Then all
                environments are returned, the others with their last observation. (EnvPool returns
                only the environments of the mask.)

        Returns:
            Observations, of shape ``(rows, *shape)``, and infos. With a ``batch_size`` below
            ``num_envs``, the batch has the environments that finish first; :meth:`recv` returns the
            others.

        Raises:
            EnvBusyError: Results of any environment are outstanding, because a reset does not
                return their rewards. (EnvPool drops them.) After a :meth:`recv` that timed out,
                see :meth:`async_reset`.
            Exception: As for :meth:`async_reset` and :meth:`recv`.
        """
        batch = self._reset(env_id, seed, options)
        return batch.observations, batch.infos

    def recv(
        self,
        reset: bool = False,  # noqa: FBT001 - EnvPool's signature
        return_info: bool = True,  # noqa: FBT001 - EnvPool's signature
        timeout: float | None = None,
    ) -> Any:
        """Receives the next batch: the first ``batch_size`` environments that are done.

        If fewer are outstanding, the batch has all of them. With ``batch_size`` equal to
        ``num_envs`` they are in the order of the sends, otherwise in the order of completion.

        Args:
            reset: Return observations and infos only.
            return_info: With ``reset``: false to return observations only.
            timeout: Seconds to wait; by default the ``timeout`` of the constructor.

        Returns:
            Observations ``(rows, *shape)``, rewards (``float32``), terminated, truncated (``bool``)
            and infos. The arrays are never overwritten.

        Raises:
            gymnasium.error.NoAsyncCallError: Nothing is outstanding.
            multiprocessing.TimeoutError: Environments are still busy; nothing is lost.
            Exception: An environment raised it. The whole batch is lost: its environments begin a
                new episode with their next step.
        """
        if self._has_form and not reset:
            seconds = self._timeout if timeout is None else as_timeout(timeout)
            return self._pool.recv(seconds)  # like `_receive`, without its overhead
        batch = self._receive(timeout)
        if reset:
            return (batch.observations, batch.infos) if return_info else batch.observations
        return tuple(batch)

    def xla(self) -> tuple[Any, Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
        """Returns functions that step the pool inside of functions that JAX compiles.

        The handle orders the calls: pass the one that the call before returned. It is not checked,
        so scripts may take it before :meth:`reset` and use it again. For checked states, dense
        ``final_obs`` and seeds use :func:`cartwheel.jax.envs_to_jax`.

        Returns:
            ``handle``, ``recv(handle)``, ``send(handle, action, env_id=None)`` and ``step(handle,
            action, env_id=None)``. ``send`` returns the handle. ``recv`` and ``step`` return the
            handle and the five results of :meth:`recv`; infos are ``env_id``, ``players`` and
            ``elapsed_step``. ``recv`` waits for ``batch_size`` environments. Wrong shapes are
            ``ValueError`` when the function is traced; other errors of a call are
            ``jax.errors.JaxRuntimeError``.

        Raises:
            RuntimeError: JAX is not installed, the environments are in Python, the mode is
                ``SAME_STEP``, or the pool has windows.
        """
        try:
            from cartwheel.envpool.xla import functions
        except ImportError as error:
            raise RuntimeError(f"XLA is unavailable: {error}") from error
        return functions(self)

    def close(self, **keywords: Any) -> None:
        """Closes the environments and ends their workers; later calls raise."""
        EnvPool.close(self, **keywords)
        self.closed = True


class GymEnvPool(  # type: ignore[misc]  # it returns no flag
    EnvPool[tuple[Any, Floats, Flags, dict[str, Any]]], gym.Env[Any, Any]
):
    """A pool whose results have the form of gym before 0.26.

    ``done`` is true where an episode ended. ``info["TimeLimit.truncated"]`` (``bool``) is true
    where it was truncated but not terminated, so that its last observation still has a value. The
    other entries of ``info`` are the same as in :class:`~cartwheel.envpool.GymnasiumEnvPool`.

    The pool is a ``gymnasium.Env``, so subclasses of ``gymnasium.Wrapper`` can wrap it.
    """

    def reset(
        self,
        env_id: Any = None,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
        return_info: bool = False,
    ) -> Any:
        """Resets environments and receives a batch.

        The arguments are the same as for :meth:`GymnasiumEnvPool.reset`.

        Returns:
            Observations; with ``return_info`` observations and infos.
        """
        batch = self._reset(env_id, seed, options)
        return (batch.observations, _infos(batch)) if return_info else batch.observations

    def recv(
        self,
        reset: bool = False,  # noqa: FBT001 - EnvPool's signature
        return_info: bool = False,  # noqa: FBT001 - EnvPool's signature
        timeout: float | None = None,
    ) -> Any:
        """Receives the next batch, see :meth:`GymnasiumEnvPool.recv`.

        Returns:
            Observations, rewards, done, infos; with ``reset`` the same as :meth:`reset`.
        """
        batch = self._receive(timeout)
        infos = _infos(batch)
        if reset:
            return (batch.observations, infos) if return_info else batch.observations
        return batch.observations, batch.rewards, batch.terminations | batch.truncations, infos


def _infos(batch: Batch) -> dict[str, Any]:
    return {**batch.infos, "TimeLimit.truncated": batch.truncations & ~batch.terminations}


try:
    from dm_env import Environment as Environment
    from dm_env import StepType as StepType
    from dm_env import TimeStep as TimeStep
except ImportError:

    class TimeStep(NamedTuple):  # type: ignore[no-redef]
        """A batch of time steps, with the fields of ``dm_env.TimeStep``."""

        step_type: Any
        reward: Any
        discount: Any
        observation: Any

    class StepType(enum.IntEnum):  # type: ignore[no-redef]
        """The numbers of ``dm_env.StepType``."""

        FIRST = 0
        MID = 1
        LAST = 2

    class Environment:  # type: ignore[no-redef]
        """An empty base class of pools if ``dm_env`` is not installed."""


#: Fields of every observation, which must not be keys of a ``Dict`` space.
_OWN_FIELDS = frozenset({"env_id", "elapsed_step", "players", "info"})


def time_step(
    observations: Any,
    rewards: Floats,
    terminations: Flags,
    truncations: Flags,
    infos: dict[str, Any],
) -> Any:
    """Converts a batch to one ``TimeStep`` of arrays.

    Returns:
        ``step_type`` (``int32``, the numbers of :data:`StepType`), ``reward`` and ``discount``
        (``float32``; the discount is 0 where the episode terminated, otherwise 1, also where it was
        truncated), and ``observation``, see :func:`merged`.
    """
    ended = np.where(terminations | truncations, np.int32(StepType.LAST), np.int32(StepType.MID))
    step_type = np.where(infos["elapsed_step"] == 0, np.int32(StepType.FIRST), ended)
    discount = np.where(terminations, np.float32(0), np.float32(1))
    return TimeStep(step_type, rewards, discount, merged(observations, infos))


def merged(observations: Any, infos: dict[str, Any]) -> Any:
    """Merges observation and infos into one named tuple.

    Its fields are ``env_id`` and ``players``; then the keys of a ``Dict`` space, or ``obs`` if the
    space is not a ``Dict`` or a key cannot be a field; then ``elapsed_step`` and the other infos
    whose keys can be fields and are not used yet; and ``info``, the dictionary of all infos.
    """
    has_fields = (
        isinstance(observations, dict)
        and all(map(_is_field, observations))
        and _OWN_FIELDS.isdisjoint(observations)
    )
    fields = {"env_id": infos["env_id"], "players": _nested("players", infos["players"])}
    fields |= observations if has_fields else {"obs": observations}
    further = {key: value for key, value in infos.items() if key not in fields}
    fields |= {key: _nested(key, value) for key, value in further.items() if _is_field(key)}
    fields["info"] = infos
    return record("State", fields)


def _nested(name: str, value: Any) -> Any:
    """Converts nested infos to named tuples of their keys' names, as EnvPool does.

    Masks cannot be fields and are only in ``info``.
    """
    if not isinstance(value, dict):
        return value
    return record(name, {key: _nested(key, part) for key, part in value.items() if _is_field(key)})


def _is_field(key: Any) -> bool:
    """Whether a named tuple can have this key as a field."""
    return (
        isinstance(key, str)
        and key.isidentifier()
        and not key.startswith("_")
        and not keyword.iskeyword(key)
    )


class DMEnvPool(Specs, EnvPool[Any], Environment):  # type: ignore[misc]  # dm_env ships no types
    """A pool whose results are batches of time steps; a ``dm_env.Environment`` if it is installed.

    Every method that receives returns a ``TimeStep`` of arrays (of ``dm_env`` if it is installed):
    ``step_type`` (``int32``: 0 first, 1 mid, 2 last), ``reward`` and ``discount`` (``float32``) and
    ``observation``. The observation is a named tuple of ``env_id``, ``players``, ``obs`` (or the
    keys of a ``Dict`` space), ``elapsed_step`` and further infos; ``info`` has all infos as a
    dictionary. If a key of a ``Dict`` space is not an identifier, or is ``env_id``,
    ``elapsed_step``, ``players`` or ``info``, then ``obs`` has the observation as a dictionary.
    First rows have reward 0 and discount 1, because arrays have no ``None``.

    The discount is 0 only where an episode terminated. In EnvPool it is 0 after a truncation, too,
    which looks like a termination.
    """

    def reset(
        self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> Any:
        """Resets environments and receives a batch, see :meth:`GymnasiumEnvPool.reset`."""
        return time_step(*self._reset(env_id, seed, options))

    def recv(
        self,
        reset: bool = False,  # noqa: ARG002, FBT001 - EnvPool's signature
        return_info: bool = True,  # noqa: ARG002, FBT001 - EnvPool's signature
        timeout: float | None = None,
    ) -> Any:
        """Receives the next batch, see :meth:`GymnasiumEnvPool.recv`.

        Args:
            reset: Has no effect: ``step_type`` marks the first rows.
            return_info: Has no effect: every time step has the infos.
            timeout: Seconds to wait; by default the ``timeout`` of the constructor.
        """
        return time_step(*self._receive(timeout))
