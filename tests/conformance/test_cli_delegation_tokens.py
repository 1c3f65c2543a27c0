"""`moldau delegation-tokens`: brokers give tokens over authenticated connections only, which this
release's client does not make yet; so refusals come from brokers, and answers from a fake one."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client.admin import Admin, DelegationToken, KafkaPrincipal, TokenInformation
from support.cli import CLASSES, TOOLS, Tools
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOOL = "delegation-tokens"
CLASSES[TOOL] = TOOLS + "DelegationTokenCommand"
HMAC = b64encode(b"secret").decode()


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with KafkaTools(broker.bootstrap) as kafka:
        yield Tools(broker.bootstrap, kafka)


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text("client.id=tokens\n")
    return str(path)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--create", "--renew"],
        ["--create"],
        ["--renew", "--hmac", HMAC],
        ["--expire", "--expiry-time-period", "-1"],
        ["--create", "--max-life-time-period", "1", "--hmac", HMAC],
        ["--describe", "--hmac", HMAC],
    ],
)
def test_refusals(tools: Tools, config: str, words: list[str]) -> None:
    tools.same_failure(TOOL, "--command-config", config, *words)


def test_settings_are_required(tools: Tools) -> None:
    tools.same_failure(TOOL, "--describe")


@pytest.mark.parametrize(
    "words",
    [
        ["--create", "--max-life-time-period", "-1", "--renewer-principal", "User:renewer"],
        ["--renew", "--renew-time-period", "-1", "--hmac", HMAC],
        ["--expire", "--expiry-time-period", "-1", "--hmac", HMAC],
        ["--describe"],
        ["--describe", "--owner-principal", "User:a", "--owner-principal", "User:b"],
    ],
)
def test_plain_connections_get_no_tokens(tools: Tools, config: str, words: list[str]) -> None:
    ours, theirs = tools.both(TOOL, "--command-config", config, *words)
    assert ours.status == theirs.status == 1
    told, failure = ours.output.splitlines()
    assert told == theirs.output.splitlines()[0]
    assert failure


def test_bad_values(tools: Tools, config: str) -> None:
    ended = tools.ask(
        TOOL, "--command-config", config, "--renew", "--renew-time-period", "1", "--hmac", "?"
    )
    assert (ended.status, ended.err) == (1, "--hmac ? is not base64\n")
    ended = tools.ask(TOOL, "--command-config", config, "--describe", "--owner-principal", "alice")
    assert ended.status == 1
    assert "principalType:principalName" in ended.err


class TestAnswers:
    """What is printed of tokens, which a fake admin client gives."""

    ISSUED = 1_700_000_000_000

    @pytest.fixture(autouse=True)
    def _utc(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
        yield
        monkeypatch.undo()
        time.tzset()

    @pytest.fixture(autouse=True)
    def _fake(self, monkeypatch: pytest.MonkeyPatch) -> None:
        info = TokenInformation(
            "id-1",
            KafkaPrincipal("User", "alice"),
            KafkaPrincipal("User", "bob"),
            (KafkaPrincipal("User", "renewer"),),
            self.ISSUED,
            self.ISSUED + 120_000,
            self.ISSUED + 60_000,
        )
        token = DelegationToken(info, b"secret")

        def create(admin: Admin, *, owner: KafkaPrincipal, **_: object) -> DelegationToken:
            assert owner == info.owner
            return token

        def renew(admin: Admin, hmac: bytes, *, renew_time_period_ms: int) -> int:
            assert (hmac, renew_time_period_ms) == (b"secret", 60_000)
            return self.ISSUED + renew_time_period_ms

        monkeypatch.setattr(Admin, "create_delegation_token", create)
        monkeypatch.setattr(Admin, "renew_delegation_token", renew)
        monkeypatch.setattr(Admin, "describe_delegation_token", lambda *_: [token])

    def test_create_and_describe(self, tools: Tools, config: str) -> None:
        created = tools.run(
            TOOL, "--command-config", config, "--create", "--max-life-time-period", "5",
            "--owner-principal", "User:alice", "--renewer-principal", "User:renewer",
        )  # fmt: skip
        lines = created.splitlines()
        assert lines[:3] == [
            "Calling create token operation with renewers :[User:renewer] , "
            "max-life-time-period :5",
            "Created delegation token with tokenId : id-1",
            "",
        ]
        header = (
            f"{'TOKENID':15} {'HMAC':30} {'OWNER':15} {'REQUESTER':15} {'RENEWERS':25} "
            f"{'ISSUEDATE':15} {'EXPIRYDATE':15} {'MAXDATE':15}"
        )
        row = (
            f"{'id-1':15} {HMAC:30} {'User:alice':15} {'User:bob':15} {'[User:renewer]':25} "
            "2023-11-14T22:13 2023-11-14T22:14 2023-11-14T22:15"
        )
        assert lines[3:] == [header, "", row]
        described = tools.run(TOOL, "--command-config", config, "--describe")
        assert described.splitlines()[1:] == ["Total number of tokens : 1", header, "", row]
        as_json = tools.ask(TOOL, "--command-config", config, "--describe", "--json").json
        assert as_json[0]["owner"] == "User:alice"

    def test_renew(self, tools: Tools, config: str) -> None:
        renewed = tools.run(
            TOOL, "--command-config", config, "--renew", "--renew-time-period", "60000", "--hmac",
            HMAC,
        )  # fmt: skip
        assert renewed.splitlines()[1] == (
            "Completed renew operation. New expiry date : 2023-11-14T22:14"
        )
