"""Values with a special meaning in requests, records and files, declared once for all packages."""

from __future__ import annotations

from typing import Final, TypeAlias

#: What can be read and sent without a copy.
Buffer: TypeAlias = bytes | bytearray | memoryview

#: Produce: wait until all in-sync replicas have the records.
ACKS_ALL: Final = -1

#: Of a leader, a producer or a group: the epoch is not known, or not to be checked.
NO_EPOCH: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

#: There is no such offset.
NO_OFFSET: Final = -1
#: There is one, but it is not known (yet).
UNKNOWN_OFFSET: Final = -1
#: The end of a leader epoch that the log does not have.
UNDEFINED_OFFSET: Final = -1
