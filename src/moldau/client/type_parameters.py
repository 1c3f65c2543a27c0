"""The types of a record's key and value, as `Consumer[str, bytes]` and its records have them.

Type checkers take Any for what is not given, so that plain `Consumer` needs no parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

__all__ = ["K", "V"]
