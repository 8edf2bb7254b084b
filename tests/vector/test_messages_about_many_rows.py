"""A message names 16 rows at most and the number of the others; attributes have all rows."""

import json
import re
from functools import partial

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ResetNeeded

import cartwheel
from cartwheel._internal.logging import log_waiting
from tests.support.cases import POLE, Case
from tests.support.comparison import text_of
from tests.support.environments import transcripts
from tests.support.faulty import FaultyEnv, fault

ROWS = list(range(40))
ZEROS = [0] * len(ROWS)


def assert_names_the_first(text, number=40):
    """The text has one list of rows, the first 16, and says how many others there are."""
    ((listed, more),) = re.findall(r"ows (\[[\d, ]+\])( and \d+ more)?", text)
    rows = json.loads(listed)
    assert len(rows) == 16
    assert rows == list(range(rows[0], rows[0] + 16))
    assert more == f" and {number - 16} more"


def test_rows_that_are_over_or_in_flight(build_any):
    envs = build_any(
        [Case("CartPole-v1", {"max_episode_steps": 1})] * 40, autoreset_mode="disabled"
    )
    envs.reset(seed=1)
    envs.step(ZEROS)
    with pytest.raises(cartwheel.EpisodeOverError) as over:
        envs.step(ZEROS)
    assert over.value.env_index == ROWS
    assert_names_the_first(str(over.value))
    envs.reset(seed=1)
    envs.send(ZEROS)
    with pytest.raises(AlreadyPendingCallError) as sent:
        envs.send(ZEROS)
    assert_names_the_first(str(sent.value))
    while envs.in_flight:
        envs.recv()


def test_rows_that_raise(build):
    envs = build(transcripts(*[3] * 40))
    with pytest.raises(AttributeError) as missing:
        envs.get_attr("nothing")
    assert_names_the_first(text_of(missing.value), 39)  # the lowest one is named apart


def test_rows_that_were_never_reset_or_refuse_a_value(build_native):
    envs = build_native([POLE] * 40)
    with pytest.raises(ResetNeeded) as never:
        envs.step(ZEROS)
    assert_names_the_first(text_of(never.value))
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="must be a number") as refused:
        envs.set_attr("gravity", ["x"] * 40)
    assert_names_the_first(str(refused.value), 39)


def test_rows_that_failed_and_were_not_reset(build):
    envs = build([partial(FaultyEnv, row) for row in ROWS])
    envs.reset()
    actions = np.full(40, fault("value error"))
    with pytest.raises(ValueError, match="boom") as failed:
        envs.step(actions)
    assert_names_the_first(text_of(failed.value), 39)
    with pytest.raises(ResetNeeded) as needed:
        envs.step(actions)
    assert_names_the_first(str(needed.value))


def test_rows_that_have_not_answered(build_workers, gates):
    envs = build_workers(gates.env_fns(40))
    envs.reset()
    envs.step_async([1] * 40)
    with pytest.raises(cartwheel.WorkerTimeoutError) as late:
        envs.step_wait(timeout=0.01)
    assert late.value.env_index == ROWS
    assert_names_the_first(str(late.value))
    with pytest.raises(AlreadyPendingCallError) as pending:
        envs.step(ZEROS)
    assert_names_the_first(text_of(pending.value))
    with gates.opened_soon(1):
        envs.step_wait()


def test_rows_of_a_reminder(caplog):
    log_waiting("step", 60.0, [(0, 40)], [(0, 40)])
    assert_names_the_first(caplog.messages[0])
    assert caplog.records[0].cartwheel["env_index"] == ROWS
