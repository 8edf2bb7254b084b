"""Results of races as a table for readers and as records for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.bench.contenders import ASYNC, ENVPOOL, NATIVE_CEILING, SYNC, ceiling_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.bench.race import Measurement

COLUMNS = {
    "contender": "contender",
    "num_envs": "envs",
    "steps_per_second": "steps/s",
    "spread": "spread",
    "ratio_to_async": "× async",
    "ratio_to_sync": "× sync",
    "ratio_to_envpool": "× envpool",
    "share_of_ceiling": "of ceiling",
}
FOOTER = """\
steps/s: environment steps, median of the rounds. spread: half of best minus worst round.
× async, × sync: against Gymnasium's AsyncVectorEnv and SyncVectorEnv, median of the rounds' ratios.
ceiling: bare loops over as many environments, one on each core, all at once, never synchronized."""
NATIVE_FOOTER = """\
native ceiling: the same over native environments in Rust, with no interface at all."""


def records(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """A dict for each contender of each race, with plain values under stable names.

    A ratio to a contender that was not in the race is ``None``.
    """
    return [
        {
            "contender": name,
            "num_envs": measurement.num_envs,
            "steps_per_second": measurement.rate(name),
            "spread": measurement.spread(name),
            "ratio_to_async": _ratio(measurement, name, ASYNC.name),
            "ratio_to_sync": _ratio(measurement, name, SYNC.name),
            "ratio_to_envpool": _ratio(measurement, name, ENVPOOL),
            "share_of_ceiling": _ratio(measurement, name, ceiling_of(name)),
            "rounds": measurement.rates[name],
            "note": measurement.notes.get(name, ""),
        }
        for measurement in measurements
        for name in measurement.rates
    ]


def _ratio(measurement: Measurement, name: str, against: str | None) -> float | None:
    """Returns the ratio to a contender; ``None`` if it was not in the race."""
    return measurement.ratio(name, against) if against in measurement.rates else None


def table(measurements: Sequence[Measurement]) -> str:
    """Returns all races with aligned columns, and a footer that explains the columns."""
    names = {name for measurement in measurements for name in measurement.rates}
    columns = [key for key in COLUMNS if key != "ratio_to_envpool" or ENVPOOL in names]
    lines = [tuple(COLUMNS[key] for key in columns)]
    for measurement in measurements:
        if measurement is not measurements[0]:
            lines.append(("",) * len(columns))
        lines += [
            tuple(_cell(key, record[key]) for key in columns) for record in records([measurement])
        ]
    footer = [FOOTER]
    if NATIVE_CEILING in names:
        footer.append(NATIVE_FOOTER)
    footer += [
        f"{name}, {measurement.num_envs} envs: {note}"
        for measurement in measurements
        for name, note in measurement.notes.items()
    ]
    return "\n".join([aligned(lines), "", *footer])


def aligned(lines: Sequence[tuple[str, ...]]) -> str:
    """Returns lines of cells as aligned text, with a rule below the first line."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in (lines[0], tuple("─" * width for width in widths), *lines[1:])
    )


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "–"
    if key == "steps_per_second":
        return f"{value:,.0f}"
    if key == "spread":
        return f"±{value:.0%}"
    if key == "share_of_ceiling":
        return f"{value:.0%}"
    return f"{value:.2f}" if key.startswith("ratio") else str(value)
