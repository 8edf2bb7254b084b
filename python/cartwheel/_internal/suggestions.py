"""Names in errors: suggestions for those that do not exist, and public ones for methods.

:func:`wrapper_advice` names the vector wrappers of Gymnasium that replace wrappers of single
environments. Native environments of a vector environment are not objects of Python, so they cannot
be wrapped one by one. A vector wrapper wraps all of them together.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from gymnasium.envs.registration import WrapperSpec
from gymnasium.wrappers import vector
from typing_extensions import ParamSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)
#: Arguments of ``reset`` that are easily passed to a constructor.
_RESET_ARGUMENTS = ("seed", "options")
#: Names in other libraries, without underscores, with their names here, of which the first counts.
_SYNONYMS = {
    "frameskip": ("frame_skip", "action_repeat"),
    "layout": ("format",),
    "k": ("stack_size",),
    "numstack": ("stack_size",),
    "window": ("buffer_length",),
    "dequesize": ("buffer_length",),
    "episodes": ("num_episodes", "episodes_per_env"),
    "nepisodes": ("num_episodes", "episodes_per_env"),
    "numepisodes": ("episodes_per_env",),
    "nevalepisodes": ("episodes_per_env",),
    "nenvs": ("num_envs",),
    "numenv": ("num_envs",),
    "workers": ("num_workers",),
    "numprocesses": ("num_workers",),
    "numthreads": ("num_workers",),
    "njobs": ("num_workers",),
    "backend": ("executor",),
    "vectorizationmode": ("executor",),
    "startmethod": ("context",),
    "rolloutlength": ("num_steps",),
    "lam": ("gae_lambda", "lambda_"),
    "lmbda": ("gae_lambda", "lambda_"),
    "videofolder": ("output_dir",),
    "nameprefix": ("trajectory_name",),
    "episodetrigger": ("episode_filter",),
    "steptrigger": ("save_video_trigger",),
    "videolength": ("max_steps_per_video",),
    "fps": ("video_fps",),
}
#: The maximum length of a value in an error.
_MAX_REPR = 60


def vector_env_instead(envs: Any) -> str:
    """Returns what to pass instead of something that is not a vector environment.

    A class whose objects are easily taken for one says it in ``_vector_env_instead``.
    """
    return getattr(envs, "_vector_env_instead", "see cartwheel.make_vec")


def keywords_of(called: Any) -> frozenset[str]:
    """Returns the names of the keywords of a constructor or function, without ``self``, ``**``."""
    parameters = inspect.signature(called).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(part.name for part in parameters if part.kind in kinds) - {"self"}


def suggest(name: str, names: Iterable[str], cutoff: float = 0.75) -> str | None:
    """Returns the name among ``names`` that is most similar to ``name``, or ``None``.

    Case, underscores and hyphens do not count. ``cutoff`` is the minimum share of equal letters.
    Some names in other libraries, such as ``frameskip``, are known, too.
    """
    plain = {_plain(known): known for known in names}
    found = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=cutoff)
    others = _SYNONYMS.get(_plain(name), ())
    return next((plain[_plain(one)] for one in (*others, *found) if _plain(one) in plain), None)


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def missing_name(module: str, name: str, instead: str | None = None) -> Exception:
    """Returns what the ``__getattr__`` of a package raises for a name that it does not have.

    ``from module import name`` asks for the attribute and, without it, raises an error of its own.
    So it gets an ``ImportError`` if there is advice.

    Args:
        module: The package.
        name: The name.
        instead: What to use instead; by default the same name of ``cartwheel``, if it exists.
    """
    if instead is None and name in getattr(sys.modules["cartwheel"], "__all__", ()):
        instead = f"it is `cartwheel.{name}`"
    text = f"module {module!r} has no attribute {name!r}"
    if instead is not None:
        text = f"{text}: {instead}"
        if sys._getframe(2).f_code.co_name == "_handle_fromlist":  # which calls `__getattr__`
            return ImportError(text, name=module)
    return AttributeError(text, name=name, obj=sys.modules[module])


def listed(names: Iterable[str]) -> str:
    """Returns names for an error, in backticks."""
    return ", ".join(f"`{name}`" for name in names) or "none"


def shown(value: Any) -> str:
    """Returns ``repr(value)`` in one line, abbreviated."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_REPR else f"{text[:_MAX_REPR]}…"


def reset_advice(name: str, value: Any) -> str | None:
    """Returns advice for an argument that belongs to ``reset``, or ``None`` for other names."""
    return f"pass it to `reset({name}={shown(value)})`" if name in _RESET_ARGUMENTS else None


def names_methods(public: Class) -> Class:
    """Makes Python's errors about calls name a public class, not its private base with the method.

    So a wrong argument is an error of ``PoolVectorEnv.reset()``, and not of ``Resets.reset()``.
    """
    for base in public.__mro__[1:]:
        if not base.__module__.startswith("cartwheel.") or _is_named(base):
            continue
        for name, method in vars(base).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                # `__module__` stays: doctest looks for the examples of a method there.
                inspect.unwrap(method).__qualname__ = f"{public.__qualname__}.{name}"
    _NAMED.append(public)
    return public


#: Public classes whose methods have their names.
_NAMED: list[type] = []


def _is_named(base: type) -> bool:
    return any(issubclass(public, base) for public in _NAMED)


def checks_keywords(called: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a constructor's or function's error for an unknown keyword name those that exist.

    A class says in ``_refused_keywords`` why it lacks some that other classes have.
    """
    known, name = keywords_of(called), getattr(called, "__name__", "")

    @functools.wraps(called)
    def checked(*args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        if name == "__init__":
            refused = getattr(args[0], "_refused_keywords", None)
            check_keywords(type(args[0]).__name__, keywords, known, refused)
        else:
            check_keywords(name, keywords, known)
        return called(*args, **keywords)

    return checked


def check_keywords(
    owner: str,
    keywords: dict[str, Any],
    known: frozenset[str],
    refused: dict[str, str] | None = None,
) -> None:
    """Checks that a constructor or a function has these keywords.

    Args:
        owner: The constructor or function.
        keywords: What the caller gave.
        known: Those that exist.
        refused: Why some others do not.

    Raises:
        TypeError: A keyword is unknown; the error names those that exist, or gives the reason.
    """
    for name in keywords:
        if refused is not None and name in refused:
            raise TypeError(f"`{name}` is not a keyword of {owner}: {refused[name]}.")
        if name not in known:
            raise TypeError(_keyword_error(owner, name, keywords[name], known))


def _keyword_error(owner: str, name: str, value: Any, known: frozenset[str]) -> str:
    start = f"`{name}` is not a keyword of {owner}"
    place, meant = reset_advice(name, value), suggest(name, known)
    if suggest(name, ["num_envs"]) and "env_fns" in known:
        place = f"repeat the function, `[function] * {shown(value)}`"
    if place is not None:
        return f"{start}: {place}."
    if meant is not None:
        return f"{start}: did you mean `{meant}`?"
    if "env_fns" not in known:
        return f"{start}, which has {listed(sorted(known))}."
    return (
        f"{start}. Keywords of an environment belong in its function: "
        f"`lambda: gymnasium.make(id, {name}={shown(value)})`. {owner} has {listed(sorted(known))}."
    )


def wrapper_advice(
    wrappers: Iterable[Any], one_by_one: str = 'vectorization_mode="sync" or "async"'
) -> str:
    """Returns advice for an error: native environments cannot be wrapped one by one.

    Args:
        wrappers: Classes, ``functools.partial`` of them, functions, or Gymnasium's specs of
            wrappers. For Gymnasium's own wrappers, the result names the vector wrapper of the same
            name, if there is one.
        one_by_one: The keyword with which environments are stepped one by one.
    """
    calls, others = [], []
    for wrapper in wrappers:
        module, name, arguments = _named(wrapper)
        if module.startswith("gymnasium.wrappers.") and name in vector.__all__:
            calls.append(f"gymnasium.wrappers.vector.{name}({arguments})")
        else:
            others.append(name)
    ways = []
    if calls:
        ways.append(f"Wrap all of them together: {', then '.join(calls)}.")
    if others:
        ways.append(f"For {', '.join(others)}, use {one_by_one}, which steps single environments.")
    return " ".join(ways)


def _named(wrapper: Any) -> tuple[str, str, str]:
    """Returns the module and the name of a wrapper, and the arguments of its vector wrapper."""
    if isinstance(wrapper, WrapperSpec):
        return wrapper.entry_point, wrapper.name, "envs, …" if wrapper.kwargs else "envs"
    if isinstance(wrapper, functools.partial):
        module, name, _ = _named(wrapper.func)
        return module, name, "envs, …"
    return getattr(wrapper, "__module__", ""), getattr(wrapper, "__name__", repr(wrapper)), "envs"
