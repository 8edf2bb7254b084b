"""``python -m cartwheel``: exit codes, closed pipes, and the width of the terminal."""

import contextlib
import fcntl
import functools
import importlib.metadata
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from cartwheel._cli import new

ROOT = Path(__file__).parents[2]
PAGE = re.DOTALL | re.MULTILINE
CARTWHEEL = [sys.executable, "-m", "cartwheel"]
BENCH = ["bench", "--num-envs", "1", "--seconds", "0.01", "--rounds", "1", "--executors", "inline"]
#: Without a model of MuJoCo, which the list of all environments compiles for each of its own.
PAGE_OF_ONE = ["envs", "Taxi-v4"]
COMMANDS = [
    [],
    ["--version"],
    ["--help"],
    PAGE_OF_ONE,
    ["bench", "--help"],
    BENCH,
]


#: Begins like `python -m cartwheel`, but without EnvPool, which `bench` would import in 2 s.
BEGIN = """
import os, sys
sys.modules["envpool"] = None
from cartwheel import __main__ as command
"""
#: Runs each command in a process of its own, which ends like `python -m cartwheel`, and writes the
#: command and its exit code to stderr. Forks, because an interpreter starts in 0.4 s.
EACH_COMMAND = f"""{BEGIN}
for arguments in {COMMANDS}:
    child = os.fork()
    if child == 0:
        sys.argv[1:] = arguments
        sys.exit(command.main())
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(" ".join(arguments), status, file=sys.stderr)
"""


def start(*arguments, **keywords):
    """Runs ``python -m cartwheel`` as a program."""
    return subprocess.run(
        [*CARTWHEEL, *arguments], check=False, capture_output=True, text=True, **keywords
    )


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_that_of_the_package(run, option):
    assert run(option) == (0, f"cartwheel {importlib.metadata.version('cartwheel')}\n", "")


def test_without_arguments_the_commands_are_listed(run):
    status, text, _ = run()
    assert status == 0
    for name in ("bench", "envs", "new"):
        assert f"\n    {name} " in text


def test_an_argument_too_many_shows_the_usage_of_its_command(run):
    status, text, error = run("bench", "CartPole-v1", "--envs", "3")
    assert (status, text) == (2, "")
    assert error.startswith("usage: python -m cartwheel bench [-h] [--env ID]")
    assert error.endswith("bench: error: unrecognized arguments: CartPole-v1 --envs 3\n")
    assert run("--envs")[2].startswith("usage: python -m cartwheel [-h] [-V] COMMAND")


@pytest.mark.parametrize("env_id", ["CartPole-v1", "cartwheel/CartPole-v1"])
def test_the_namespace_may_be_left_out(run, env_id):
    assert run("envs", env_id)[1].startswith("cartwheel/CartPole-v1\n")


def test_an_unknown_environment_ends_with_status_2_and_near_matches(run):
    status, output, error = run("envs", "cartwheel/CartPol-v1")
    assert (status, output) == (2, "")
    assert error.endswith("; did you mean cartwheel/CartPole-v1 or cartwheel/CartPole-v0?\n")


def statuses(stderr):
    """The exit codes of `EACH_COMMAND`; nothing else may be in the text."""
    found = dict(re.fullmatch(r"(.*) (\d+)", line).groups() for line in stderr.splitlines())
    assert list(found) == list(map(" ".join, COMMANDS))
    return set(map(int, found.values()))


@pytest.mark.parametrize("unbuffered", [pytest.param("", marks=pytest.mark.slow), "1"])
def test_a_reader_that_is_gone_ends_a_command_in_silence(unbuffered):
    """As ``head -0`` does. Without a buffer, ``argparse`` itself ignores that its text is lost."""
    reading, writing = os.pipe()
    os.close(reading)
    finished = subprocess.run(
        [sys.executable, "-c", EACH_COMMAND],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(writing)
    assert statuses(finished.stderr) == ({141, 0} if unbuffered else {141})


def page_of_one(stdout):
    """Runs a command whose output the interpreter would write once more as it exits."""
    return subprocess.run(
        [*CARTWHEEL, *PAGE_OF_ONE],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )


def test_a_program_whose_reader_is_gone_ends_with_the_status_of_a_closed_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    finished = page_of_one(writing)
    os.close(writing)
    assert (finished.returncode, finished.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_reported_in_one_line():
    with Path("/dev/full").open("w") as full:
        finished = page_of_one(full)
    error = "python -m cartwheel: error: [Errno 28] No space left on device\n"
    assert (finished.returncode, finished.stderr) == (1, error)


def test_a_closed_stdout_is_no_error():
    shell = ["sh", "-c", 'exec "$@" >&-', "sh"]
    finished = subprocess.run(
        [*shell, sys.executable, "-c", EACH_COMMAND], stderr=subprocess.PIPE, text=True, check=True
    )
    assert "Traceback" not in finished.stderr
    for arguments in COMMANDS:
        assert f"{' '.join(arguments)} 0\n" in finished.stderr


def test_a_closed_stderr_is_no_error():
    program = [sys.executable, "-c", f"{BEGIN}\nsys.exit(command.main())", *BENCH]
    finished = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *program], check=False)
    assert finished.returncode == 0


def test_the_page_of_the_command_line_shows_what_the_commands_print(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(new, "_CLONE", ROOT)
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    shown = re.findall(
        r"^```sh\npython -m cartwheel ([^\n]*)\n```\n\n```text\n(.*?)^```$", page, PAGE
    )
    assert [command.split()[0] for command, _ in shown] == ["envs", "envs", "new", "bench"]
    for command, output in shown[:3]:
        assert run(*command.split()) == (0, output, "")


@pytest.mark.parametrize("command", ["bench", "envs", "new"])
def test_the_page_of_the_command_line_names_every_option(run, command):
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z-]+", run(command, "--help")[1])) - {"--help"}
    assert options
    assert [option for option in options if f"`{option}" not in page] == []


def test_the_page_of_the_command_line_names_every_environment_variable():
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    sources = [*ROOT.glob("python/cartwheel/**/*.py"), *ROOT.glob("rust/*/src/**/*.rs")]
    texts = [source.read_text(encoding="utf-8") for source in sources]
    names = {name for text in texts for name in re.findall(r"\bCARTWHEEL_[A-Z_]+", text)}
    names.remove("CARTWHEEL_FAILPOINTS")  # of tests, where the engine is built for them
    assert "CARTWHEEL_CPUS" in names
    assert [name for name in sorted(names) if f"| `{name}=" not in page] == []


def test_signs_that_the_encoding_lacks_are_replaced():
    finished = start("envs", "Null-v0", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (finished.returncode, finished.stderr) == (0, "")
    facts = [line.split() for line in finished.stdout.splitlines()]
    assert ["max_episode_steps", "?"] in facts
    assert ["reward_threshold", "?"] in facts


def test_another_broken_pipe_is_not_hidden():
    program = """
import sys
from cartwheel import __main__ as command
def run():
    raise BrokenPipeError("that of a worker")
command.run = run
sys.exit(command.main())
"""
    finished = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert finished.returncode == 1
    assert "BrokenPipeError: that of a worker" in finished.stderr


@functools.cache
def on_a_terminal(*arguments, columns):
    """The lines that a command prints on a terminal with so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = subprocess.Popen([*CARTWHEEL, *arguments], stdout=theirs, env=environment)
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # of the last read, when the other end is closed
        while part := os.read(ours, 4096):
            text += part
    os.close(ours)
    assert command.wait() == 0
    return text.decode().splitlines()


@pytest.mark.parametrize(("columns", "arguments"), [(80, ["envs"]), (120, ["envs", "CartPole-v1"])])
def test_lines_are_as_wide_as_the_terminal(arguments, columns):
    assert max(map(len, on_a_terminal(*arguments, columns=columns))) <= columns


def test_lines_are_not_wrapped_without_a_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    on_pipe = run("envs")[1].splitlines()
    assert len(on_pipe) < len(on_a_terminal("envs", columns=80))
    assert max(map(len, on_pipe)) > 100
