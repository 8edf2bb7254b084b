"""Commands that run in the process of the tests."""

import sys

import pytest

from cartwheel import __main__ as cartwheel_command


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command in this process; returns its exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["cartwheel", *map(str, arguments)])
        try:
            status = cartwheel_command.main()
        except SystemExit as exit:  # of argparse
            status = exit.code
        return status, *capsys.readouterr()

    return run
