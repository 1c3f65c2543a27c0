"""Who may do what with which subject, by the lines of a file.

    # principal   operations    subjects
    User:ada      READ,WRITE    orders-*
    Role:admins   ALL           *
    User:*        READ          public-*

`*` in a subject stands for any characters. The name `*` alone also means the registry itself: its
global settings, and keys that are not of one subject. What no line allows is denied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["EVERYTHING", "OPERATIONS", "InvalidPermissions", "Permissions"]

OPERATIONS: Final = ("READ", "WRITE", "DELETE", "CONFIG")
#: The subject that stands for the registry itself.
EVERYTHING: Final = "*"


class InvalidPermissions(ValueError):
    """A line that is not one."""


@dataclass(frozen=True, slots=True)
class _Line:
    principal: str
    operations: frozenset[str]
    subject: str
    pattern: re.Pattern[str]


class Permissions:
    """See the module."""

    def __init__(self, lines: Iterable[_Line]) -> None:
        self._lines = tuple(lines)

    @classmethod
    def parse(cls, text: str) -> Permissions:
        """Raises InvalidPermissions with the number of the line."""
        lines = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) != 3:
                raise InvalidPermissions(
                    f"line {number}: use PRINCIPAL OPERATIONS SUBJECTS, such as "
                    "User:ada READ,WRITE orders-*"
                )
            principal, operations, subject = words
            if not principal.startswith(("User:", "Role:")):
                raise InvalidPermissions(
                    f"line {number}: {principal} must be User:NAME or Role:NAME"
                )
            named = frozenset(each.upper() for each in operations.split(",") if each)
            if "ALL" in named:
                named = frozenset(OPERATIONS)
            unknown = sorted(named - set(OPERATIONS))
            if unknown or not named:
                raise InvalidPermissions(
                    f"line {number}: {', '.join(unknown) or 'no operation'} is none of "
                    f"{', '.join(OPERATIONS)}, ALL"
                )
            pattern = re.compile(".*".join(map(re.escape, subject.split("*"))), re.DOTALL)
            lines.append(_Line(principal, named, subject, pattern))
        return cls(lines)

    def allows(self, user: str, roles: Iterable[str], operation: str, subject: str) -> bool:
        names = {f"User:{user}", "User:*", *(f"Role:{each}" for each in roles)}
        return any(
            each.principal in names
            and operation in each.operations
            and (
                each.subject == EVERYTHING
                if subject == EVERYTHING
                else each.pattern.fullmatch(subject) is not None
            )
            for each in self._lines
        )
