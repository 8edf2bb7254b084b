"""Runs one of `tests.programs` to its end, in a process of its own.

To import what a program needs takes longer than most programs. So a server may do that once, and
fork a process for each program. With ``--full`` there is none: each program starts by itself.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
#: Every warning is an error, and Python checks more than it usually does.
STRICT = ("-X", "dev", "-W", "error")
#: The ends of sockets at which servers are, by the flags of their interpreters.
_servers: dict[tuple[str, ...], socket.socket] = {}


class Ended(NamedTuple):
    """The end of a program and its output."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def facts(self):
        """Its last report."""
        return json.loads(self.stdout.splitlines()[-1])


@contextlib.contextmanager
def served(flags=()):
    """A server forks the programs that :func:`run` runs with these flags."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with mine:
        with its:
            command = [*_command(flags), "--serve", str(its.fileno())]
            server = subprocess.Popen(command, cwd=ROOT, pass_fds=[its.fileno()])
        _servers[flags] = mine
        try:
            yield
        finally:
            del _servers[flags]
            mine.shutdown(socket.SHUT_RDWR)  # also if a process that was forked still has it
            server.wait(timeout=60)


def run(name, *arguments, flags=(), inside=(), timeout_s=200):
    """Runs the program ``name`` to the end of everything that writes to its outputs.

    ``inside`` is the beginning of the command line, such as a wrapper program.
    """
    words = [name, *map(str, arguments)]
    if flags in _servers and not inside:
        return _run_served(_servers[flags], words, timeout_s)
    command = [*inside, *_command(flags), *words]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as program:
        outputs = [program.stdout.fileno(), program.stderr.fileno()]
        texts, in_time = _read_or_kill(program.pid, outputs, timeout_s)
        if not in_time:
            pytest.fail(f"{words} did not end in {timeout_s} s:\n" + "\n".join(texts))
    return Ended(program.returncode, *texts)


def run_program(name, *arguments, returncode=0, **keywords):
    """Runs a program, which has to end with ``returncode``; returns the facts that it told."""
    ended = run(name, *arguments, **keywords)
    assert ended.returncode == returncode, ended.stderr
    return ended.facts


def _command(flags):
    return [sys.executable, *flags, "-m", "tests.programs"]


def _run_served(server, words, timeout_s):
    request = {"words": words, "environment": dict(os.environ)}
    pipes = [os.pipe(), os.pipe()]
    outputs = [read for read, _ in pipes]
    try:
        socket.send_fds(server, [json.dumps(request).encode()], [write for _, write in pipes])
        for _, write in pipes:
            os.close(write)
        pid = json.loads(server.recv(1 << 10))
        texts, in_time = _read_or_kill(pid, outputs, timeout_s)
        returncode = json.loads(server.recv(1 << 10))
    finally:
        for output in outputs:
            os.close(output)
    if not in_time:
        pytest.fail(f"{words} did not end in {timeout_s} s:\n" + "\n".join(texts))
    return Ended(returncode, *texts)


def _read_or_kill(pid, outputs, timeout_s):
    """As `_read_to_the_end`; kills the group of a process that is late, or that Ctrl-C leaves."""
    in_time = False
    try:
        texts, in_time = _read_to_the_end(outputs, timeout_s)
    finally:
        if not in_time:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    return texts, in_time


def _read_to_the_end(outputs, timeout_s):
    """The text written to each of the pipes, and whether all were closed within the time."""
    deadline = time.monotonic() + timeout_s
    texts = dict.fromkeys(outputs, b"")
    with selectors.DefaultSelector() as open_outputs:
        for output in outputs:
            open_outputs.register(output, selectors.EVENT_READ)
        while open_outputs.get_map():
            ready = open_outputs.select(max(deadline - time.monotonic(), 0))
            for key, _ in ready:
                part = os.read(key.fd, 1 << 16)
                texts[key.fd] += part
                if not part:
                    open_outputs.unregister(key.fd)
            if not ready:
                break
        in_time = not open_outputs.get_map()
    return [text.decode() for text in texts.values()], in_time
