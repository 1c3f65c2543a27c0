"""How a fetcher numbers its requests in an incremental fetch session (KIP-227). Pure.

Invariants: after any doubt (an error, no answer) the next request has epoch 0, which starts
a new session and closes the old one if it is still there.
"""

from __future__ import annotations

from moldau.wire.errors import ErrorCode

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "NO_SESSION", "SessionNumbers"]

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1


class SessionNumbers:
    """The session's id and the epoch of the next request."""

    __slots__ = ("_epoch", "_id")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH

    @property
    def is_full_next(self) -> bool:
        """Whether the next request has to name every partition."""
        return self._epoch == INITIAL_EPOCH

    def answered(self, error_code: int, session_id: int) -> bool:
        """Take over the answer's head; whether there is anything in the answer to read."""
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
            return False
        if error_code != ErrorCode.NONE:
            self.failed()
            return False
        if self.is_full_next:
            self._id = session_id
            self._epoch = INITIAL_EPOCH if session_id == NO_SESSION else 1
        elif session_id == NO_SESSION:
            # The other side has closed it, this was its last answer.
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        return True

    def failed(self) -> None:
        """It is not known how far the other side got with the request."""
        self._epoch = INITIAL_EPOCH
