"""Counts and times of a vector environment in the text format of Prometheus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
#: Name and help of what is known of each row, and is summed over the rows of a group.
_OF_ROWS = {
    "steps": "Finished steps.",
    "resets": "Resets of environments.",
    "replacements": "Environments that failed and were replaced.",
    "step_seconds": "Time spent on steps.",
}
_OF_GROUPS = {
    "working": ("working_seconds", "Time spent on steps, resets and control calls."),
    "restarts": ("restarts", "Worker processes that were replaced."),
}
_COUNTERS = {
    "waited": ("waited_seconds", "Time that calls waited for workers."),
    "batches": ("batches", "Batches that were returned."),
    "observation_bytes": ("observation_bytes", "Bytes of the observations in these batches."),
    "copies": ("copies", "Batches that were copied because too many others are kept."),
}
_GAUGES = {
    "elapsed": ("elapsed_seconds", "Time since the environments were opened."),
    "batches_reserved": ("batches_reserved", "Batches that have memory."),
    "batches_kept": ("batches_kept", "Batches that are being filled or kept by the caller."),
}
_CHOSEN = "Workers that num_workers='auto' chose."


def as_prometheus(stats: Any, labels: Mapping[str, Any]) -> str:
    """Returns the text.

    Args:
        stats: The :class:`~cartwheel.Stats`.
        labels: Labels that are added to every value.

    Raises:
        ValueError: The name of a label is not allowed, or is one of those that are used here.
    """
    for name in labels:
        if _LABEL.fullmatch(name) is None or name.startswith("__") or name in ("rows", "le"):
            raise ValueError(
                f"{name!r} cannot be the name of a label: letters, digits and `_`, not beginning "
                "with a digit or `__`, and neither `rows` nor `le`."
            )
    lines: list[str] = []

    def add(name: str, kind: str, text: str, values: Iterable[tuple[dict[str, Any], Any]]) -> None:
        lines.append(f"# HELP cartwheel_{name} {text}")
        lines.append(f"# TYPE cartwheel_{name} {kind}")
        for own, value in values:
            suffix = own.pop("", "")
            lines.append(
                f"cartwheel_{name}{suffix}{_in_braces({**labels, **own})} {_number(value)}"
            )

    groups = [(int(first), int(last)) for first, last in stats.worker_rows]
    names = [{"rows": f"{first}-{last - 1}"} for first, last in groups]
    for name, text in _OF_ROWS.items():
        rows = getattr(stats, name)
        sums = [rows[first:last].sum() for first, last in groups]
        add(f"{name}_total", "counter", text, zip(map(dict, names), sums, strict=True))
    for name, (shown, text) in _OF_GROUPS.items():
        values = zip(map(dict, names), getattr(stats, name), strict=True)
        add(f"{shown}_total", "counter", text, values)
    for name, (shown, text) in _COUNTERS.items():
        add(f"{shown}_total", "counter", text, [({}, getattr(stats, name))])
    for name, (shown, text) in _GAUGES.items():
        add(shown, "gauge", text, [({}, getattr(stats, name))])
    choice = stats.worker_choice
    if choice is not None:
        add("chosen_workers", "gauge", _CHOSEN, [({}, choice.num_workers)])
    counts = np.cumsum(stats.step_times.sum(axis=0))
    edges = stats.bucket_edges[1:]
    buckets = [
        ({"": "_bucket", "le": _number(edge)}, count)
        for edge, count in zip(edges, counts, strict=True)
    ]
    ends = [({"": "_sum"}, stats.timed_seconds.sum()), ({"": "_count"}, counts[-1])]
    add("step_duration_seconds", "histogram", "Times of steps.", [*buckets, *ends])
    return "\n".join(lines) + "\n"


def _in_braces(labels: Mapping[str, Any]) -> str:
    pairs = (f'{name}="{_escaped(str(value))}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}" if labels else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: Any) -> str:
    if np.isinf(value):
        return "+Inf"
    return repr(int(value)) if isinstance(value, int | np.integer) else repr(float(value))
