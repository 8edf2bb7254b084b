"""Results of the scaling study as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartwheel.bench.table import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.scaling.study import Scaling

FOOTER = """\
steps/s: environment steps, median of the rounds; those of one line were measured in turns.
memory: of the program and its workers; what processes share is divided among them. A row of
cartwheel process: in one worker that has many rows.
start-up: from the constructor to the end of the first reset. workers: speed-up over one worker, and
how much of its number that is."""


def scaling_table(scaling: Scaling) -> str:
    """All parts below each other, then what was left out, and what the numbers mean."""
    blocks = [aligned(lines) for lines in _parts(scaling) if len(lines) > 1]
    left_out = [f"left out: {each}" for each in scaling.left_out]
    return "\n\n".join([*blocks, "\n".join([*left_out, FOOTER])])


def _parts(scaling: Scaling) -> Iterator[list[tuple[str, ...]]]:
    names = list(dict.fromkeys(name for race in scaling.rows for name in race.rates))
    yield [
        ("steps/s of rows", *names),
        *(
            (
                f"{race.num_envs:,}",
                *(f"{race.rate(name):,.0f}" if name in race.rates else "–" for name in names),
            )
            for race in scaling.rows
        ),
    ]
    yield [
        ("memory a row", "kB"),
        *((name, f"{count / 1e3:,.2f}") for name, count in scaling.row_bytes.items()),
    ]
    yield [
        ("start-up", "method", "envs", "s", "MB"),
        *(
            (
                start.contender,
                start.start_method,
                str(start.num_envs),
                f"{start.footprint.start_s:.2f}",
                _megabytes(start.footprint.total_bytes),
            )
            for start in scaling.starts
        ),
    ]
    for executor, race in scaling.workers.items():
        one = next(iter(race.rates))
        yield [
            (f"workers, {executor}", "envs", "steps/s", "speed-up", "of workers"),
            *(
                (
                    name,
                    f"{race.num_envs:,}",
                    f"{race.rate(name):,.0f}",
                    f"{race.ratio(name, one):.2f}",
                    f"{race.ratio(name, one) / int(name):.0%}",
                )
                for name in race.rates
            ),
        ]


def _megabytes(count: int | None) -> str:
    return "–" if count is None else f"{count / 1e6:,.0f}"
