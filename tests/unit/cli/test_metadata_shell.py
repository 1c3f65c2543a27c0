"""The metadata shell's paths, globs, columns and completion, on a small tree."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.cli.files.machine.metadata_tree import (
    Directory,
    Provenance,
    find_nodes,
    root_of,
    split_path,
)
from moldau.cli.files.metadata_shell import Shell
from moldau.wire.messages import ConfigRecord, FeatureLevelRecord, TopicRecord


@pytest.fixture
def root() -> Directory:
    image = MetadataImage()
    image.replay_all(
        [
            FeatureLevelRecord(name="metadata.version", feature_level=30),
            *(
                TopicRecord(name=name, topic_id=UUID(int=number))
                for number, name in enumerate(("apples", "avocados", "pears", "a*b"), 100)
            ),
            ConfigRecord(resource_type=4, resource_name="", name="x", value="1"),
            ConfigRecord(resource_type=2, resource_name="pears", name="retention.ms", value="5"),
        ],
        MetadataDelta(),
    )
    return root_of(image, Provenance(7, 2, 1_700_000_000_120))


@pytest.fixture
def shell(root: Directory) -> tuple[Shell, list[str]]:
    written: list[str] = []
    return Shell(root, written.append, interactive=True), written


@pytest.mark.parametrize(
    ("path", "working", "parts"),
    [
        ("/a/b", "/", ["a", "b"]),
        ("b/", "/a", ["a", "b"]),
        ("../c", "/a/b", ["a", "c"]),
        ("../../..", "/a", []),
        ("//a/./b//", "/x", ["a", "b"]),
        (".", "/", []),
    ],
)
def test_paths(path: str, working: str, parts: list[str]) -> None:
    assert split_path(path, working) == parts


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*", ["a*b", "apples", "avocados", "pears"]),
        ("a*", ["a*b", "apples", "avocados"]),
        ("a*s", ["apples", "avocados"]),
        ("?ears", ["pears"]),
        ("{apples,pears}", ["apples", "pears"]),
        ("{app,p}*s", ["apples", "pears"]),
        (r"a\*b", []),  # a plain name, with its backslash
        ("pears", ["pears"]),
        ("{pears", []),  # not closed: a plain name
        ("nothing*", []),
    ],
)
def test_globs(root: Directory, glob: str, names: list[str]) -> None:
    found = find_nodes(root, glob, "/image/topics/byName")
    assert [each.name for each in found] == names


def test_files(root: Directory) -> None:
    def cat(path: str) -> object:
        (found,) = find_nodes(root, path)
        return found.node

    assert cat("/image/provenance") == "offset 7, epoch 2, time 2023-11-14T22:13:20.12Z[UTC]"
    assert cat("/image/features/metadataVersion") == "Optional[4.3-IV0]"
    assert cat("/image/configs/BROKER/x") == "1"
    assert cat("/image/configs/TOPIC:pears/retention.ms") == "5"
    assert cat("/image/topics/byName/pears/name") == "pears"


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("", ["cat", "cd", "exit", "find", "help", "history", "ls", "man", "pwd", "tree"]),
        ("h", ["help", "history"]),
        ("man c", ["cat", "cd"]),
        ("ls /im", ["/image/"]),
        ("ls /image/to", ["/image/topics/"]),
        ("cat /image/pr", ["/image/producerIds/", "/image/provenance"]),
        ("ls loc", ["local/"]),
        ("ls /nothing/", []),
        ("ls /image/provenance/", []),
    ],
)
def test_completion(shell: tuple[Shell, list[str]], line: str, candidates: list[str]) -> None:
    assert shell[0].complete(line) == candidates


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["a*b", "apples", "avocados", "pears"]),
        (80, ["a*b  apples  avocados  pears"]),
        (24, ["a*b     avocados", "apples  pears"]),
        (3, ["a*b", "apples", "avocados", "pears"]),
    ],
)
def test_columns(shell: tuple[Shell, list[str]], width: int | None, lines: list[str]) -> None:
    run, written = shell
    run.width = width
    run.execute(["ls", "/image/topics/byName"])
    assert written == lines


def test_a_session(shell: tuple[Shell, list[str]]) -> None:
    run, written = shell
    for words in (["cd", "/image"], ["pwd"], ["cd"], ["pwd"], ["cd", "image/provenance"], []):
        run.execute(words)
    assert written == ["/image", "/", "cd: image/provenance: not a directory."]
    written.clear()
    run.history = ["one", "two", "three"]
    run.execute(["history", "2"])
    run.execute(["history", "x"])
    run.execute(["man", "nothing"])
    run.execute(["pwd", "extra"])
    assert written == [
        "    1  two",
        "    2  three",
        "history: x is not a number of entries",
        "man: unknown command nothing. Type help to get a list of commands.",
        "pwd: unrecognized arguments: extra",
    ]
    run.execute(["exit"])
    assert run.ended
