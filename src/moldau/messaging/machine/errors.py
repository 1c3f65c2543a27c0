"""The errors of messaging, named after those of JMS."""

from __future__ import annotations

__all__ = [
    "IllegalStateError",
    "InvalidClientIdError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "MessageFormatError",
    "MessageNotWriteableError",
    "MessagingError",
    "TransactionRolledBackError",
]


class MessagingError(Exception):
    """The root; what a client of the cluster raises is its `__cause__`."""


class IllegalStateError(MessagingError):
    """A call that is not possible now: of a closed session, of commit without a transaction."""


class InvalidClientIdError(MessagingError):
    pass


class InvalidDestinationError(MessagingError):
    pass


class InvalidSelectorError(MessagingError):
    pass


class MessageFormatError(MessagingError):
    """A value that messages cannot have, or a body that is not what its type says."""


class MessageNotWriteableError(MessagingError):
    """A received message is read-only until its body or properties are cleared."""


class TransactionRolledBackError(MessagingError):
    """The commit failed, and nothing was sent or acknowledged."""
