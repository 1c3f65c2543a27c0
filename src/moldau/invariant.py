"""Checks that stay on: a broken invariant is a bug, and a bug stops the machine that has it."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class InvariantError(RuntimeError):
    """The program's own reasoning was wrong; state can no longer be trusted."""


def invariant(condition: object, message: str) -> None:
    """Raise unless `condition` holds. Unlike `assert` it survives `python -O`."""
    if not condition:
        raise InvariantError(message)


def present(value: T | None, message: str) -> T:
    """`value`, which is there."""
    if value is None:
        raise InvariantError(message)
    return value


def of_type(value: object, kind: type[T]) -> T:
    """`value`, which is of this type."""
    if not isinstance(value, kind):
        raise InvariantError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value
