"""``python -m cartwheel``: what cartwheel can do from a shell."""

from __future__ import annotations

import argparse

from cartwheel import catalogue
from cartwheel.bench import command as bench


def main() -> int:
    """Runs the subcommand that the shell asked for and returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m cartwheel", description=__doc__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    bench.add_to(commands)
    catalogue.add_to(commands)
    arguments = parser.parse_args()
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130  # what a shell expects of a program that Ctrl-C ended


if __name__ == "__main__":
    raise SystemExit(main())
