"""The vector environment behind a ``CartwheelVecEnv``."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv

from cartwheel.arguments import as_autoreset_mode, as_env_fns, as_num_envs
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.near_misses import keywords_of, shown
from cartwheel.registry.make import make_vec
from cartwheel.spaces import nested
from cartwheel.trainers import check_given, check_mode, check_names, check_whole_batches
from cartwheel.vector.vector_env import VectorEnv

#: Keywords that are not those of the vector environment, also by Stable-Baselines3's names.
_OWN_KEYWORDS = {
    "monitor": "monitor",
    "num_envs": "num_envs",
    "n_envs": "num_envs",
    "start_method": "context",
}


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
        _check_space(given.single_observation_space)
        return given
    is_id = isinstance(envs, str | EnvSpec)
    check_names("CartwheelVecEnv", keywords, keywords_of(VectorEnv), _OWN_KEYWORDS)
    if is_id:
        num_envs = 1 if num_envs is None else as_num_envs(num_envs)
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
    finals = keywords.get("final_obs", "object")
    _check_form(as_autoreset_mode(mode), keywords.get("batch_size"), num_envs, finals)
    made: VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]
    made = make_vec(envs, num_envs, **keywords) if is_id else VectorEnv(envs, **keywords)
    try:
        _check_space(made.single_observation_space)
    except BaseException:
        made.close()
        raise
    return made


def _checked(
    envs: GymnasiumVectorEnv[Any, Any, Any], num_envs: Any, keywords: dict[str, Any]
) -> VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]:
    """Returns a vector environment that the user made, after a check of its batches."""
    if not isinstance(envs, VectorEnv | NativeVectorEnv):
        raise TypeError(
            "`envs` must be a cartwheel.VectorEnv or a cartwheel.NativeVectorEnv without wrappers, "
            f"or functions that make environments, got {shown(envs)}."
        )
    given = keywords if num_envs is None else {"num_envs": num_envs, **keywords}
    check_given("CartwheelVecEnv", envs, given)
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


def _check_space(space: Any) -> None:
    """Raises ``ValueError`` if observations are nested more than once."""
    for name, part in nested.parts(space):
        if isinstance(part, Dict | Tuple):
            raise ValueError(  # noqa: TRY004 - the space has the right type, and a wrong form
                "Stable-Baselines3 has no nested observations: flatten the part "
                f"{name!r}, {shown(part)}, for example by wrapping each environment in "
                "gymnasium.wrappers.FlattenObservation, which makes one array of all parts."
            )
