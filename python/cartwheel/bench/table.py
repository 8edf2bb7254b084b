"""The outcome of races as a table for people and as records for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.bench.contenders import ASYNC, CEILING, NATIVE, SYNC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.bench.race import Measurement

HEADER = ("contender", "envs", "steps/s", "spread", "× async", "× sync", "of ceiling")
FOOTER = """\
steps/s: environment steps, median of the rounds. spread: half of best minus worst round.
× async, × sync: against Gymnasium's AsyncVectorEnv and SyncVectorEnv, median of the rounds' ratios.
ceiling: bare loops over as many environments, one on each core, all at once, waiting for nobody."""


def records(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """A dict for each contender of each race, with plain values under stable names."""
    return [
        {
            "contender": name,
            "num_envs": measurement.num_envs,
            "steps_per_second": measurement.rate(name),
            "spread": measurement.spread(name),
            "ratio_to_async": measurement.ratio(name, ASYNC.name),
            "ratio_to_sync": measurement.ratio(name, SYNC.name),
            "share_of_ceiling": measurement.ratio(name, CEILING.name),
            "rounds": measurement.rates[name],
        }
        for measurement in measurements
        for name in measurement.rates
    ]


def table(measurements: Sequence[Measurement]) -> str:
    """All races below each other, columns aligned, and what the columns mean."""
    lines: list[tuple[str, ...]] = [HEADER]
    for measurement in measurements:
        if measurement is not measurements[0]:
            lines.append(("",) * len(HEADER))
        lines += [_cells(record) for record in records([measurement])]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    lines.insert(1, tuple("─" * width for width in widths))
    text = "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    )
    return f"{text}\n\n{FOOTER}"


def _cells(record: dict[str, Any]) -> tuple[str, ...]:
    return (
        record["contender"],
        str(record["num_envs"]),
        f"{record['steps_per_second']:,.0f}",
        f"±{record['spread']:.0%}",
        f"{record['ratio_to_async']:.2f}",
        f"{record['ratio_to_sync']:.2f}",
        "–" if record["contender"] in NATIVE else f"{record['share_of_ceiling']:.0%}",
    )
