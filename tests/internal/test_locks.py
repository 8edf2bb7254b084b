"""A lock is free again, whatever comes while a thread has it."""

import itertools
from functools import partial

from cartwheel.workers.launch import require_descriptors
from tests.support.interrupts import ANY_MOMENT, interrupted_at
from tests.support.threads import in_thread

pytestmark = ANY_MOMENT


def test_no_ctrl_c_leaves_a_lock_locked():
    """Python handles signals between the lines of its own code, also of a ``__exit__``."""
    for line in itertools.count(1):
        came = interrupted_at(line, partial(require_descriptors, 1), ["_internal/process"])
        in_thread(require_descriptors, 1)()
        if not came:
            break
