"""The vector environment behind a ``CartwheelVecEnv``."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv

from cartwheel.arguments import as_autoreset_mode, as_env_fns, as_integer
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.near_misses import keywords_of, near_miss, shown
from cartwheel.registry.make import make_vec
from cartwheel.vector.vector_env import VectorEnv
from cartwheel.worker.env_calls import identity

#: Names of keywords in Stable-Baselines3, and cartwheel's.
_THEIRS = {"start_method": "context", "n_envs": "num_envs"}


def as_vector_env(
    envs: Any, num_envs: Any, keywords: dict[str, Any]
) -> VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]:
    """Returns a vector environment in the form that Stable-Baselines3 needs.

    Args:
        envs: Functions, an id, or a vector environment.
        num_envs: The number of environments of an id.
        keywords: Keywords of the vector environment to make.

    Raises:
        Exception: As for ``CartwheelVecEnv``. What was made here is closed.
    """
    if isinstance(envs, GymnasiumVectorEnv):
        given = _checked(envs, num_envs, keywords)
        given._pool.check("CartwheelVecEnv", idle=False)
        _check_rows(given)
        return given
    is_id = isinstance(envs, str | EnvSpec)
    _check_names(keywords)
    if is_id:
        num_envs = 1 if num_envs is None else as_integer("num_envs", num_envs, 1)
    elif isinstance(num_envs, str):  # the second argument of SubprocVecEnv is `start_method`
        raise TypeError(f"the second argument is `num_envs`: pass context={shown(num_envs)}.")
    elif num_envs is not None:
        raise TypeError(
            f"`num_envs` is for an id: repeat the function, `[function] * {shown(num_envs)}`."
        )
    else:
        envs = as_env_fns(envs)
        num_envs = len(envs)
    mode = keywords.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
    batch_size, finals = keywords.get("batch_size"), keywords.get("final_obs", "object")
    num_envs_or_batch = num_envs if batch_size is None else batch_size
    _check_form(as_autoreset_mode(mode), num_envs_or_batch, num_envs, finals)
    made: VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]
    made = make_vec(envs, num_envs, **keywords) if is_id else VectorEnv(envs, **keywords)
    try:
        _check_rows(made)
    except BaseException:
        made.close()
        raise
    return made


def _check_names(keywords: dict[str, Any]) -> None:
    """Raises ``TypeError`` for names that are easily confused with those of ``CartwheelVecEnv``."""
    for name in keywords.keys() - keywords_of(VectorEnv):
        meant = _THEIRS.get(name) or near_miss(name, ("monitor", "num_envs"))
        if meant is not None:
            raise TypeError(
                f"`{name}` is not a keyword of CartwheelVecEnv: did you mean `{meant}`?"
            )


def _checked(
    envs: GymnasiumVectorEnv[Any, Any, Any], num_envs: Any, keywords: dict[str, Any]
) -> VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]:
    """Returns a vector environment that the user made, after a check of its batches."""
    if not isinstance(envs, VectorEnv | NativeVectorEnv):
        raise TypeError(
            "`envs` must be a cartwheel.VectorEnv or a cartwheel.NativeVectorEnv without wrappers, "
            f"or functions that make environments, got {shown(envs)}."
        )
    if num_envs is not None:
        keywords = {"num_envs": num_envs, **keywords}
    if keywords:
        raise TypeError(
            f"{type(envs).__name__} is made already: pass it {', '.join(map(repr, keywords))} "
            "when you make it."
        )
    _check_form(envs.autoreset_mode, envs.batch_size, envs.num_envs, envs.final_obs)
    return envs


def _check_form(mode: AutoresetMode, batch_size: Any, num_envs: int, final_obs: Any) -> None:
    """Raises ``ValueError`` unless batches have the form that Stable-Baselines3 needs."""
    needs = "Stable-Baselines3 needs"
    if mode != AutoresetMode.SAME_STEP:
        raise ValueError(
            f"{needs} environments that restart in the step that ends an episode, "
            f"autoreset_mode='same_step', got {mode.name.lower()!r}."
        )
    if batch_size != num_envs:
        raise ValueError(
            f"{needs} batches of all {num_envs} environments, got batch_size={shown(batch_size)}: "
            "leave `batch_size` out."
        )
    if final_obs != "object":
        raise ValueError(
            f"{needs} final observations of single rows, got final_obs={final_obs!r}: leave "
            "`final_obs` out."
        )


def _check_rows(envs: VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]) -> None:
    """Checks the environments that were made."""
    _check_space(envs.single_observation_space)
    if isinstance(envs, VectorEnv):
        _check_apart(envs)


def _check_space(space: Any) -> None:
    """Raises ``ValueError`` if observations are nested more than once."""
    if not isinstance(space, Dict | Tuple):
        return
    parts = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
    for name, part in parts:
        if isinstance(part, Dict | Tuple):
            raise ValueError(  # noqa: TRY004 - the space has the right type, and a wrong form
                "Stable-Baselines3 has no nested observations: flatten the part "
                f"{name!r}, {shown(part)}, for example by wrapping each environment in "
                "gymnasium.wrappers.FlattenObservation, which makes one array of all parts."
            )


def _check_apart(envs: VectorEnv[Any, Any]) -> None:
    """Raises ``ValueError`` if two rows have the same environment."""
    rows: dict[tuple[int, int], int] = {}
    found = envs._apply("CartwheelVecEnv", "", list(range(envs.num_envs)), identity)
    for row, environment in enumerate(found):
        if rows.setdefault(environment, row) != row:
            raise ValueError(
                f"env_fns[{rows[environment]}] and env_fns[{row}] returned the same environment: "
                "each call has to make a new one, as `lambda: gymnasium.make(…)` does and "
                "`lambda: env` does not."
            )
