"""`moldau learn` where nothing runs yet: every exercise is open, and its solution solves it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from moldau.learning.machine.course import COURSE
from support.cli import Ended, moldau_cli
from support.repeats import mostly_long

Learn = Callable[..., Ended]


@pytest.fixture(scope="module")
def learn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learn]:
    """The command, with folders of its own; services that it starts find free ports."""
    folder = tmp_path_factory.mktemp("reader")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.delenv("MOLDAU_BOOTSTRAP_SERVERS", raising=False)
        yield lambda *words: moldau_cli("learn", *words)
        assert moldau_cli("learn", "stop").status == 0


# What `make test` runs of the course; `make examples` runs all.
SHORT = {"topics", "console", "compaction"}
LONG = "a dozen tools and a service for each exercise, which tests of their own cover"


def exercises() -> Iterator[object]:
    for each in COURSE:
        marks = [] if each.name in SHORT else [pytest.mark.long(each.long or LONG)]
        yield pytest.param(each.name, marks=marks, id=each.name)


@pytest.mark.parametrize("name", mostly_long(exercises(), "`make examples` solves them all"))
def test_the_solution_solves_the_exercise(learn: Learn, name: str) -> None:
    begun = learn("start", name)
    assert begun.status == 0, begun.err
    assert "## Exercise" in begun.out
    open_still = learn("check")
    assert open_still.status == 1, open_still.out
    assert open_still.out.startswith("not yet: "), open_still.err
    learn("solve")
    checked = learn("check")
    assert checked.status == 0, checked.out
    listed = {each["name"]: each["state"] for each in learn("list", "--json").json}
    assert listed[name] == "solved for you"


@pytest.mark.long("a whole tour; `make examples` runs it")
def test_the_tour_runs_what_is_typed_and_checks_it(learn: Learn) -> None:
    """As the reader sees it, in a process of its own."""
    assert learn("start", "topics").status == 0
    assert learn("reset", "topics").status == 0
    commands = next(each.solution for each in COURSE if each.name == "topics")
    said = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "learn"],
        input=f"start topics\ncheck\nhint\n{commands}\ncheck\nlist\nquit\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    for part in (
        "not yet: there is no topic learn-orders",
        "`--config KEY=VALUE`",
        "Created topic learn-orders.",
        "PartitionCount: 6",
        "Topics and partitions: done",
        "1 Topics and partitions (done)",
    ):
        assert part in said.stdout, (part, said.stdout, said.stderr)


def test_a_mistake_is_one_line(learn: Learn) -> None:
    wrong = learn("start", "13")
    assert wrong.status == 1
    assert "there is no exercise 13: a number from 1 to 12, or one of topics" in wrong.err
    assert len(wrong.err.splitlines()) == 1


def test_a_secured_profile_is_refused_with_what_to_do(learn: Learn) -> None:
    address = ("--bootstrap-server", "127.0.0.1:1", "--set", "security.protocol=SASL_SSL")
    assert moldau_cli("profile", "create", "secured", *address).status == 0
    try:
        refused = learn("list")
        assert refused.status == 1
        assert "security.protocol=SASL_SSL" in refused.err
        assert "MOLDAU_BOOTSTRAP_SERVERS" in refused.err
    finally:
        assert moldau_cli("profile", "delete", "secured").status == 0
