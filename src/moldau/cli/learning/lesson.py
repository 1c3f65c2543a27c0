"""One reader and the current exercise: what the commands of `moldau learn` do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from moldau.cli.support.failures import Failure
from moldau.cli.support.tables import on_terminal
from moldau.client import Admin, KafkaError
from moldau.learning.folder import CourseFolder
from moldau.learning.machine.course import COURSE, NAMES, find, number_of
from moldau.learning.machine.exercise import Exercise, placed
from moldau.learning.machine.progress import Progress
from moldau.learning.observing import Observer
from moldau.learning.services import CourseServices, environment_of

__all__ = ["Lesson"]

_UNREACHABLE_HINT = "`moldau learn start` starts what the exercise needs"


class Lesson:
    def __init__(self, environment: Mapping[str, str], own: str | None) -> None:
        self._environment = environment
        self._folder = CourseFolder(environment)
        self.services = CourseServices(self._folder, own=own, say=_say)
        self.progress: Progress = self._folder.progress()

    @property
    def current(self) -> Exercise:
        exercise = None if self.progress.current is None else find(self.progress.current)
        if exercise is None:
            raise Failure("no exercise is started: moldau learn start 1")
        return exercise

    def start(self, word: str | None) -> None:
        """The named exercise, or the next that is open."""
        chosen = word or self.progress.following(NAMES)
        if chosen is None:
            print(f"All {len(COURSE)} exercises are done. `moldau learn reset` begins again.")
            return
        exercise = _named(chosen)
        self.services.ensure(exercise.services)
        self._keep(self.progress.started(exercise.name))
        self.show()

    def show(self) -> None:
        exercise = self.current
        number = number_of(exercise)
        show(
            self._placed(
                f"# {number}. {exercise.title}\n\n{exercise.text}\n\n"
                f"## Exercise\n\n{exercise.task}\n\n"
                f"Files of exercises are in `{self._folder.work}`. "
                "`moldau learn check` checks, `hint` and `solve` help."
            )
        )

    def check(self) -> bool:
        """Whether all demands are met; prints each that is not."""
        exercise = self.current
        observer = Observer(self.services.places(), self._folder.work)
        try:
            verdicts = [observer.verdict(each) for each in exercise.checks]
        except (KafkaError, OSError) as error:
            raise Failure(f"cannot look: {error}. {_UNREACHABLE_HINT}") from None
        missing = [verdict for verdict in verdicts if verdict is not None]
        for verdict in missing:
            print(f"not yet: {verdict}")
        self._keep(self.progress.checked(exercise.name, passed=not missing))
        if not missing:
            following = self.progress.following(NAMES)
            then = "that was the last one" if following is None else f"next: {following}"
            print(f"{exercise.title}: done ({then})")
        return not missing

    def hint(self) -> None:
        exercise = self.current
        self._keep(self.progress.hinted(exercise.name))
        show(self._placed(exercise.hint))

    def solve(self) -> int:
        exercise = self.current
        self._keep(self.progress.solved(exercise.name))
        solution = self._placed(exercise.solution)
        if on_terminal():
            show(f"```sh\n{solution}\n```")
        return self.run(f"set -u\n{solution}\n")

    def run(self, commands: str) -> int:
        """Lines of a shell, in the folder of exercises, with this course's services."""
        return subprocess.run(
            ["bash", "-c", commands],
            cwd=self._folder.work,
            env=environment_of(self.services.places(), self._environment),
            check=False,
        ).returncode

    def reset(self, word: str | None) -> None:
        if word is None:
            self.services.stop()
            self._folder.remove()
            self.progress = Progress()
            print("The course begins again: moldau learn start 1")
            return
        exercise = _named(word)
        if exercise.topics:
            with Admin(bootstrap_servers=self.services.places()["bootstrap"]) as admin:
                existing = set(admin.list_topics())
                admin.delete_topics([name for name in exercise.topics if name in existing])
        self._keep(self.progress.forgotten(exercise.name))
        print(f"{exercise.title}: open again")

    def _placed(self, text: str) -> str:
        return placed(text, self.services.places())

    def _keep(self, progress: Progress) -> None:
        self.progress = progress
        self._folder.keep_progress(progress)


def show(markdown: str) -> None:
    """Markdown: formatted on a terminal, as it is in a pipe."""
    if not on_terminal():
        print(markdown)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(markdown))


def _named(word: str) -> Exercise:
    exercise = find(word)
    if exercise is None:
        raise Failure(
            f"there is no exercise {word}: a number from 1 to {len(COURSE)}, or one of "
            f"{', '.join(NAMES)}"
        )
    return exercise


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
