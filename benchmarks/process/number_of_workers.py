"""Six kinds of environments: the number of workers that is chosen, against fixed numbers."""

from __future__ import annotations

import functools
import multiprocessing
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from benchmarks.harness.claim import Claim, check
from benchmarks.harness.workloads import Idle, Timed, compute, rounds_of, wait
from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.contenders import cartwheel_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel._internal.arguments import EnvFn

NUM_ENVS = 16


class Works(Idle):
    """An environment whose steps call a function."""

    def __init__(self, make: Callable[[], Callable[[], Any]]) -> None:
        """Makes the function, by ``make``."""
        super().__init__()
        self.work = make()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Works."""
        self.work()
        return super().step(action)


def mixed(rounds_a_ms: int) -> Callable[[], None]:
    """Computes for 1 ms and waits for 4."""

    def work() -> None:
        compute(rounds_a_ms)
        wait(4)

    return work


def client(address: Any) -> Callable[[], bytes]:
    """Asks a server that answers after 5 ms."""
    connection = socket.create_connection(address)

    def work() -> bytes:
        connection.sendall(b"?")
        return connection.recv(1)

    return work


def answer(connection: socket.socket) -> None:
    """Answers the requests of a client until it ends."""
    while connection.recv(1):
        wait(5)
        connection.sendall(b"!")


def serve(listener: socket.socket) -> None:
    """Answers each client in a thread of its own."""
    while True:
        threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()


def parent(rounds: int) -> Callable[[], bytes]:
    """Lets a child process compute for 5 ms."""
    command = [sys.executable, "-m", "benchmarks.process.number_of_workers", "--child", str(rounds)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert child.stdin is not None
    assert child.stdout is not None
    ask, answers = child.stdin.write, child.stdout.readline

    def work() -> bytes:
        ask(b"\n")
        return answers()

    return work


def be_child(rounds: int) -> None:
    """Computes once for each line of the standard input, until its end."""
    for _ in sys.stdin:
        print(compute(rounds), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        be_child(int(sys.argv[2]))
        sys.exit()
    a_ms = rounds_of(1e-3)
    listener = socket.create_server(("127.0.0.1", 0), backlog=NUM_ENVS)
    multiprocessing.get_context("fork").Process(target=serve, args=(listener,), daemon=True).start()
    fixed = sorted({*(factor * usable_cpus() for factor in (1, 2, 4)), NUM_ENVS})
    auto = cartwheel_with("process", "auto")
    claims = {NUM_ENVS: [Claim(auto, cartwheel_with("process", each), 0.9) for each in fixed]}
    works: dict[str, EnvFn] = {
        "CartPole-v1": functools.partial(gym.make, "CartPole-v1"),
        "computes for 5 ms": functools.partial(Timed, 5, rounds_a_ms=a_ms),
        "waits for 5 ms": functools.partial(Timed, 5),
        "asks a server": functools.partial(
            Works, functools.partial(client, listener.getsockname())
        ),
        "a child process computes": functools.partial(Works, functools.partial(parent, 5 * a_ms)),
        "computes for 1 ms and waits for 4": functools.partial(
            Works, functools.partial(mixed, a_ms)
        ),
    }
    for work, env_fn in works.items():
        check(work, env_fn, claims)
