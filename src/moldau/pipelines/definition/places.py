"""Where in the user's own files a part of a pipeline was written."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import PurePath

_PACKAGE = __name__.rsplit(".", 2)[0]  # moldau.pipelines


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, perhaps with a column of it; `file` is its path as far as it is known."""

    file: str
    line: int
    column: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Short, as compilers print it: the file's name is enough to find the line."""
        return f"{PurePath(self.file).name}:{self.line}"

    @property
    def exact(self) -> str:
        """With the column, if it is known: for mistakes that were found in the text itself."""
        return f"{self}:{self.column}" if self.column is not None else str(self)

    def to_json(self) -> str:
        return f"{self.file}:{self.line}"

    @classmethod
    def from_json(cls, text: str) -> Place:
        file, _, line = text.rpartition(":")
        if not file or not line.isdecimal():
            raise ValueError(f"place {text!r} is not of the form 'file:line'")
        return cls(file, int(line))

    def below(self, lines: int) -> Place:
        return Place(self.file, self.line + lines)


def place_of_caller() -> Place | None:
    """The nearest line outside this package: where the user's script made the object."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        inside = module == _PACKAGE or module.startswith(_PACKAGE + ".")
        # Constructors that dataclasses generate have no file of their own.
        if not inside and not frame.f_code.co_filename.startswith("<"):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
