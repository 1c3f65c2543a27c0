"""Every script produces the trace that is written in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.scripts.files import ScriptError, Stage, parse, render, run
from support.scripts.group import GroupStage
from support.scripts.quorum import QuorumStage
from support.scripts.replication import ReplicationStage

HERE = Path(__file__).parent
STAGES: dict[str, Callable[[], Stage]] = {
    "quorum": QuorumStage,
    "replication": ReplicationStage,
    "group": GroupStage,
}
SCRIPTS = sorted(path for name in STAGES for path in (HERE / name).glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_script(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    played = render(run(STAGES[path.parent.name](), parse(text)))
    if request.config.getoption("--rewrite", default=False):
        path.write_text(played)
    else:
        assert played == text, (
            f"{path.name} produces another trace; if that is right: pytest tests/scripts --rewrite"
        )


@pytest.mark.parametrize("name", STAGES)
def test_there_are_scripts_of_each_kind(name: str) -> None:
    assert sum(path.parent.name == name for path in SCRIPTS) >= 10


def test_a_step_without_a_divider_is_refused_with_its_line() -> None:
    with pytest.raises(ScriptError, match=r"line 2: expected ---- after the command 'state'"):
        parse("state\nsomething else\n")


def test_an_unknown_command_is_refused_with_its_line_and_the_known_ones() -> None:
    with pytest.raises(ScriptError, match=r"line 1: unknown command 'explode'; one of .*deliver"):
        run(QuorumStage(), parse("explode\n----\n"))


def test_comments_survive_a_rewrite() -> None:
    text = "# Why.\n\n# What.\nquorum voters=1\n----\nold\n"
    played = render(run(QuorumStage(), parse(text)))
    assert played.startswith("# Why.\n\n# What.\nquorum voters=1\n----\n  0 ms  1 ")
