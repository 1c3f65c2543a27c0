"""The garbage collector of a program that does nothing but run an application.

Records and what is made of them are not in cycles: they go when nobody refers to them, and looking
for cycles among them costs a tenth of the time. What was imported stays, so it is not looked at.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["collecting_rarely"]

#: As Python starts with; whoever has chosen others keeps them.
_DEFAULT: Final = (700, 10, 10)
#: A batch of records with all that it becomes is smaller.
_RARELY: Final = (50_000, 20, 50)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """See the module."""
    if gc.get_threshold() != _DEFAULT or not gc.isenabled():
        yield
        return
    gc.freeze()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*_DEFAULT)
        gc.unfreeze()
