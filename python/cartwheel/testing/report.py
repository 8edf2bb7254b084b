"""What was checked, and what was not."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class EnvCheckReport:
    """The result of :func:`~cartwheel.testing.check_vector_env`; ``print`` shows it as a table.

    Attributes:
        env: The id of the environment, or the name of its class.
        passed: For each check that passed, by name, what it compared.
        skipped: For each check that did not run, by name, the reason.
        notes: Remarks about things that are allowed and surprise users.
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
