"""Key management services: who encrypts DEKs. Each by its own library, imported when it is needed.

What they return is kept as it is, as Confluent's clients do, so that either reads the other's keys.
Settings are those of Confluent's drivers, `rule.executors._default_.param.*` without the prefix.
"""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from moldau.installation import pip_install
from moldau.serde.rules.machine.errors import RuleError

__all__ = ["LOCAL_KMS", "Kms", "kms_for", "open_sealed", "sealed"]

LOCAL_KMS: Final = "local-kms"
#: Keys of the same service that are asked if the first cannot be, such as of other regions.
_ALTERNATES: Final = "encrypt.alternate.kms.key.ids"
_NONCE_SIZE: Final = 12
#: What Confluent's Azure driver puts before data if it is configured to save the key's version.
_AZURE_VERSION: Final = re.compile(rb"azure:v1:([0-9a-fA-F]{32}):")
Params = Mapping[str, str]
_logger: Final = logging.getLogger(__name__)


class Kms(Protocol):
    """One key of a service."""

    def encrypt(self, plain: bytes) -> bytes: ...

    def decrypt(self, data: bytes) -> bytes: ...


def sealed(key: bytes, plain: bytes) -> bytes:
    nonce = os.urandom(_NONCE_SIZE)
    return nonce + AESGCM(key).encrypt(nonce, plain, None)


def open_sealed(key: bytes, data: bytes) -> bytes:
    return AESGCM(key).decrypt(data[:_NONCE_SIZE], data[_NONCE_SIZE:], None)


def kms_for(kms_type: str, key_id: str, params: Params) -> Kms:
    """Raises RuleError for a service that is not known, and for one whose library is missing."""
    given = params.get(_ALTERNATES) or ""
    others = [each.strip() for each in given.split(",") if each.strip()]
    if not others:
        return _kms_of_key(kms_type, key_id, params)
    return _FirstOf({id: partial(_kms_of_key, kms_type, id, params) for id in (key_id, *others)})


class _FirstOf:
    """Several keys: the first that can be used is."""

    def __init__(self, keys: Mapping[str, Callable[[], Kms]]) -> None:
        self._keys = keys
        self._made: dict[str, Kms] = {}

    def encrypt(self, plain: bytes) -> bytes:
        return self._first(lambda kms: kms.encrypt(plain))

    def decrypt(self, data: bytes) -> bytes:
        return self._first(lambda kms: kms.decrypt(data))

    def _first(self, ask: Callable[[Kms], bytes]) -> bytes:
        failures = []
        for key_id, make in self._keys.items():
            try:
                if key_id not in self._made:
                    self._made[key_id] = make()
                return ask(self._made[key_id])
            except Exception as error:  # Each library has errors of its own.
                _logger.warning("Cannot use key %s of the KMS: %s", key_id, error)
                failures.append(f"{key_id}: {error}")
        raise RuleError(f"none of the KMS's keys can be used: {'; '.join(failures)}")


def _kms_of_key(kms_type: str, key_id: str, params: Params) -> Kms:
    make = _SERVICES.get(kms_type)
    if make is None:
        raise RuleError(
            f"keys are kept by {kms_type}, which is none of {', '.join(sorted(_SERVICES))}"
        )
    try:
        return make(key_id, params)
    except ImportError as error:
        raise RuleError(f"keys of {kms_type} need {error.name}: {pip_install('kms')}") from None
    except RuleError:
        raise
    except Exception as error:  # Each library has errors of its own.
        raise RuleError(f"{kms_type} cannot be used: {error}") from error


class _Local:
    """A key derived from a secret."""

    def __init__(self, key_id: str, params: Params) -> None:
        secret = params.get("secret") or os.environ.get("LOCAL_SECRET")
        if not secret:
            raise RuleError(
                f"{LOCAL_KMS} needs its secret: set rule.executors._default_.param.secret"
            )
        derive = HKDF(algorithm=hashes.SHA256(), length=16, salt=None, info=b"")
        self._key = derive.derive(secret.encode())

    def encrypt(self, plain: bytes) -> bytes:
        return sealed(self._key, plain)

    def decrypt(self, data: bytes) -> bytes:
        try:
            return open_sealed(self._key, data)
        except (InvalidTag, ValueError):
            raise RuleError("was it encrypted with another secret?") from None


class _Aws:
    """AWS KMS; the key is an ARN, which has the region."""

    def __init__(self, key_id: str, params: Params) -> None:
        import boto3  # type: ignore[import-untyped]

        parts = key_id.split(":")
        if len(parts) < 6:
            raise RuleError(f"{key_id} is not the ARN of a key")
        session = boto3.Session(
            region_name=parts[3],
            aws_access_key_id=params.get("access.key.id"),
            aws_secret_access_key=params.get("secret.access.key"),
            profile_name=params.get("profile"),
        )
        role = params.get("role.arn")
        if role is not None:
            session = _assumed(session, role, parts[3], params)
        self._key_id = key_id
        self._client = session.client("kms")

    def encrypt(self, plain: bytes) -> bytes:
        answer = self._client.encrypt(KeyId=self._key_id, Plaintext=plain)
        return bytes(answer["CiphertextBlob"])

    def decrypt(self, data: bytes) -> bytes:
        answer = self._client.decrypt(KeyId=self._key_id, CiphertextBlob=data)
        return bytes(answer["Plaintext"])


def _assumed(session: Any, role: str, region: str, params: Params) -> Any:
    import boto3

    asked = {
        "RoleArn": role,
        "RoleSessionName": params.get("role.session.name") or "confluent-encrypt",
    }
    if params.get("role.external.id"):
        asked["ExternalId"] = params["role.external.id"]
    given = session.client("sts").assume_role(**asked)["Credentials"]
    return boto3.Session(
        region_name=region,
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )


class _Azure:
    """Azure Key Vault; the key is `https://VAULT.vault.azure.net/keys/NAME/VERSION`."""

    def __init__(self, key_id: str, params: Params) -> None:
        from azure.identity import ClientSecretCredential, DefaultAzureCredential
        from azure.keyvault.keys.crypto import CryptographyClient, EncryptionAlgorithm

        own = [params.get(name) for name in ("tenant.id", "client.id", "client.secret")]
        tenant, client, secret = own
        self._credential: Any = (
            ClientSecretCredential(tenant, client, secret)
            if tenant and client and secret
            else DefaultAzureCredential()
        )
        self._key_id = key_id
        self._client = CryptographyClient
        self._algorithm = EncryptionAlgorithm.rsa_oaep_256

    def encrypt(self, plain: bytes) -> bytes:
        client = self._client(self._key_id, self._credential)
        return bytes(client.encrypt(self._algorithm, plain).ciphertext)

    def decrypt(self, data: bytes) -> bytes:
        key_id, found = self._key_id, _AZURE_VERSION.match(data)
        if found is not None:
            base = "/".join(key_id.split("/")[:5])
            key_id, data = f"{base}/{found[1].decode()}", data[found.end() :]
        client = self._client(key_id, self._credential)
        return bytes(client.decrypt(self._algorithm, data).plaintext)


class _Gcp:
    """Google Cloud KMS; the key is `projects/.../locations/.../keyRings/.../cryptoKeys/NAME`."""

    def __init__(self, key_id: str, params: Params) -> None:
        from google.cloud import kms

        self._key_id = key_id
        self._client = kms.KeyManagementServiceClient(credentials=_gcp_credentials(params))

    def encrypt(self, plain: bytes) -> bytes:
        answer = self._client.encrypt(request={"name": self._key_id, "plaintext": plain})
        return bytes(answer.ciphertext)

    def decrypt(self, data: bytes) -> bytes:
        answer = self._client.decrypt(request={"name": self._key_id, "ciphertext": data})
        return bytes(answer.plaintext)


def _gcp_credentials(params: Params) -> Any:
    """None: those of the environment."""
    names = ("client.id", "client.email", "private.key.id", "private.key")
    if not all(params.get(name) for name in names):
        return None
    from google.oauth2 import service_account

    credentials: Any = service_account.Credentials
    return credentials.from_service_account_info(
        {
            "type": params.get("account.type") or "service_account",
            "token_uri": params.get("token.uri") or "https://oauth2.googleapis.com/token",
            **{name.replace(".", "_"): params[name] for name in names},
        }
    )


class _Vault:
    """HashiCorp Vault's transit engine; the key is `http://HOST:8200/transit/keys/NAME`."""

    def __init__(self, key_id: str, params: Params) -> None:
        import hvac  # type: ignore[import-untyped]

        found = urlsplit(key_id)
        mount, separator, name = found.path.strip("/").rpartition("/keys/")
        if not found.netloc or not separator or not name:
            raise RuleError(f"{key_id} is not of the form http://HOST:PORT/transit/keys/NAME")
        certificate, key = params.get("ssl.certificate.location"), params.get("ssl.key.location")
        self._mount, self._name = mount, name
        self._client = hvac.Client(
            url=f"{found.scheme}://{found.netloc}",
            token=params.get("token.id"),
            namespace=params.get("namespace"),
            verify=params.get("ssl.ca.location") or os.environ.get("VAULT_CACERT") or True,
            cert=(certificate, key) if certificate and key else certificate,
        )
        role, secret = params.get("approle.role.id"), params.get("approle.secret.id")
        if role and secret:
            self._client.auth.approle.login(role_id=role, secret_id=secret)

    def encrypt(self, plain: bytes) -> bytes:
        answer = self._client.secrets.transit.encrypt_data(
            name=self._name,
            plaintext=base64.b64encode(plain).decode(),
            mount_point=self._mount,
        )
        return str(answer["data"]["ciphertext"]).encode()

    def decrypt(self, data: bytes) -> bytes:
        answer = self._client.secrets.transit.decrypt_data(
            name=self._name, ciphertext=data.decode(), mount_point=self._mount
        )
        return base64.b64decode(answer["data"]["plaintext"])


_SERVICES: Final[Mapping[str, Callable[[str, Params], Kms]]] = {
    LOCAL_KMS: _Local,
    "aws-kms": _Aws,
    "azure-kms": _Azure,
    "gcp-kms": _Gcp,
    "hcvault": _Vault,
}
