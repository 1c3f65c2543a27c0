"""Kafka's enumerations, which a later Kafka may extend: what is not known here is UNKNOWN."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Self

__all__ = ["NamedEnum", "NumberedEnum"]


class NumberedEnum(IntEnum):
    """By Kafka's number on the wire."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls["UNKNOWN"]


class NamedEnum(Enum):
    """By Kafka's word, in whatever case."""

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def parse(cls, text: str) -> Self:
        wanted = text.upper()
        return next((each for each in cls if each.value.upper() == wanted), cls["UNKNOWN"])
