"""Builds the documentation site: docs/ with search, a reference of the API and what pages link to.

    python tools/build_site.py [--output DIR] [--pages-only]

MkDocs wants every link to be inside one folder, so the pages are staged in build/site-pages first:
README.md becomes the start page, and files of the repository that a page links to become pages
themselves. The build is strict: a warning, such as a link to nothing, fails it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
STAGED = ROOT / "build" / "site-pages"
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)((?:#[^)\s]*)?)(?=\))")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".sh": "sh", ".avsc": "json"}
# Pages by theme; those of docs/ that are not named here come last.
_NAVIGATION = {
    "Start": ["index.md", "learn/index.md", "guides/index.md", "source/examples/clients/README.md",
              "source/examples/use_cases/README.md"],
    "Clients": ["producer.md", "consumer.md", "share-consumer.md", "admin.md", "transactions.md",
                "groups.md", "migration.md", "messaging.md", "testing.md"],
    "Streams and SQL": ["streams.md", "sql-language.md", "sql-functions.md", "sql-server.md"],
    "Connect and schemas": ["connect.md", "connectors.md", "schema-registry.md", "serdes.md",
                            "schema-tools.md", "data.md"],
    "Pipelines": ["pipelines.md", "spark.md", "spark-server.md", "tables.md", "orders.md"],
    "Services": ["rest-proxy.md", "mqtt.md", "mqtt-conformance.md", "http-services.md"],
    "Operations": ["cluster.md", "configuration.md", "storage.md", "balance.md", "metrics.md",
                   "runbook.md", "cli.md", "cli-groups-console.md", "compatibility.md",
                   "benchmarks.md"],
    "Security": ["security.md", "security-tls.md", "security-sasl.md", "security-acls.md",
                 "security-quotas.md", "security-spark.md", "security-attacks.md"],
    "Development": ["source/ARCHITECTURE.md", "development.md", "howto.md", "simulation.md",
                    "glossary.md", "source/CHANGELOG.md"],
}  # fmt: skip
_REFERENCE = {
    "Producer": ["moldau.client.producer.blocking.Producer"],
    "Consumer": ["moldau.client.consumer.blocking.Consumer"],
    "Share consumer": ["moldau.client.share.blocking.ShareConsumer"],
    "Admin": ["moldau.client.admin.blocking.Admin"],
    "Streams": ["moldau.streams.topology.streams_builder.StreamsBuilder",
                "moldau.streams.topology.dsl", "moldau.streams.hosts.kafka_streams.KafkaStreams"],
    "Serializers": ["moldau.serde.avro", "moldau.serde.json_schema", "moldau.serde.protobuf"],
    "Connect": ["moldau.connect.api"],
    "Testing": ["moldau.testing.cluster"],
}  # fmt: skip


class Pages:
    """The staged folder; every repository path has one place in it."""

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self._done: set[str] = set()

    def place(self, path: str) -> str:
        """Where a file or folder of the repository is on the site."""
        if path == "README.md":
            return "index.md"
        if path.startswith("docs/"):
            return path.removeprefix("docs/")
        if path.endswith(".md"):
            return f"source/{path}"
        return f"source/{path}.md" if path in self._files else f"source/{path}/index.md"

    def add(self, path: str) -> None:
        """Writes a page, and those that it links to."""
        if path in self._done:
            return
        self._done.add(path)
        target = STAGED / self.place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            target.write_text(self._linked(path, (ROOT / path).read_text()))
        elif path.startswith("docs/"):
            shutil.copyfile(ROOT / path, target)
        elif path in self._files:
            language = _LANGUAGES.get(PurePosixPath(path).suffix, "text")
            text = (ROOT / path).read_text()
            target.write_text(f"# {path}\n\n````{language}\n{text.rstrip()}\n````\n")
        else:
            target.write_text(self._linked(f"{path}/index.md", self._listing(path)))

    def _listing(self, folder: str) -> str:
        inside = sorted(each for each in self._files if each.startswith(f"{folder}/"))
        rows = [f"- [{each.removeprefix(folder + '/')}]({each.removeprefix(folder + '/')})"
                for each in inside if not each.endswith((".pxd", ".c"))]  # fmt: skip
        return "\n".join((f"# {folder}", "", *rows)) + "\n"

    def _linked(self, page: str, text: str) -> str:
        here = self.place(page) if page in self._files else f"source/{page}"
        folder = os.path.dirname(page)

        def moved(link: re.Match[str]) -> str:
            path = os.path.normpath(os.path.join(folder, link[1]))
            if path not in self._files and not any(
                each.startswith(f"{path}/") for each in self._files
            ):
                # Left as it is: the strict build names it.
                return link[0]
            if path not in self._files and f"{path}/README.md" in self._files:
                path = f"{path}/README.md"
            self.add(path)
            return os.path.relpath(self.place(path), os.path.dirname(here)) + link[2]

        return outside_code(text, lambda prose: _LINK.sub(moved, prose))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = _CODE.split(text)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def reference() -> dict[str, str]:
    """Pages of the API, filled from docstrings when the site is built."""
    pages = {}
    for title, names in _REFERENCE.items():
        blocks = "\n".join(f"::: {name}\n" for name in names)
        pages[f"reference/{title.lower().replace(' ', '-')}.md"] = f"# {title}\n\n{blocks}"
    return pages


def navigation(staged: set[str]) -> str:
    lines = ["nav:"]
    named = {page for pages in _NAVIGATION.values() for page in pages}
    top = {each for each in staged if "/" not in each and each.endswith(".md")}
    themes = {**_NAVIGATION, "More": sorted(top - named)}
    for folder in ("learn", "guides"):
        themes[folder.capitalize()] = sorted(
            each
            for each in staged
            if each.startswith(f"{folder}/") and each.endswith(".md") and each not in named
        )
    themes["Reference"] = sorted(reference())
    for theme, pages in themes.items():
        if pages:
            lines += [f"  - {theme}:", *(f"    - {page}" for page in pages)]
    return "\n".join(lines) + "\n"


def stage() -> None:
    shutil.rmtree(STAGED, ignore_errors=True)
    STAGED.mkdir(parents=True)
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    files = frozenset(each for each in listed.stdout.splitlines() if (ROOT / each).exists())
    pages = Pages(files)
    pages.add("README.md")
    for path in sorted(files):
        if path.startswith("docs/") or path in ("ARCHITECTURE.md", "CHANGELOG.md"):
            pages.add(path)
    for path in ("examples/clients/README.md", "examples/use_cases/README.md"):
        pages.add(path)
    for name, text in reference().items():
        (STAGED / name).parent.mkdir(exist_ok=True)
        (STAGED / name).write_text(text)
    staged = {str(path.relative_to(STAGED)) for path in STAGED.rglob("*") if path.is_file()}
    settings = (ROOT / "config" / "site.yml").read_text()
    (ROOT / "build" / "mkdocs.yml").write_text(settings + "\n" + navigation(staged))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default=str(ROOT / "build" / "site"), metavar="DIR")
    parser.add_argument("--pages-only", action="store_true", help="stage pages, build nothing")
    given = parser.parse_args()
    stage()
    if given.pages_only:
        return 0
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean"]
    file = ["--config-file", str(ROOT / "build" / "mkdocs.yml"), "--site-dir", given.output]
    # A notice about the theme's successor is not a warning about these pages.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([*command, *file], check=False, env=environment)
    if done.returncode == 0:
        print(f"{given.output}/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
