"""A thread of cartwheel that collects garbage does not wait for its own end."""

import pytest

from tests.support.programs import run_program

pytestmark = pytest.mark.usefixtures("program_server")


@pytest.mark.parametrize("kind", ["thread", "collector", "recorder", "rows", "start"])
def test_another_thread_ends_what_a_thread_of_cartwheel_collects(kind):
    """Otherwise it would wait for itself, for seconds or forever, or close no file."""
    assert run_program("collect_in_a_thread_of", kind) == {
        "enders": ["cartwheel-end"],
        "errors": [],
        "files": [".h5", ".json"] if kind == "recorder" else [],
    }
