"""What polls of a share consumer raise."""

from __future__ import annotations

import pytest

from moldau.client.share.machine.pending_errors import ERRORS_MAX, PendingErrors


def test_each_error_is_raised_once_and_in_order() -> None:
    errors = PendingErrors()
    assert not errors
    errors.raise_first()
    for error in (ValueError("a"), ValueError("b"), KeyError("b"), ValueError("a")):
        assert errors.add(error)
    raised = []
    while errors:
        with pytest.raises((ValueError, KeyError)) as caught:
            errors.raise_first()
        raised.append(repr(caught.value))
    assert raised == ["ValueError('a')", "ValueError('b')", "KeyError('b')"]


def test_an_application_that_does_not_poll_collects_no_more_than_the_maximum() -> None:
    errors = PendingErrors()
    kept = [errors.add(ValueError(number)) for number in range(1000)]
    assert kept == [True] * ERRORS_MAX + [False] * (1000 - ERRORS_MAX)
