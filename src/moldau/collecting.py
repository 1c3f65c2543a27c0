"""The garbage collector of a program that does nothing but run an application or a service.

Records and what is made of them are not in cycles: they go when nobody refers to them. What was
imported stays, and a full look for garbage walks through all of it: tens of milliseconds in which
no record is processed.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["collecting_rarely", "keeping_all"]

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


@contextmanager
def keeping_all() -> Iterator[None]:
    """For imports: nothing of what they make is garbage, and nothing of it is looked at.

    Switching the collector off would only put it off: the first look after that would be at all
    of it. So it joins the oldest generation first.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        gc.enable()
