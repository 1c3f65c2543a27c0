"""Keys of encrypted fields while the registry refuses, and as they get old."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import pytest

from moldau.serde.errors import RegistryError
from moldau.serde.rules.encryption import Encryption, new_key_message
from moldau.serde.rules.kms import kms_for
from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.machine.rule_sets import RuleSet
from moldau.serde.rules.running import Record, RuleContext

PARAMS = {"secret": "s"}
RULE_PARAMS = {
    "encrypt.kek.name": "k",
    "encrypt.kms.type": "local-kms",
    "encrypt.kms.key.id": "x",
    "encrypt.dek.expiry.days": "1",
}


@dataclass
class OldKeys:
    """A registry whose only DEK has expired long ago, and which takes no other."""

    asked: list[str] = field(default_factory=list)
    material: bytes = kms_for("local-kms", "x", PARAMS).encrypt(new_key_message("AES256_GCM"))

    def request(self, method: str, path: str, body: Any = None) -> Any:
        self.asked.append(f"{method} {path}")
        if method == "POST":
            raise RegistryError("no more keys", status=403, error_code=40300, url=path)
        if "/deks/" not in path:
            return {"name": "k", "kmsType": "local-kms", "kmsKeyId": "x", "shared": False}
        material = base64.b64encode(self.material).decode()
        return {"encryptedKeyMaterial": material, "version": 3, "ts": 0}


def context(mode: Any, **params: str) -> RuleContext:
    rule = {"name": "r", "type": "ENCRYPT", "params": {**RULE_PARAMS, **params}}
    (made,) = RuleSet.from_json({"domainRules": [rule]}).domain
    return RuleContext("s", mode, made, (made,), {}, None, Record("t", False, None, None))


def test_an_expired_key_serves_while_no_other_can_be_made() -> None:
    registry: Any = OldKeys()
    encryption = Encryption(registry, params=PARAMS)
    sealed = encryption.encrypt(context("WRITE"), b"plain")
    assert sealed[:5] == b"\x00\x00\x00\x00\x03"
    assert encryption.decrypt(context("READ"), sealed) == b"plain"


def test_deleted_keys_are_read() -> None:
    registry: Any = OldKeys()
    encryption = Encryption(registry, params=PARAMS)
    encryption.decrypt(context("READ"), encryption.encrypt(context("WRITE"), b"plain"))
    keks = [each for each in registry.asked if "/deks" not in each]
    assert [each.rpartition("/")[2] for each in keks] == ["k", "k?deleted=true"]


def test_keys_are_asked_for_again_once_they_are_old() -> None:
    remembers, forgets = OldKeys(), OldKeys()
    for registry, params in ((remembers, PARAMS), (forgets, {**PARAMS, "cache.expiry.secs": "0"})):
        given: Any = registry
        encryption = Encryption(given, params=params)
        sealed = encryption.encrypt(context("WRITE"), b"plain")
        for _ in range(3):
            encryption.decrypt(context("READ"), sealed)
    assert len([each for each in remembers.asked if "versions/3" in each]) == 1
    assert len([each for each in forgets.asked if "versions/3" in each]) == 3


@pytest.mark.parametrize("days", ["-1", "soon"])
def test_days_that_are_none_are_refused(days: str) -> None:
    registry: Any = OldKeys()
    with pytest.raises(RuleError, match=f"encrypt.dek.expiry.days {days} is not"):
        Encryption(registry, params=PARAMS).encrypt(
            context("WRITE", **{"encrypt.dek.expiry.days": days}), b"plain"
        )
