"""Login: passwords that the broker checks, OpenID Connect, and permissions that follow ACLs."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from moldau.client import Admin, NewTopic
from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from moldau.config.errors import ConfigError
from moldau.services.console.config import ConsoleConfig
from support.console import Console, Tab, console_of
from support.issuer import Issuer
from support.processes import BrokerProcess
from support.secured import client_settings, jaas, secured_moldau
from support.waiting import eventually

RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with secured_moldau(tmp_path_factory.mktemp("secured"), RULES) as process:
        settings = client_settings(process.bootstrap, "PLAIN", "admin", "admin-secret")
        with Admin(settings) as admin:
            admin.create_topics([NewTopic("orders", 1, 1), NewTopic("secrets", 1, 1)])
        yield process


@pytest.fixture(scope="module")
def console(broker: BrokerProcess) -> Iterator[Console]:
    """The console's own user is admin; others log in with SCRAM."""
    own = {
        "login": "PASSWORD",
        "client_security_protocol": "SASL_PLAINTEXT",
        "client_sasl_mechanism": "SCRAM-SHA-512",
        "client_sasl_jaas_config": jaas("SCRAM-SHA-512", "sam", "sam-secret"),
        "login_failures_max": "3",
    }
    with console_of(broker.bootstrap, **own) as found:
        yield found


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(client_settings(broker.bootstrap, "PLAIN", "admin", "admin-secret")) as found:
        yield found


def allow(admin: Admin, operation: str) -> None:
    entry = AccessControlEntry("User:sam", "*", AclOperation[operation], AclPermissionType.ALLOW)
    admin.create_acls([AclBinding(ResourcePattern(ResourceType.TOPIC, "orders"), entry)])


def test_a_user_sees_and_does_what_acls_allow(tab: Tab, console: Console, admin: Admin) -> None:
    console.ask("GET", "/topics", status=401)
    page = tab.page
    page.goto(console.url, wait_until="domcontentloaded")
    page.get_by_label("User").fill("sam")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("The user name or the password is wrong.").wait_for()
    page.get_by_label("Password").fill("sam-secret")
    page.get_by_role("button", name="Log in").click()
    tab.ready()
    cookies = page.context.cookies()
    assert [(each["httpOnly"], each["sameSite"]) for each in cookies] == [(True, "Strict")]
    tab.open("/topics").get_by_text("No topics.").wait_for()
    allow(admin, "READ")
    eventually(
        lambda: tab.open("/topics").get_by_role("link", name="orders").count(), what="the topic"
    )
    assert page.get_by_role("link", name="secrets").count() == 0
    tab.open("/topics/orders")
    # Only what the user may do is offered.
    assert page.get_by_role("button", name="Delete topic").count() == 0
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Log in").wait_for()


def test_the_broker_refuses_what_acls_do_not_allow(console: Console) -> None:
    sam = ("sam", "sam-secret")
    answer = console.ask("DELETE", "/topics/orders", status=403, auth=sam)
    assert "TOPIC_AUTHORIZATION_FAILED" in answer["message"]
    console.ask("GET", "/topics/secrets", status=403, auth=sam)
    console.ask("POST", "/topics", {"name": "new"}, status=403, auth=sam)


def test_a_user_gets_a_delegation_token_and_ends_it(console: Console) -> None:
    sam = ("sam", "sam-secret")
    made = console.ask("POST", "/tokens", {"renewers": ["User:admin"]}, auth=sam)
    listed = console.ask("GET", "/tokens", auth=sam)["data"]
    assert [each["id"] for each in listed] == [made["id"]]
    assert made["hmac"] not in str(listed), "only its maker sees the secret, once"
    console.ask("POST", "/tokens/renew", {"id": made["id"]}, auth=sam)
    console.ask("POST", "/tokens/expire", {"id": "another"}, auth=sam, status=404)
    console.ask("POST", "/tokens/expire", {"id": made["id"]}, auth=sam)
    assert console.ask("GET", "/tokens", auth=sam)["data"] == []


def test_a_token_in_a_browser(tab: Tab, console: Console) -> None:
    tab.page.goto(console.url, wait_until="domcontentloaded")
    logged_in(tab)
    page = tab.open("/tokens")
    page.get_by_text("No delegation tokens.").wait_for()
    page.get_by_role("button", name="Create token").click()
    page.get_by_label("Renewers").fill("User:admin")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_text("this is the password").wait_for()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Renew").click()
    page.get_by_text("The token is renewed.").wait_for()
    page.get_by_role("button", name="End", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    page.get_by_text("The token is ended.").wait_for()
    page.get_by_text("No delegation tokens.").wait_for()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/connectors/mine", {"config": {"connector.class": "FileStreamSink"}}),
        ("POST", "/sql/statements", {"sql": "DROP STREAM orders;"}),
        ("POST", "/schemas/orders-value/versions", {"schema": '"string"'}),
        ("DELETE", "/schemas/orders-value", None),
        ("POST", "/pipelines/mine/stop", {}),
    ],
)
def test_services_are_changed_only_by_those_who_may_alter_the_cluster(
    console: Console, method: str, path: str, body: Any
) -> None:
    answer = console.ask(method, path, body, status=403, auth=("sam", "sam-secret"))
    assert "ALTER on the cluster" in answer["message"]


def test_passwords_cannot_be_tried_for_ever(console: Console) -> None:
    wrong = {"user": "eve", "password": "guess"}
    for _ in range(3):
        console.ask("POST", "/api/session", wrong, status=401)
    console.ask("POST", "/api/session", wrong, status=429)


def logged_in(tab: Tab) -> None:
    tab.page.get_by_label("User").fill("sam")
    tab.page.get_by_label("Password").fill("sam-secret")
    tab.page.get_by_role("button", name="Log in").click()
    tab.ready()


def test_a_session_that_has_ended_leads_to_the_login_and_back(tab: Tab, console: Console) -> None:
    page = tab.page
    page.goto(console.page("/topics"), wait_until="domcontentloaded")
    logged_in(tab)
    page.get_by_role("heading", name="Topics").wait_for()
    page.context.clear_cookies()
    page.get_by_role("link", name="Groups", exact=True).click()
    page.get_by_role("button", name="Log in").wait_for()
    logged_in(tab)
    page.get_by_role("heading", name="Groups").wait_for()


def test_a_session_ends_by_itself(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {
        "login": "PASSWORD",
        "client_security_protocol": "SASL_PLAINTEXT",
        "client_sasl_mechanism": "SCRAM-SHA-512",
        "client_sasl_jaas_config": jaas("SCRAM-SHA-512", "sam", "sam-secret"),
        "session_timeout_ms": "1000",
    }
    with console_of(broker.bootstrap, **own) as short:
        sam = {"user": "sam", "password": "sam-secret"}
        foreign = {"Origin": "https://elsewhere.example"}
        short.ask("POST", "/api/session", sam, status=403, headers=foreign)
        short.ask("POST", "/api/session", sam)
        assert short.ask("GET", "/api/session")["user"] == "sam"
        # Another site cannot use the session, whatever its form posts.
        short.ask("POST", "/topics", {"name": "theirs"}, status=403, headers=foreign)
        answer = short.client.post(
            "/api/clusters/default/topics",
            content='{"name": "theirs"}',
            headers={"Content-Type": "text/plain"},
        )
        assert answer.status_code in (400, 415), answer.text
        login = short.service.service.backend.login
        later_ms = login._clock.elapsed_ms() + 1001
        monkeypatch.setattr(login, "_clock", SimpleNamespace(elapsed_ms=lambda: later_ms))
        short.ask("GET", "/topics", status=401)
        assert short.ask("GET", "/api/session")["user"] is None


def test_a_console_that_others_can_reach_needs_a_login() -> None:
    texts = {"bootstrap.servers": "127.0.0.1:1", "listeners": "http://0.0.0.0:0"}
    with pytest.raises(ConfigError, match="Set login=PASSWORD"):
        ConsoleConfig.of(texts)


class Provider:
    """An OpenID provider that logs everybody in as olga."""

    def __init__(self) -> None:
        self.issuer = Issuer()
        self.codes: dict[str, dict[str, str]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                if url.path == "/authorize":
                    query = {name: each[0] for name, each in parse_qs(url.query).items()}
                    code = f"code-{len(provider.codes)}"
                    provider.codes[code] = query
                    back = urlencode({"code": code, "state": query["state"]})
                    self.send_response(302)
                    self.send_header("Location", f"{query['redirect_uri']}?{back}")
                    self.end_headers()
                elif url.path == "/jwks":
                    self._send(200, provider.issuer.key_set())
                else:
                    names = {"authorization_endpoint": "authorize", "token_endpoint": "token"}
                    found = {name: f"{provider.url}/{path}" for name, path in names.items()}
                    jwks = {"issuer": provider.url, "jwks_uri": f"{provider.url}/jwks"}
                    self._send(200, {**found, **jwks})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: each[0] for name, each in parse_qs(body).items()}
                asked = provider.codes.pop(form["code"])
                challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
                shown = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
                if shown != asked["code_challenge"]:
                    self._send(400, {"error": "invalid_grant"})
                    return
                token = provider.issuer.token(
                    "olga", iss=provider.url, aud=asked["client_id"], nonce=asked["nonce"]
                )
                self._send(200, {"id_token": token, "access_token": token, "expires_in": 600})

            def _send(self, status: int, body: Any) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Provider:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_login_with_openid_connect(browser: Any) -> None:
    with (
        Provider() as provider,
        console_of(
            "127.0.0.1:1", login="OIDC", oidc_issuer_url=provider.url, oidc_client_id="console"
        ) as console,
        httpx.Client(base_url=console.url, follow_redirects=True) as client,
    ):
        assert client.get("/api/session").json()["user"] is None
        assert client.get("/api/oidc/login").url.path == "/"
        assert client.get("/api/session").json()["user"] == "olga"
        page = browser.new_page()
        page.goto(console.url, wait_until="domcontentloaded")
        page.get_by_role("link", name="Log in with single sign-on").click()
        page.get_by_text("olga").wait_for()
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("link", name="Log in with single sign-on").wait_for()
        page.close()
        # A code that was begun in another browser logs nobody in.
        begun = httpx.get(f"{console.url}/api/oidc/login").headers["location"]
        back = httpx.get(begun).headers["location"]
        assert "begun+elsewhere" in httpx.get(back).headers["location"]
