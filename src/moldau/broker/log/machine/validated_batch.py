"""What the validation of a batch returns."""

from __future__ import annotations

from typing import NamedTuple


class ValidatedBatch(NamedTuple):
    """A batch as it goes into the log, with what the log needs to know of it."""

    buffer: memoryview
    base_offset: int
    last_offset: int
    max_timestamp: int
    # The first record with the largest timestamp; -1 when no record has one.
    offset_of_max_timestamp: int
    base_timestamp: int
    # The append time where the topic asks for it, else -1.
    log_append_time_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool
    record_count: int
    size: int
