"""The checksum of record batches, without what its package imports beside it.

`import crc32c` also reads the metadata of its installation, and to that end loads a parser of
e-mails: a tenth of the time in which a client starts. The compiled module in it needs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

__all__ = ["crc32c"]


def _load() -> Callable[..., int]:
    package = PathFinder.find_spec("crc32c")
    found = None
    if package is not None and package.submodule_search_locations is not None:
        places = list(package.submodule_search_locations)
        found = PathFinder.find_spec("crc32c._crc32c", places)
    if found is None or found.loader is None:
        # A version with another layout.
        from crc32c import crc32c as plain

        whole: Callable[..., int] = plain
        return whole
    compiled: Any = module_from_spec(found)
    found.loader.exec_module(compiled)
    loaded: Callable[..., int] = compiled.crc32c
    return loaded


crc32c = _load()
