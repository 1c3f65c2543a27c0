"""What goes wrong in a streams application, with Kafka Streams' messages."""

from __future__ import annotations


class StreamsError(Exception):
    """An error of the application or of its host."""


class TopologyError(StreamsError):
    """The topology cannot be built: the message says which operator is wrong, and why."""

    def __init__(self, message: str) -> None:
        super().__init__(f"Invalid topology: {message}")


class PassedOnError(StreamsError):
    """Raised while a record is processed and not for a handler: the task, or more, ends by it."""


class ProcessingError(PassedOnError):
    """A processor raised an error. `processor` names it; the cause is the error itself."""

    def __init__(self, message: str, processor: str) -> None:
        super().__init__(message)
        self.processor = processor


class MissingSourceTopicError(StreamsError):
    """An input topic does not exist."""


class TaskMigratedError(PassedOnError):
    """Another member runs the tasks by now: what is not committed is given up."""


class CommitPutOffError(StreamsError):
    """The group rebalances and takes no commit; the tasks stay, and the next commit has it all."""


class InvalidStateStoreError(StreamsError):
    """A store cannot be queried here or now: it does not exist, or is not open."""


class InvalidStateStorePartitionError(InvalidStateStoreError):
    """A partition of a store was asked for that this instance does not have."""


class StreamsStoppedError(InvalidStateStoreError):
    """Stores cannot be queried after the application has stopped."""


class StreamsNotStartedError(InvalidStateStoreError):
    """Stores cannot be queried before `start()`."""


class UnknownStateStoreError(InvalidStateStoreError):
    """The topology has no store of this name."""
