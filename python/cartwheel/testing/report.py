"""Reports of checks, and the exceptions of those that fail or cannot run."""

from __future__ import annotations

from dataclasses import dataclass, field

from cartwheel.errors import CartwheelError, as_pickled


@dataclass
class EnvCheckReport:
    """The result of :func:`~cartwheel.testing.check_vector_env`; ``print`` shows it as a table.

    Attributes:
        env: The id of the environment, or the name of its class.
        passed: For each check that passed, by name, what it compared.
        skipped: For each check that did not run, by name, the reason.
        notes: Remarks about behavior that is allowed but may surprise users.
    """

    env: str
    passed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One line for each check, and the notes."""
        lines = [f"{self.env}: {len(self.passed)} checks passed, {len(self.skipped)} skipped"]
        width = max(map(len, (*self.passed, *self.skipped)), default=0)
        lines += [f"  passed   {name:{width}}  {text}" for name, text in self.passed.items()]
        lines += [f"  skipped  {name:{width}}  {text}" for name, text in self.skipped.items()]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


class EnvCheckError(CartwheelError, AssertionError):
    """An environment breaks a promise of Gymnasium's interface or of cartwheel's.

    The message has two lines: what was seen, with environment, check, field, row and step; and how
    to fix the environment. What the environment raised itself is the cause of this exception.

    Attributes:
        check: The name of the check, for the argument ``skip`` of
            :func:`~cartwheel.testing.check_vector_env`.
        env: The id of the environment, or the name of its class.
        remedy: How to fix the environment.
    """

    __module__ = "cartwheel.testing"  # where users import it from, for tracebacks
    __reduce__ = as_pickled

    def __init__(self, check: str, env: str, finding: str, remedy: str) -> None:
        super().__init__(f"{env} fails the check {check!r}: {finding}.\n{remedy}")
        self.check = check
        self.env = env
        self.remedy = remedy


class Unchecked(Exception):
    """A check does not apply to an environment; with the reason as text."""
