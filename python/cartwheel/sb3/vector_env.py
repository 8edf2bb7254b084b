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
from cartwheel.trainers import check_mode, check_no_keywords, check_whole_batches
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
        _check_rows(given)
        return given
    is_id = isinstance(envs, str | EnvSpec)
    _check_names(keywords)
    if is_id:
        num_envs = 1 if num_envs is None else as_integer("num_envs", num_envs, 1)
    elif num_envs is not None:
        raise TypeError(
            f"`num_envs` is for an id: repeat the function, `[function] * {shown(num_envs)}`."
        )
    else:
        envs = as_env_fns(envs)
        num_envs = len(envs)
    mode = keywords.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
    finals = keywords.get("final_obs", "object")
    _check_form(as_autoreset_mode(mode), keywords.get("batch_size"), num_envs, finals)
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
    check_no_keywords(envs, keywords if num_envs is None else {"num_envs": num_envs, **keywords})
    _check_form(envs.autoreset_mode, envs.batch_size, envs.num_envs, envs.final_obs)
    return envs


def _check_form(mode: AutoresetMode, batch_size: Any, num_envs: int, final_obs: Any) -> None:
    """Raises ``ValueError`` unless batches have the form that Stable-Baselines3 needs."""
    why = "Stable-Baselines3 needs environments that restart in the step that ends an episode"
    check_mode(mode, AutoresetMode.SAME_STEP, why)
    check_whole_batches("Stable-Baselines3", batch_size, num_envs)
    if final_obs != "object":
        raise ValueError(
            "Stable-Baselines3 needs final observations of single rows, got "
            f"final_obs={shown(final_obs)}: leave `final_obs` out."
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
