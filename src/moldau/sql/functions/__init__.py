"""Functions: what is declared (`declarations.py`), which one a call means (`resolution.py`), and
ksqlDB's own (`builtin/`, `aggregates/`). `registry.built_in()` has them all.

Functions of your own are declared with `udf`, `udtf` and `udaf` in files that a server loads:

    from moldau.sql.functions import udf

    @udf
    def initials(name: str) -> str:
        return "".join(word[0] for word in name.split())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.sql.functions.decorators import udaf, udf, udtf

__all__ = ["udaf", "udf", "udtf"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("moldau.sql.functions.decorators"), name)
