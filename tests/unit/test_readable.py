"""Waiting for a descriptor, also in a process that has many."""

from __future__ import annotations

import os

from moldau.readable import wait_readable
from support.descriptors import LARGE, many_descriptors


def test_a_descriptor_may_have_a_large_number() -> None:
    with many_descriptors():
        reading, writing = os.pipe()
        assert reading >= LARGE
        assert not wait_readable(reading, 0)
        assert not wait_readable(reading, -1)
        os.write(writing, b"x")
        assert wait_readable(reading, 60)
        os.close(reading)
        os.close(writing)


def test_the_end_is_something_to_read() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    assert wait_readable(reading, 60)
    os.close(reading)
