"""The transition tables that READMEs show, read back so that tests compare them with the code."""

from __future__ import annotations

from pathlib import Path

import moldau

SOURCE = Path(moldau.__file__).parent


def rows(package: str, *, first_column: str) -> list[list[str]]:
    """The rows of the Markdown table whose first column has this title, in a package's README."""
    lines = iter((SOURCE / package / "README.md").read_text().splitlines())
    for line in lines:
        if line.startswith("|") and _cells(line)[0] == first_column:
            next(lines)
            break
    else:
        raise LookupError(f"{package}/README.md has no table that begins with {first_column!r}")
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append(_cells(line))
    return found


def moves(package: str, *, first_column: str) -> dict[str, set[str]]:
    """A table of two columns, state and possible next states, as data."""
    return {
        state: {each.strip() for each in following.split(",") if each.strip() not in ("", "-")}
        for state, following, *_ in rows(package, first_column=first_column)
    }


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
