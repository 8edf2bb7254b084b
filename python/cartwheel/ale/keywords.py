"""Checks of ale-py's keywords, which it takes as they are."""

from __future__ import annotations

from typing import Any

from ale_py.vector_env import AtariVectorEnv

from cartwheel.arguments import as_fraction, as_integer
from cartwheel.near_misses import keywords_of, listed, near_miss, place_of, shown
from cartwheel.vector.vector_env import VectorEnv

#: The keywords that :class:`~cartwheel.ale.AleVectorEnv` has beside ale-py's.
_OWN = {"final_obs"}
#: What ale-py has in place of keywords of other vector environments.
_INSTEAD = {
    "max_episode_steps": "`max_num_frames_per_episode` counts frames, `frameskip` of them a step",
    "num_workers": "threads are `num_threads`",
    "render_mode": "ale-py's vector environment draws nothing, executor='process' does",
    "frame_skip": "ale-py's name is `frameskip`",
    "frame_stack": "ale-py's name is `stack_num`",
    "mode": "executor='process' has modes and difficulties of games",
    "difficulty": "executor='process' has modes and difficulties of games",
    "obs_type": "ale-py's choice is `grayscale`",
}
#: The least value of each keyword that is an integer.
_LEAST = {
    "frameskip": 1,
    "img_height": 1,
    "img_width": 1,
    "max_num_frames_per_episode": 0,
    "noop_max": 0,
    "stack_num": 1,
    "thread_affinity_offset": -1,
}


def check_keywords(keywords: dict[str, Any]) -> None:
    """Raises if ale-py has no such keyword, or would not notice that a value makes no sense.

    Raises:
        TypeError: There is no such keyword; the message says what was meant, or what exists.
        ValueError: A number is out of range.
    """
    known = keywords_of(AtariVectorEnv) | _OWN
    for name, value in keywords.items():
        if name not in known:
            raise TypeError(f"`{name}` is not a keyword of AleVectorEnv{_hint(name, value, known)}")
        if name in _LEAST:
            as_integer(name, value, _LEAST[name])
    as_fraction("repeat_action_probability", keywords.get("repeat_action_probability", 0))


def _hint(name: str, value: Any, known: frozenset[str]) -> str:
    instead = _INSTEAD.get(name) or place_of(name, value)
    if instead is not None:
        return f": {instead}."
    if name in keywords_of(VectorEnv):
        return ": it belongs to executors of cartwheel, and ale-py has nothing like it."
    meant = near_miss(name, known)
    if meant is not None:
        return f": did you mean `{meant}`?"
    return f" ({shown(value)}), which has {listed(sorted(known))}."
