"""A Control Center in a test: requests to its API, and pages of it in a real browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from moldau.services.console.config import ConsoleConfig
from moldau.services.console.service import ConsoleService
from support.http_service import Running, running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WAIT_MS = 20_000


class Console:
    """`ask` checks the status and returns the body."""

    def __init__(self, service: Running, cluster: str = "default") -> None:
        self.service = service
        self.url = service.url
        self.cluster = cluster
        self.client = httpx.Client(base_url=service.url, timeout=60)

    def ask(
        self, method: str, path: str, body: Any = None, *, status: int = 200, **how: Any
    ) -> Any:
        """`path` is below the cluster; one that begins with /api stands for itself."""
        if not path.startswith("/api"):
            path = f"/api/clusters/{self.cluster}{path}"
        if body is not None:
            how["json"] = body
        answer = self.client.request(method, path, **how)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def lines(self, path: str, body: Any = None, *, method: str = "POST") -> Iterator[Any]:
        """The objects of an answer that is made while it is sent."""
        path = f"/api/clusters/{self.cluster}{path}"
        with self.client.stream(method, path, json=body) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if line:
                    yield json.loads(line)

    def page(self, path: str = "") -> str:
        return f"{self.url}/clusters/{self.cluster}{path}"


@contextmanager
def console_of(bootstrap: str, **properties: str) -> Iterator[Console]:
    """Underscores in the names of properties stand for dots."""
    texts = {
        "bootstrap.servers": bootstrap,
        "listeners": "http://127.0.0.1:0",
        "refresh.ms": "500",
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    with running(lambda: ConsoleService(ConsoleConfig.of(texts))) as service:
        console = Console(service)
        try:
            yield console
        finally:
            console.client.close()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of Playwright; the test is skipped where the machine has none."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def axe_violations(page: Any, axe: Path, only: dict[str, Any]) -> list[str]:
    """What axe finds on a page that is open, each with the elements."""
    page.evaluate(axe.read_text())
    options = {"runOnly": only, "resultTypes": ["violations"]}
    result = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{each['id']} {[node['target'] for node in each['nodes'][:3]]}"
        for each in result["violations"]
    ]


class Tab:
    """A page of the browser. `problems` has errors of scripts, requests to other hosts, and what
    the content security policy refused."""

    def __init__(self, browser: Any, console: Console, **options: Any) -> None:
        self._context = browser.new_context(**options)
        self._context.set_default_timeout(WAIT_MS)
        self.page = self._context.new_page()
        self.problems: list[str] = []
        self._console = console
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._on_console)
        self.page.on("request", self._on_request)

    def open(self, path: str = "") -> Any:
        """The page at a path below the cluster, once it is drawn."""
        self.page.goto(self._console.page(path), wait_until="domcontentloaded")
        self.ready()
        return self.page

    def ready(self) -> None:
        self.page.locator("main[data-ready]").wait_for()

    def close(self) -> None:
        self._context.close()

    def _on_console(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith((self._console.url, "data:", "blob:")):
            self.problems.append(f"a request to {request.url}")
