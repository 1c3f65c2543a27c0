"""A small issuer of tokens: signs JWTs, publishes its keys and answers token requests."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER = "https://issuer.test"
AUDIENCE = "kafka"


class Issuer:
    """`with` starts its server on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        self._keys: dict[str, rsa.RSAPrivateKey] = {}
        self.key_id = ""
        self.rotate()
        self.clients = {"app": "app-secret"}
        #: Public keys of those who sign assertions, by the issuer that these name.
        self.signers: dict[str, Any] = {}
        self.audience: str | None = None
        """What these call the issuer; its URL if it has no other name."""
        self.requests: list[dict[str, list[str]]] = []
        self.lifetime_s = 3_600
        self.jwks_requests = 0

    def rotate(self) -> None:
        self.key_id = f"key-{len(self._keys)}"
        self._keys[self.key_id] = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, subject: str = "olga", *, key_id: str | None = None, **claims: Any) -> str:
        now = int(time.time())
        values = {
            "sub": subject, "iss": ISSUER, "aud": AUDIENCE, "iat": now,
            "exp": now + self.lifetime_s, "scope": "read write", **claims,
        }  # fmt: skip
        values = {name: value for name, value in values.items() if value is not None}
        key = self._keys[self.key_id]
        headers = {"kid": key_id or self.key_id}
        return jwt.encode(values, key, algorithm="RS256", headers=headers)

    def key_set(self) -> dict[str, Any]:
        keys = []
        for key_id, key in self._keys.items():
            public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
            keys.append({**public, "kid": key_id, "use": "sig"})
        return {"keys": keys}

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/jwks"

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        self.requests.append(form)
        if assertion := form.get("client_assertion") or form.get("assertion"):
            return self._answer_to(assertion[0])
        client, _, secret = (
            base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        )
        if self.clients.get(client) != secret:
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": self.token(client), "token_type": "bearer"}

    def _answer_to(self, assertion: str) -> tuple[int, dict[str, Any]]:
        try:
            signer = jwt.decode(assertion, options={"verify_signature": False})["iss"]
            claims = jwt.decode(
                assertion,
                self.signers[signer],
                algorithms=["RS256", "ES256"],
                audience=self.audience or self.url,
            )
        except (jwt.PyJWTError, KeyError) as error:
            return 401, {"error": "invalid_client", "error_description": repr(error)}
        return 200, {"access_token": self.token(claims["sub"]), "token_type": "bearer"}

    def __enter__(self) -> Issuer:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.jwks_requests += 1
                self._send(200, issuer.key_set())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._send(*issuer.answer(self.headers.get("Authorization", ""), parse_qs(body)))

            def _send(self, status: int, document: dict[str, Any]) -> None:
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
