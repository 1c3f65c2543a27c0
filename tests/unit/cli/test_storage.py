"""The storage tool says what Kafka 4.3's says."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.main import main
from moldau.wire.uuids import uuid_from_text

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A configuration file of a node with two log folders, neither of which exists."""
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        "controller.quorum.bootstrap.servers=localhost:29093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    return path


def storage(*argv: object) -> int:
    return main(["storage", *map(str, argv)])


def test_random_uuid(capsys: Capture) -> None:
    assert storage("random-uuid") == 0
    first = capsys.readouterr().out.strip()
    assert len(first) == 22
    uuid_from_text(first)
    storage("random-uuid")
    assert capsys.readouterr().out.strip() != first


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (
            [],
            ["metadata.version=30 (4.3-IV0)", "kraft.version=1", "transaction.version=2"]
            + ["group.version=1", "eligible.leader.replicas.version=1"]
            + ["share.version=1", "streams.version=1"],
        ),
        (
            ["-r", "3.9-IV0"],
            ["metadata.version=21 (3.9-IV0)", "kraft.version=1", "transaction.version=0"]
            + ["group.version=0", "eligible.leader.replicas.version=0"]
            + ["share.version=0", "streams.version=0"],
        ),
        (
            ["-r", "3.8-IV0"],
            ["metadata.version=20 (3.8-IV0)", "kraft.version=0", "transaction.version=0"]
            + ["group.version=0", "eligible.leader.replicas.version=0"]
            + ["share.version=0", "streams.version=0"],
        ),
        (
            ["--release-version", "4.1"],
            ["metadata.version=27 (4.1)", "kraft.version=1", "transaction.version=2"]
            + ["group.version=1", "eligible.leader.replicas.version=1"]
            + ["share.version=0", "streams.version=0"],
        ),
    ],
)
def test_version_mapping(argv: list[str], lines: list[str], capsys: Capture) -> None:
    assert storage("version-mapping", *argv) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_feature_dependencies(capsys: Capture) -> None:
    features = ["eligible.leader.replicas.version=1", "metadata.version=20"]
    assert storage("feature-dependencies", "-f", features[0], "-f", features[1]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "metadata.version=20 (3.8-IV0) has no dependencies.",
    ]


def test_info_before_and_after_format(node: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a").mkdir()
    assert storage("info", "-c", node) == 1
    assert capsys.readouterr().out == (
        f"Found log directory:\n  {tmp_path}/a\n\n"
        f"Found problems:\n  {tmp_path}/a is not formatted.\n  {tmp_path}/b does not exist\n\n"
    )
    assert storage("format", "-c", node, "-t", "4L6g3nShT-eMCtK--X86sw", "--standalone") == 0
    assert f"Formatting dynamic metadata voter directory {tmp_path}/a" in capsys.readouterr().out
    assert storage("info", "-c", node) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Found log directories:\n  {tmp_path}/a\n  {tmp_path}/b\n\n")
    assert "Found metadata: {cluster.id=4L6g3nShT-eMCtK--X86sw, directory.id=" in shown
    assert shown.endswith("node.id=1, version=1}\n\n")


def test_info_finds_folders_of_two_clusters(node: Path, tmp_path: Path, capsys: Capture) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text(
            f"version=1\ncluster.id={name}\nnode.id=1\n"
        )
    assert storage("info", "-c", node) == 1
    assert "Mismatched cluster IDs between storage directories." in capsys.readouterr().out


def test_format_refuses_and_ignores_what_is_formatted(node: Path, capsys: Capture) -> None:
    argv = ["format", "-c", node, "-t", "4L6g3nShT-eMCtK--X86sw", "-s"]
    assert storage(*argv) == 0
    capsys.readouterr()
    assert storage(*argv) == 1
    assert "is already formatted. Use --ignore-formatted" in capsys.readouterr().err
    assert storage(*argv, "-g") == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        ([], "you must specify one of the following: --standalone"),
        (["-s", "-r", "9.9"], "Unknown metadata.version '9.9'"),
        (["-s", "-f", "foo=1"], "Unsupported feature: foo"),
        (["-s", "-f", "foo"], "equals sign not found"),
        (["-s", "-f", "group.version=x"], "unable to parse x as a short"),
        (["-s", "-f", "group.version=1", "-f", "group.version=0"], "more than once"),
        # The argument is not repeated: it may hold a password.
        (["-s", "-S", "foo"], "Failed to parse an add-scram argument"),
        (["-I", "foo"], "foo"),
    ],
)
def test_format_refuses(
    argv: list[str], part: str, node: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert storage("format", "-c", node, "-t", "x", *argv) == 1
    captured = capsys.readouterr()
    assert part in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "a" / "meta.properties").exists()


def test_format_tells_which_folder_it_cannot_write(
    node: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "a").write_text("a file")
    assert storage("format", "-c", node, "-t", "x", "-s") == 1
    captured = capsys.readouterr()
    assert f"{tmp_path}/a" in captured.err
    assert captured.err.count("\n") == 1
