"""Writes docs/learn/ from the course of `moldau learn`; with --check it only says what is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from moldau.learning.machine.course import COURSE, index_page, page, page_name

FOLDER = Path(__file__).parents[1] / "docs" / "learn"


def pages() -> dict[str, str]:
    return {"index.md": index_page(), **{page_name(each): page(each) for each in COURSE}}


def main(words: list[str]) -> int:
    wanted = pages()
    there = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
    if "--check" in words:
        for name in stale:
            print(f"docs/learn/{name} is stale: run tools/generate_learn.py")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name])
        else:
            (FOLDER / name).unlink()
    print(f"{len(stale)} of {len(wanted)} pages written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
