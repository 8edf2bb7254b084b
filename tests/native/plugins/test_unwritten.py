"""``check_vector_env`` finds parts of observations that are never or not always written."""

import pytest

import cartwheel
from cartwheel.testing import CHECKS, EnvCheckError, check_vector_env
from tests.support.oracle import MODE

pytestmark = pytest.mark.usefixtures("plugin")

ONLY_WRITTEN = [name for name in CHECKS if name != "written"]


def check(num_envs=2, **keywords):
    envs = cartwheel.make_vec("test_plugin/Unwritten-v0", num_envs, **keywords)
    try:
        return check_vector_env(envs, skip=ONLY_WRITTEN)
    finally:
        envs.close()


@pytest.mark.parametrize(
    ("leaves", "text"),
    [
        ("leaf", r"observation\['pixels'\] is never written"),
        ("element", r"element 2 of observation\['pixels'\] is never written"),
        ("at step 9", r"element 2 of observation\['pixels'\] is not always written: not in row 0"),
        ("after a reset", r"element 2 of observation\['pixels'\] is not always written"),
    ],
)
@MODE
def test_what_is_not_written_is_found_and_named(leaves, text, mode):
    with pytest.raises(EnvCheckError, match=text) as failure:
        check(leaves=leaves, autoreset_mode=mode)
    assert failure.value.check == "written"
    assert "`fill(0)`" in failure.value.remedy


@pytest.mark.parametrize("num_envs", [1, 7])
def test_an_environment_that_writes_everything_passes(num_envs):
    assert (
        check(num_envs).passed["written"].startswith("observation['pixels'], observation['step']")
    )
