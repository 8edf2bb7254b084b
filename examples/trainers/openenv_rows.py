"""OpenEnv's server over awaited rows: each session gets a process, and none stops the loop.

The environment is one of OpenEnv's, without a change. OpenEnv steps the environments of its
sessions in threads of the server's process. Here they are rows of ``cartwheel.AwaitableEnvs``: a
crash or a hang ends one session's step, and not the server. ``Session`` is to be copied.

    pip install cartwheel openenv-core
    python examples/trainers/openenv_rows.py
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

import uvicorn
from openenv.core import GenericEnvClient
from openenv.core.env_server import Action, Environment, Observation, State
from openenv.core.env_server.http_server import create_fastapi_app

import cartwheel


class Guess(Action):
    """A number; a negative one crashes the environment."""

    number: int


class Answer(Observation):
    """The answer to a number."""

    text: str


class Guessing(Environment):
    """A number is to be guessed: an environment of OpenEnv as any other."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        """Begins without a number."""
        super().__init__()
        self.secret, self.count = 0, 0

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Answer:
        """Chooses a number."""
        del episode_id, kwargs
        self.secret, self.count = (seed or 0) % 10, 0
        return Answer(text="guess a number below 10", done=False, reward=0.0)

    def step(self, action: Guess, timeout_s: float | None = None, **kwargs: Any) -> Answer:
        """Compares a number."""
        del timeout_s, kwargs
        self.count += 1
        if action.number < 0:
            os._exit(1)  # a simulator that crashes
        right = action.number == self.secret
        text = "right" if right else "more" if action.number < self.secret else "less"
        return Answer(text=text, done=right, reward=float(right))

    @property
    def state(self) -> State:
        """The number of guesses."""
        return State(step_count=self.count)


class Session(Environment):
    """A session of OpenEnv's server, whose environment is a row."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, envs: cartwheel.AwaitableEnvs, loop: asyncio.AbstractEventLoop) -> None:
        """Has no row yet: the first reset waits for one."""
        super().__init__()
        self._envs, self._loop = envs, loop
        self._lending: Any = None
        self._row: Any = None
        self._state = State()

    async def reset_async(self, seed: int | None = None, **kwargs: Any) -> Any:
        """Resets the row, and waits for a free one before the first reset."""
        if self._row is None:
            self._lending = self._envs.acquire()
            self._row = await self._lending.__aenter__()
        given = kwargs.pop("options", None)
        observation, _ = await self._row.reset(seed=seed, options=given)
        self._state = await self._row.call("state")
        return observation

    async def step_async(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Steps the row."""
        observation = await self._row.call("step", action, timeout_s=timeout_s, **kwargs)
        self._state = await self._row.call("state")
        return observation

    @property
    def state(self) -> Any:
        """The state of the environment after the last reset or step."""
        return self._state

    def close(self) -> None:
        """Returns the row; the server calls this in a thread when the session ends."""
        if self._lending is not None:
            lending, self._lending = self._lending, None
            asyncio.run_coroutine_threadsafe(lending.__aexit__(), self._loop)

    def reset(self, *_: Any, **__: Any) -> Any:
        """OpenEnv's server calls :meth:`reset_async`."""
        raise NotImplementedError

    def step(self, *_: Any, **__: Any) -> Any:
        """OpenEnv's server calls :meth:`step_async`."""
        raise NotImplementedError


class Served:
    """A server on the loopback, as long as its ``async with`` block."""

    def __init__(self, envs: cartwheel.AwaitableEnvs) -> None:
        """Serves rows of ``envs``."""
        self._envs = envs

    async def __aenter__(self) -> str:
        """Starts it; returns its address."""
        loop = asyncio.get_running_loop()
        app = create_fastapi_app(
            lambda: Session(self._envs, loop), Guess, Answer, max_concurrent_envs=64
        )
        listening = socket.create_server(("127.0.0.1", 0))
        # OpenEnv answers clients that have closed their connection, which uvicorn reports.
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        self._task = asyncio.ensure_future(self._server.serve(sockets=[listening]))
        while not self._server.started:
            await asyncio.sleep(0.01)
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        """Ends it."""
        self._server.should_exit = True
        await self._task


async def guess(url: str, secret: int) -> tuple[int, int]:
    """Plays an episode by OpenEnv's client: the secret that it found, and how many guesses."""
    async with GenericEnvClient(base_url=url, message_timeout_s=600) as client:
        await client.reset(seed=secret)
        low, high = 0, 9
        while True:
            number = (low + high) // 2
            result = await client.step({"number": number})
            if result.done:
                return number, (await client.state())["step_count"]
            if result.observation["text"] == "more":
                low = number + 1
            else:
                high = number - 1


async def main(sessions: int = 8, rows: int = 4) -> list[tuple[int, int]]:
    """Plays more sessions than there are rows."""
    async with cartwheel.AwaitableEnvs([Guessing] * rows) as envs, Served(envs) as url:
        return await asyncio.gather(*(guess(url, secret) for secret in range(sessions)))


if __name__ == "__main__":
    for found, guesses in asyncio.run(main()):
        print(f"found {found} with {guesses} guesses")
