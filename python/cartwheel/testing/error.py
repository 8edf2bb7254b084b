"""The exception of a check that fails, and the reason why a check cannot run."""

from __future__ import annotations

from cartwheel.errors import as_pickled


class EnvCheckError(AssertionError):
    """An environment breaks a promise of Gymnasium's interface or of cartwheel's.

    The message has two lines: what was seen, with environment, check, field, row and step; and how
    to mend the environment. What the environment raised itself is the cause of this exception.

    Attributes:
        check: The name of the check, for the argument ``skip`` of
            :func:`~cartwheel.testing.check_vector_env`.
        env: The id of the environment, or the name of its class.
        remedy: How to mend the environment.
    """

    __reduce__ = as_pickled

    def __init__(self, check: str, env: str, finding: str, remedy: str) -> None:
        """Makes the message."""
        super().__init__(f"{env} fails the check {check!r}: {finding}.\n{remedy}")
        self.check = check
        self.env = env
        self.remedy = remedy


class Unchecked(Exception):
    """A check does not apply to an environment; the text says why."""
