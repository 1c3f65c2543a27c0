"""A registry with users and permissions per subject."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on
from support.waiting import eventually

STRING = {"schema": '"string"'}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("permissions")


@pytest.fixture(scope="module")
def stage(folder: Path) -> Iterator[RegistryStage]:
    users, permissions = folder / "users", folder / "permissions"
    users.write_text("ada: secret,dev\nroot: secret,admins\n")
    permissions.write_text("User:ada READ,WRITE orders-*\nRole:admins ALL *\n")
    settings = {
        "authentication.method": "BASIC",
        "authentication.roles": "*",
        "authentication.users.file": users,
        "subject.permissions.file": permissions,
    }
    with Broker() as broker, registry_on(broker.bootstrap_servers, **settings) as found:
        yield found


def ask(stage: RegistryStage, user: str, method: str, path: str, body: Any = None) -> Any:
    token = base64.b64encode(f"{user}:secret".encode()).decode()
    return stage.client.ask(method, path, body, headers={"Authorization": f"Basic {token}"})


def test_permissions(stage: RegistryStage, folder: Path) -> None:
    def denied(answer: Any) -> bool:
        return answer.status == 403 and answer.json["error_code"] == 40301

    made = ask(stage, "ada", "POST", "/subjects/orders-value/versions", STRING)
    assert made.status == 200, made
    other = ask(stage, "root", "POST", "/subjects/payments-value/versions", {"schema": '"int"'})
    assert denied(ask(stage, "ada", "POST", "/subjects/payments-value/versions", STRING))
    assert denied(ask(stage, "ada", "GET", "/subjects/payments-value/versions"))
    assert denied(ask(stage, "ada", "DELETE", "/subjects/orders-value"))
    assert denied(ask(stage, "ada", "PUT", "/config/orders-value", {"compatibility": "NONE"}))
    assert denied(ask(stage, "ada", "PUT", "/config", {"compatibility": "NONE"}))
    assert denied(ask(stage, "ada", "PUT", "/mode", {"mode": "READONLY"}))
    assert denied(ask(stage, "ada", "GET", f"/schemas/ids/{other.json['id']}"))
    assert denied(ask(stage, "ada", "GET", "/contexts/.x/subjects/payments-value/versions"))
    assert denied(ask(stage, "ada", "GET", "/dek-registry/v1/keks"))
    for path in (
        "/subjects/orders-value/versions/1",
        f"/schemas/ids/{made.json['id']}",
        "/config",
        "/schemas/types",
        "/subjects/orders-value/versions",
    ):
        assert ask(stage, "ada", "GET", path).status == 200, path
    assert ask(stage, "ada", "GET", "/subjects").json == ["orders-value"]
    assert ask(stage, "root", "GET", "/subjects").json == ["orders-value", "payments-value"]
    assert [each["subject"] for each in ask(stage, "ada", "GET", "/schemas").json] == [
        "orders-value"
    ]
    assert ask(stage, "nobody", "GET", "/subjects").status == 401
    (folder / "permissions").write_text("User:ada ALL *\n")
    eventually(
        lambda: ask(stage, "ada", "GET", "/subjects/payments-value/versions").status == 200,
        what="the new permissions",
    )
    # A file that is wrong changes nothing.
    (folder / "permissions").write_text("nonsense\n")
    assert ask(stage, "ada", "GET", "/subjects/payments-value/versions").status == 200
