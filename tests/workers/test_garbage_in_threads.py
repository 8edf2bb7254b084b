"""A thread of cartwheel that collects garbage does not wait for its own end."""

import sysconfig

import pytest

from tests.support.programs import run_program

pytestmark = pytest.mark.usefixtures("program_server")


@pytest.mark.parametrize("kind", ["thread", "collector", "recorder", "rows", "start"])
def test_another_thread_ends_what_a_thread_of_cartwheel_collects(kind):
    """Otherwise it would wait for itself, for seconds or forever, or close no file."""
    facts = run_program("collect_in_a_thread_of", kind)
    # Without a GIL, the main thread ends what it has made and another thread lets go.
    late = {"MainThread"} if sysconfig.get_config_var("Py_GIL_DISABLED") else set()
    assert {*facts.pop("enders")} - late == {"cartwheel-end"}
    files = [".h5", ".json"] if kind == "recorder" else []
    assert facts == {"errors": [], "files": files}
