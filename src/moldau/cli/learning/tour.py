"""The tour: an exercise, then lines of the reader, which are commands of the tour or of a shell."""

from __future__ import annotations

import sys

from moldau.cli.learning.lesson import Lesson, show
from moldau.cli.support.failures import Failure
from moldau.learning.machine.course import COURSE, NAMES

__all__ = ["tour"]

_WELCOME = f"""\
# A guided course

{len(COURSE)} exercises on your own broker. What you type is run by a shell, in a folder of the
course, except for these words: **check** what you did, **hint**, **solve** (run the solution),
**next**, **list**, **start N**, **text** (show the exercise again), **quit**."""


def tour(lesson: Lesson) -> int:
    show(_WELCOME)
    if lesson.progress.current is None or lesson.progress.current in lesson.progress.done:
        lesson.start(None)
    else:
        lesson.start(lesson.progress.current)
    while True:
        try:
            line = input(f"learn {lesson.progress.current}> ").strip()
        except EOFError:
            line = "quit"
        except KeyboardInterrupt:
            print()
            continue
        if line == "quit":
            print("Services go on running: moldau learn stop ends them.", file=sys.stderr)
            return 0
        try:
            _follow(lesson, line)
        except (Failure, KeyboardInterrupt) as error:
            print(f"moldau learn: {error}" if str(error) else "", file=sys.stderr)


def _follow(lesson: Lesson, line: str) -> None:
    word, _, rest = line.partition(" ")
    match word:
        case "":
            return
        case "check":
            if lesson.check() and lesson.progress.following(NAMES) is not None:
                print("`next` goes on.")
        case "hint":
            lesson.hint()
        case "solve":
            lesson.solve()
        case "next":
            lesson.start(None)
        case "start" if rest:
            lesson.start(rest.strip())
        case "text":
            lesson.show()
        case "list":
            for number, each in enumerate(COURSE, 1):
                print(f"{number:3} {each.title} ({lesson.progress.state_of(each.name)})")
        case _:
            lesson.run(line)
