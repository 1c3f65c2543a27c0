"""Checks that stay on: a broken invariant is a bug, and a bug stops the machine that has it."""

from __future__ import annotations


class InvariantError(RuntimeError):
    """The program's own reasoning was wrong; state can no longer be trusted."""


def invariant(condition: object, message: str) -> None:
    """Raise unless `condition` holds. Unlike `assert` it survives `python -O`."""
    if not condition:
        raise InvariantError(message)
