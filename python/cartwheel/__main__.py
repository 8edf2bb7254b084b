"""``python -m cartwheel``: the command line."""

from __future__ import annotations

import argparse
import errno
import io
import os
import select
import sys

import cartwheel
from cartwheel._cli import envs, new
from cartwheel.bench import command as bench

DESCRIPTION = "cartwheel steps many reinforcement-learning environments at once."


def main() -> int:
    """Runs the subcommand and returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # signs that the terminal's encoding lacks
    try:
        try:
            return run()
        finally:
            if sys.stdout is not None:  # it is `None` if the shell closed it
                sys.stdout.flush()
    except KeyboardInterrupt:
        return 130  # what a shell expects of a program that Ctrl-C ended
    except BrokenPipeError:
        if not _reader_is_gone():
            raise  # it was another pipe, such as that of a worker process
        _drop_output()
        return 141  # what a shell expects of a program that a closed pipe ended
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"python -m cartwheel: error: {error}", file=sys.stderr)
        _drop_output()
        return 1


def run() -> int:
    """Parses the command line and runs its subcommand."""
    parser = argparse.ArgumentParser(prog="python -m cartwheel", description=DESCRIPTION)
    parser.add_argument(
        "-V", "--version", action="version", version=f"cartwheel {cartwheel.__version__}"
    )
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    bench.add_to(commands)
    envs.add_to(commands)
    new.add_to(commands)
    arguments, unknown = parser.parse_known_args()
    command = getattr(arguments, "parser", parser)
    if unknown:  # argparse would show the usage of all commands, not of this one
        command.error(f"unrecognized arguments: {' '.join(unknown)}")
    if command is parser:
        parser.print_help()
        return 0
    return int(arguments.run(command, arguments))


def _drop_output() -> None:
    """Drops what stdout has not written, because the interpreter flushes it when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reader_is_gone() -> bool:
    """Whether stdout is a pipe or socket whose reader is gone."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


if __name__ == "__main__":
    raise SystemExit(main())
