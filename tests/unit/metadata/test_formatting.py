"""Formatting writes what Kafka's storage tool writes, once, and refuses what makes no sense."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.log.disk import OsDisk
from moldau.broker.metadata.formatting import FormatError, format_storage
from moldau.broker.raft.snapshots import read_snapshot
from moldau.wire.messages import FeatureLevelRecord, UserScramCredentialRecord
from moldau.wire.uuids import uuid_to_text

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def config(tmp_path: Path, *, voters: bool = False, roles: str = "broker,controller") -> Any:
    props = {
        "process.roles": roles,
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    }
    if roles == "broker":
        props["listeners"] = "PLAINTEXT://127.0.0.1:9092"
    if voters:
        del props["controller.quorum.bootstrap.servers"]
        props["controller.quorum.voters"] = "1@127.0.0.1:9093"
    return BrokerConfig.from_properties(props)


def format_it(broker_config: Any, **options: Any) -> list[str]:
    numbers = itertools.count(10**30)
    return format_storage(
        broker_config,
        options.pop("cluster_id", CLUSTER_ID),
        random_uuid=lambda: UUID(int=next(numbers), version=4),
        disk=OsDisk(),
        now_ms=1_700_000_000_000,
        **options,
    )


def properties(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def levels(tmp_path: Path) -> dict[str, int]:
    records = read_snapshot(OsDisk(), f"{tmp_path}/a/bootstrap.checkpoint").records
    return {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}


def test_a_static_quorum(tmp_path: Path) -> None:
    lines = format_it(config(tmp_path, voters=True))
    assert lines == [
        f"Formatting metadata directory {tmp_path}/a with metadata.version 4.3-IV0.",
        f"Formatting data directory {tmp_path}/b with metadata.version 4.3-IV0.",
    ]
    first, second = (properties(tmp_path / name / "meta.properties") for name in "ab")
    assert first.keys() == {"version", "cluster.id", "node.id", "directory.id"}
    assert (first["version"], first["cluster.id"], first["node.id"]) == ("1", CLUSTER_ID, "1")
    assert first["directory.id"] != second["directory.id"]
    for name in "ab":
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == [
            "bootstrap.checkpoint",
            "meta.properties",
        ]
    assert list(levels(tmp_path).items()) == [
        ("metadata.version", 30),
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("share.version", 1),
        ("streams.version", 1),
        ("transaction.version", 2),
    ]


def test_a_standalone_quorum_names_its_voter(tmp_path: Path) -> None:
    lines = format_it(config(tmp_path), standalone=True)
    assert lines[0].startswith("Formatting dynamic metadata voter directory")
    name = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    snapshot = read_snapshot(OsDisk(), f"{tmp_path}/a/{name}")
    assert snapshot.kraft_version == 1
    assert snapshot.records == ()
    assert snapshot.voters is not None
    voter = snapshot.voters.voters[1]
    assert (voter.endpoints[0].name, voter.endpoints[0].port) == ("CONTROLLER", 9093)
    directory = properties(tmp_path / "a" / "meta.properties")["directory.id"]
    assert uuid_to_text(voter.key.directory_id) == directory


def test_initial_controllers_give_this_node_its_directory_id(tmp_path: Path) -> None:
    others = f"1@localhost:9093:{DIRECTORY},2@other:9093:MvDxzVmcRsaTz33bUuRU6A"
    format_it(config(tmp_path), initial_controllers=others)
    assert properties(tmp_path / "a" / "meta.properties")["directory.id"] == DIRECTORY


def test_a_broker_formatted_with_the_first_voters_knows_them(tmp_path: Path) -> None:
    voters = f"7@far:9093:{DIRECTORY},,8@other:9093:MvDxzVmcRsaTz33bUuRU6A"
    lines = format_it(config(tmp_path, roles="broker"), initial_controllers=voters)
    assert lines[0].startswith("Formatting dynamic metadata directory")
    name = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    snapshot = read_snapshot(OsDisk(), f"{tmp_path}/a/{name}")
    assert snapshot.voters is not None
    assert list(snapshot.voters.voters) == [7, 8]
    assert properties(tmp_path / "a" / "meta.properties")["directory.id"] != DIRECTORY


def test_a_broker_of_a_dynamic_quorum_needs_no_flag(tmp_path: Path) -> None:
    lines = format_it(config(tmp_path, roles="broker"), features={"kraft.version": 1})
    assert lines[0].startswith("Formatting metadata directory")
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()


def test_a_node_without_initial_controllers_waits_to_be_told(tmp_path: Path) -> None:
    format_it(config(tmp_path), no_initial_controllers=True)
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()


def test_releases_and_features(tmp_path: Path) -> None:
    format_it(
        config(tmp_path, voters=True), release_version="4.0", features={"transaction.version": 1}
    )
    assert levels(tmp_path) == {
        "metadata.version": 25,
        "group.version": 1,
        "transaction.version": 1,
    }


def test_scram_users_are_in_the_bootstrap_records(tmp_path: Path) -> None:
    salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
    argument = f'SCRAM-SHA-256=[name=user,password="pencil",iterations=4096,salt="{salt}"]'
    format_it(config(tmp_path, voters=True), scram=[argument])
    records = read_snapshot(OsDisk(), f"{tmp_path}/a/bootstrap.checkpoint").records
    [scram] = [r for r in records if isinstance(r, UserScramCredentialRecord)]
    assert (scram.name, scram.mechanism, scram.iterations) == ("user", 1, 4096)
    assert scram.salt == base64.b64decode(salt)
    # The exchange of RFC 7677 section 3: both proofs must follow from what is stored.
    messages = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(scram.stored_key, messages, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == scram.stored_key
    server_signature = hmac.digest(scram.server_key, messages, "sha256")
    assert base64.b64encode(server_signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_formatted_folders_are_left_alone(tmp_path: Path) -> None:
    format_it(config(tmp_path, voters=True))
    before = (tmp_path / "a" / "meta.properties").read_text()
    with pytest.raises(FormatError, match=r"already formatted\. Use --ignore-formatted"):
        format_it(config(tmp_path, voters=True))
    (tmp_path / "b" / "meta.properties").unlink()
    lines = format_it(config(tmp_path, voters=True), ignore_formatted=True)
    assert lines == [f"Formatting data directory {tmp_path}/b with metadata.version 4.3-IV0."]
    again = format_it(config(tmp_path, voters=True), ignore_formatted=True)
    assert again == ["All of the log directories are already formatted."]
    assert (tmp_path / "a" / "meta.properties").read_text() == before
    with pytest.raises(FormatError, match=r"Invalid cluster\.id"):
        format_it(config(tmp_path, voters=True), ignore_formatted=True, cluster_id="other")


@pytest.mark.parametrize(
    ("voters", "options", "message"),
    [
        (False, {}, "you must specify one of the following: --standalone"),
        (True, {"standalone": True}, "You cannot specify controller.quorum.voters"),
        (False, {"standalone": True, "no_initial_controllers": True}, "Only one of"),
        (True, {"release_version": "1.0"}, "Unknown metadata.version '1.0'"),
        (True, {"features": {"nope": 1}}, "Unsupported feature: nope"),
        (True, {"features": {"group.version": 7}}, "feature level 7"),
        (
            True,
            {"features": {"metadata.version": 25}, "release_version": "4.0"},
            "to avoid ambiguity",
        ),
        (
            True,
            {"release_version": "3.9", "features": {"eligible.leader.replicas.version": 1}},
            "depends on metadata.version",
        ),
        (True, {"features": {"kraft.version": 1}}, "Cannot set kraft.version to 1 unless"),
        (
            False,
            {"features": {"kraft.version": 0}, "standalone": True},
            "Cannot set kraft.version to 0 if",
        ),
        (True, {"release_version": "3.4", "scram": ["x"]}, "SCRAM is only supported in"),
        (True, {"scram": ["nonsense"]}, "Failed to parse"),
        (True, {"scram": ["SCRAM-MD5=[name=a,password=b]"]}, "is not supported"),
        (True, {"scram": ["SCRAM-SHA-256=[password=b]"]}, "must supply 'name'"),
        (True, {"scram": ["SCRAM-SHA-256=[name=a]"]}, "one of 'password' or 'saltedpassword'"),
        (True, {"scram": ["SCRAM-SHA-256=[name=a,password=b,iterations=9]"]}, "between 4096 and"),
        (True, {"scram": ["SCRAM-SHA-256=[name=a,wrong=b]"]}, "the keys are name"),
        (False, {"initial_controllers": ","}, "no voters given"),
        (
            True,
            {"features": {"kraft.version": 1}, "no_initial_controllers": True},
            "removing controller.quorum.voters",
        ),
        (False, {"initial_controllers": "1@host"}, "is not id@host:port:directory-id"),
        (False, {"initial_controllers": "1@h:1:short"}, "is not id@host:port:directory-id"),
        (
            False,
            {"initial_controllers": f"1@h:1:{DIRECTORY},1@h:2:MvDxzVmcRsaTz33bUuRU6A"},
            "a node id twice",
        ),
        (
            False,
            {"initial_controllers": f"1@h:1:{DIRECTORY},2@h:2:{DIRECTORY}"},
            "a directory id twice",
        ),
    ],
)
def test_refused_requests_write_nothing(
    tmp_path: Path, voters: bool, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        format_it(config(tmp_path, voters=voters), **options)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []
