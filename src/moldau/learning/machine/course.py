"""All exercises in their order, and their pages."""

from __future__ import annotations

from moldau.learning.machine.exercise import DEFAULT_PLACES, Exercise, placed
from moldau.learning.machine.first_half import FIRST_HALF
from moldau.learning.machine.second_half import SECOND_HALF

__all__ = ["COURSE", "NAMES", "find", "index_page", "number_of", "page", "page_name"]

COURSE: tuple[Exercise, ...] = (*FIRST_HALF, *SECOND_HALF)
NAMES: tuple[str, ...] = tuple(each.name for each in COURSE)


def find(word: str) -> Exercise | None:
    """By its number or its name."""
    if word.isdigit() and 1 <= int(word) <= len(COURSE):
        return COURSE[int(word) - 1]
    return next((each for each in COURSE if each.name == word), None)


def number_of(exercise: Exercise) -> int:
    return NAMES.index(exercise.name) + 1


def page(exercise: Exercise) -> str:
    """The exercise as a page of docs/learn/."""
    number = number_of(exercise)
    services = ", ".join(exercise.services)
    text = f"""\
# {number}. {exercise.title}

About {exercise.minutes} minutes. `moldau learn start {number}` starts what it needs ({services}),
and `moldau learn check` checks what you did.

{exercise.text}

## Exercise

{exercise.task}

<details markdown="1"><summary>Hint</summary>

{exercise.hint}

</details>

<details markdown="1"><summary>Solution</summary>

```sh
{exercise.solution.rstrip()}
```

</details>
"""
    return placed(text, DEFAULT_PLACES)


def index_page() -> str:
    rows = "\n".join(
        f"| {number} | [{each.title}]({page_name(each)}) | {each.minutes} |"
        for number, each in enumerate(COURSE, 1)
    )
    return f"""\
# A guided course

Exercises on your own broker, which `moldau learn` sets and checks. `moldau learn` without more is a
tour in the terminal; [docs/cli.md](../cli.md) has its commands. The exercises are also the pages
below, generated from the course itself; the tests run every solution.

| | exercise | minutes |
|--:|---|--:|
{rows}
"""


def page_name(exercise: Exercise) -> str:
    return f"{number_of(exercise):02}-{exercise.name}.md"
