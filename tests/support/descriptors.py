"""A process that has so many files open that the next one has a number that `select` refuses."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

#: `select.select` takes none from here on.
LARGE = 1_024


@contextmanager
def many_descriptors() -> Iterator[None]:
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, min(4 * LARGE, most)), most))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(LARGE)]
    try:
        yield
    finally:
        for each in opened:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
