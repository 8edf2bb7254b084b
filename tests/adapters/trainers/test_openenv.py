"""OpenEnv's server over awaited rows. `make test-trainers` runs this file."""

import asyncio
import importlib
from pathlib import Path

import pytest

import cartwheel

pytestmark = [
    pytest.mark.trainers,
    pytest.mark.timeout(900),  # processes import OpenEnv
    pytest.mark.filterwarnings("default"),  # of the packages
]
EXAMPLES = Path(__file__).parents[3] / "examples/trainers"


@pytest.fixture
def example(monkeypatch):
    """Imports an example, which its worker processes can import as well."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def test_sessions_of_openenv_wait_for_rows_and_find_every_secret(example):
    rows = example("openenv_rows")
    ends = asyncio.run(rows.main(sessions=8, rows=3))
    assert [found for found, _ in ends] == list(range(8))

    alone = []  # the same environments, without server and rows
    for secret in range(8):
        env, low, high = rows.Guessing(), 0, 9
        env.reset(seed=secret)
        while not (said := env.step(rows.Guess(number=(low + high) // 2))).done:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if said.text == "more" else (low, middle - 1)
        alone.append(env.state.step_count)
    assert [count for _, count in ends] == alone


def test_a_crash_ends_a_step_of_one_session_of_openenv_and_the_server_lives(example):
    rows = example("openenv_rows")

    async def main():
        async with (
            cartwheel.AwaitableEnvs([rows.Guessing] * 2) as envs,
            rows.Served(envs) as url,
            rows.GenericEnvClient(base_url=url, message_timeout_s=600) as crashing,
            rows.GenericEnvClient(base_url=url, message_timeout_s=600) as other,
        ):
            await asyncio.gather(crashing.reset(seed=1), other.reset(seed=2))
            with pytest.raises(RuntimeError, match="died during call"):
                await crashing.step({"number": -1})
            assert (await other.step({"number": 2})).done
            assert (await crashing.reset(seed=1)).observation["text"].startswith("guess")
            assert (await crashing.step({"number": 1})).reward == 1.0

    asyncio.run(main())
