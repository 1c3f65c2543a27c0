"""Lines of a permissions file, and what they allow."""

from __future__ import annotations

import pytest

from moldau.services.registry.machine.permissions import InvalidPermissions, Permissions

FILE = """
# who          what          where
User:ada       READ,write    orders-*
Role:admins    ALL           *
User:*         READ          public-*   # everybody
User:bob       CONFIG        a*b*c
"""


@pytest.mark.parametrize(
    ("user", "roles", "operation", "subject", "allowed"),
    [
        ("ada", (), "READ", "orders-value", True),
        ("ada", (), "WRITE", "orders-value", True),
        ("ada", (), "DELETE", "orders-value", False),
        ("ada", (), "READ", "payments-value", False),
        ("ada", (), "READ", "public-x", True),
        ("ada", (), "READ", "*", False),
        ("eve", ("admins",), "DELETE", "orders-value", True),
        ("eve", ("admins",), "CONFIG", "*", True),
        ("eve", (), "READ", "orders-value", False),
        ("bob", (), "CONFIG", "axxbyyc", True),
        ("bob", (), "CONFIG", "axxbyycz", False),
    ],
)
def test_what_is_allowed(
    user: str, roles: tuple[str, ...], operation: str, subject: str, allowed: bool
) -> None:
    assert Permissions.parse(FILE).allows(user, roles, operation, subject) is allowed


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("User:ada READ", "line 1: use PRINCIPAL OPERATIONS SUBJECTS"),
        ("ada READ x", "line 1: ada must be User:NAME or Role:NAME"),
        ("User:ada LOOK x", "line 1: LOOK is none of READ"),
        ("\nUser:ada , x", "line 2: no operation"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(line: str, reason: str) -> None:
    with pytest.raises(InvalidPermissions, match=reason):
        Permissions.parse(line)
