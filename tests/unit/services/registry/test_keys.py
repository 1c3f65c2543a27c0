"""Keys for encrypting fields: what is decided, and their records."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.errors import RegistryError
from moldau.services.registry.machine.journals import KeysJournal
from moldau.services.registry.machine.key_records import (
    Dek,
    DekId,
    Kek,
    KeySet,
    decode_key,
    encode_key,
)
from moldau.services.registry.machine.keys import KeyRegistry

KEK = {"name": "k", "kmsType": "AWS-KMS", "kmsKeyId": "arn:1", "kmsProps": {"b": "2", "a": "1"}}
ID = DekId("k", "s", "AES256_GCM", 1)


@pytest.fixture
def keys() -> KeyRegistry:
    found = KeyRegistry()
    act(found, found.create_kek(KEK))
    return found


def act(keys: KeyRegistry, decision: Decision[Any]) -> Any:
    for each in decision.records:
        keys.replay(decode_key(*encode_key(each), timestamp_ms=7))
    return decision.response


def code(action: Any) -> int:
    with pytest.raises(RegistryError) as caught:
        action()
    return caught.value.code


@pytest.mark.parametrize(
    ("record", "key"),
    [
        (
            KeySet("k", Kek(name="k", kms_type="t", kms_key_id="i", doc="d", timestamp_ms=7)),
            b'{"tenant":"default","name":"k","type":"KEK"}',
        ),
        (
            KeySet(ID, Dek(id=ID, encrypted_key_material="eA==", timestamp_ms=7)),
            b'{"tenant":"default","kekName":"k","subject":"s","algorithm":"AES256_GCM",'
            b'"version":1,"type":"DEK"}',
        ),
        (KeySet("k", None), b'{"tenant":"default","name":"k","type":"KEK"}'),
    ],
)
def test_a_record_keeps_its_meaning_and_its_key(record: KeySet, key: bytes) -> None:
    assert encode_key(record)[0] == key
    assert decode_key(*encode_key(record), timestamp_ms=7) == record


def test_a_kek_is_created_changed_deleted_and_brought_back(keys: KeyRegistry) -> None:
    assert keys.kek("k", deleted=False).to_json() == {
        "name": "k",
        "kmsType": "aws-kms",
        "kmsKeyId": "arn:1",
        "kmsProps": {"a": "1", "b": "2"},
        "shared": False,
        "ts": 7,
        "deleted": False,
    }
    assert code(lambda: keys.create_kek(KEK)) == 40971
    assert act(keys, keys.update_kek("k", {"doc": "new"})).doc == "new"
    assert code(lambda: keys.delete_kek("k", permanent=True)) == 40471
    act(keys, keys.delete_kek("k", permanent=False))
    assert code(lambda: keys.kek("k", deleted=False)) == 40470
    assert keys.kek_names((), deleted=False) == []
    act(keys, keys.undelete_kek("k"))
    assert keys.kek_names((), deleted=False) == ["k"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({**KEK, "name": "1k"}, 42271, id="a name that begins with a digit"),
        pytest.param({**KEK, "kmsKeyId": ""}, 42271, id="no key id"),
        pytest.param({**KEK, "kmsType": None}, 42271, id="no KMS"),
    ],
)
def test_a_kek_that_is_refused(keys: KeyRegistry, body: dict[str, Any], expected: int) -> None:
    assert code(lambda: keys.create_kek(body)) == expected


def test_deks_have_versions_and_keep_their_kek(keys: KeyRegistry) -> None:
    def create(**body: Any) -> Any:
        return act(keys, keys.create_dek("k", "s", body, rewrap=False))

    assert code(lambda: create()) == 42271
    assert create(encryptedKeyMaterial="eA==").id.version == 1
    assert code(lambda: create(encryptedKeyMaterial="eQ==")) == 40971
    assert create(encryptedKeyMaterial="eQ==", version=2).id.version == 2
    assert keys.dek_versions("k", "s", "AES256_GCM", deleted=False) == [1, 2]
    assert keys.dek("k", "s", "AES256_GCM", -1, deleted=False).encrypted_key_material == "eQ=="
    assert code(lambda: keys.dek("k", "s", "AES128_GCM", 1, deleted=False)) == 40470
    assert code(lambda: keys.delete_kek("k", permanent=False)) == 42272
    act(keys, keys.delete_deks("k", "s", "AES256_GCM", 1, permanent=False))
    assert keys.dek_versions("k", "s", "AES256_GCM", deleted=False) == [2]
    act(keys, keys.undelete_deks("k", "s", "AES256_GCM", None))
    assert code(lambda: keys.delete_deks("k", "s", "AES256_GCM", None, permanent=True)) == 40471
    act(keys, keys.delete_deks("k", "s", "AES256_GCM", None, permanent=False))
    act(keys, keys.delete_deks("k", "s", "AES256_GCM", None, permanent=True))
    assert keys.dek_subjects("k", deleted=True) == []


def test_a_former_primary_cannot_replace_a_key() -> None:
    keys = KeyRegistry()
    journal = KeysJournal("t", keys)

    def read(material: str, epoch: int | None) -> bool:
        dek = Dek(id=ID, encrypted_key_material=material)
        return journal.read(*encode_key(KeySet(ID, dek)), timestamp_ms=0, epoch=epoch)

    assert journal.opening() == []
    assert read("b25l", 1)
    assert read("dHdv", 2)
    assert not read("b2xk", 1)
    repairs = journal.repairs()
    assert [each.key for each in repairs] == [
        Dek(id=ID, encrypted_key_material="dHdv", timestamp_ms=0)
    ]
    journal.repaired()
    assert journal.repairs() == []
    assert len(journal.opening()) == 1


@pytest.mark.parametrize(
    ("kms_type", "key_id"),
    [
        ("aws-kms", "alias/k"),
        ("azure-kms", "http://v/keys/k"),
        ("gcp-kms", "cryptoKeys/k"),
        ("hcvault", "transit/keys/k"),
    ],
)
def test_ids_of_keys_that_no_such_kms_has_are_refused(kms_type: str, key_id: str) -> None:
    kek = {"name": "k", "kmsType": kms_type, "kmsKeyId": key_id}
    assert code(lambda: KeyRegistry().create_kek(kek)) == 42271


def test_there_are_only_so_many_keys() -> None:
    keys = KeyRegistry(1)
    for name in ("k", "l"):
        act(keys, keys.create_kek({**KEK, "name": name}))
    assert code(lambda: keys.create_kek({**KEK, "name": "m"})) == 40972
    for subject in ("s", "t"):
        body = {"encryptedKeyMaterial": "eA=="}
        act(keys, keys.create_dek("k", subject, body, rewrap=False))
    assert code(lambda: keys.create_dek("k", "u", body, rewrap=False)) == 40972
    assert code(lambda: keys.create_dek("k", "a\x85b", body, rewrap=False)) == 42271
