"""One page of a list: searched, sorted, cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

__all__ = ["SIZE_MAX", "Paging", "page_of"]

T = TypeVar("T")
SIZE_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Paging:
    search: str = ""
    page: int = 0
    size: int = 50
    sort: str = ""

    @classmethod
    def of(
        cls, *, search: str | None, page: int | None, size: int | None, sort: str | None
    ) -> Paging:
        return cls(
            (search or "").strip().lower(),
            max(0, page or 0),
            min(SIZE_MAX, max(1, size or 50)),
            sort or "",
        )


def page_of(
    things: Iterable[T],
    paging: Paging,
    *,
    name: Callable[[T], str],
    columns: Mapping[str, Callable[[T], Any]],
) -> tuple[list[T], dict[str, int]]:
    """The things of the page, and the counts for the answer. A search has words that must all be
    in the name. Unknown columns sort by name; what is None comes last."""
    words = paging.search.split()
    found = [each for each in things if all(word in name(each).lower() for word in words)]
    column = columns.get(paging.sort.lstrip("-"))
    found.sort(key=name)
    if column is not None:
        known = [each for each in found if column(each) is not None]
        unknown = [each for each in found if column(each) is None]
        known.sort(key=column, reverse=paging.sort.startswith("-"))
        found = known + unknown
    elif paging.sort.startswith("-"):
        found.reverse()
    start = paging.page * paging.size
    counts = {"total": len(found), "page": paging.page, "size": paging.size}
    return found[start : start + paging.size], counts
