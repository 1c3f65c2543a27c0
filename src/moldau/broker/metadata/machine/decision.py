"""What a controller decides: records to commit, and the response once they are committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moldau.wire.errors import ApiError, ErrorCode

R = TypeVar("R")

# The records of an atomic decision are one batch and so take effect together; Kafka rejects larger
# ones. Others are cut into batches of at most this many.
RECORDS_PER_BATCH_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """Append `records`, if `atomic` as one batch; respond only after all are committed.

    `kraft_version`, if not None, is the quorum's new feature level, which goes into the log first.
    """

    records: tuple[Any, ...]
    response: R
    atomic: bool = True
    kraft_version: int | None = None

    def __post_init__(self) -> None:
        if self.atomic and len(self.records) > RECORDS_PER_BATCH_MAX:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                "Unable to perform excessively large batch operation.",
            )
