"""The example page in a real browser: records are sent and shown as they arrive."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.rest import Proxy

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_the_page_sends_and_shows_records(proxy: Proxy, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    topic = proxy.topic()
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(proxy.url, wait_until="domcontentloaded")
            page.get_by_text("topics.").wait_for(timeout=60_000)
            page.fill("#topic", topic)
            page.select_option("#from", "earliest")
            page.get_by_role("button", name="Show records").click()
            page.get_by_text(f"Showing records of {topic}.").wait_for(timeout=60_000)
            page.fill("#key", "ada")
            page.fill("#value", '{"count": 7}')
            page.get_by_role("button", name="Send").click()
            page.get_by_text("Stored in partition 0 at offset 0.").wait_for(timeout=60_000)
            row = page.locator("#records tr")
            row.first.wait_for(timeout=60_000)
            cells = row.first.locator("td").all_inner_texts()
            page.fill("#topic", "no/such topic")
            page.get_by_role("button", name="Send").click()
            page.locator("#state.bad").wait_for(timeout=60_000)
            color = page.locator("#state").evaluate("each => getComputedStyle(each).color")
            page.screenshot(path=os.environ.get("MOLDAU_SCREENSHOT", str(tmp_path / "page.png")))
        finally:
            browser.close()
    assert (cells[0], cells[1], cells[3], cells[4]) == ("0", "0", "ada", '{"count":7}')
    assert problems == []
    assert color == "rgb(204, 34, 34)"
