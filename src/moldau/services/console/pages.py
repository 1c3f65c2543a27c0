"""The pages: a table of paths, titles and the JavaScript modules that draw them.

To add a page, add a line to `_TABLE` and a module to `static/pages/` (README.md shows how). The
table is sent to the browser, which draws the navigation from it; the server answers each path with
the same document. Nothing is loaded from anywhere else, and the content security policy says so.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from moldau.http.machine.errors import not_found
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request

__all__ = ["PAGES", "Page", "page_routes", "page_table"]

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """`path` is below /clusters/{cluster}. `module` is a file of static/pages, `view` the function
    that it exports. A page without a `group` is not in the navigation. `needs` is a service that
    must be configured: registry, connect or sql."""

    path: str
    title: str
    module: str
    view: str = "page"
    group: str = ""
    icon: str = ""
    needs: str = ""


#: path | title | module[.view] | group | icon | needs
_TABLE: Final = """
                       | Overview          | overview           | Cluster  | home     |
/brokers               | Brokers           | brokers            | Cluster  | server   |
/brokers/{broker}      | Broker            | brokers.broker     |          |          |
/quorum                | Controllers       | quorum             | Cluster  | vote     |
/settings              | Settings          | settings           | Cluster  | sliders  |
/topics                | Topics            | topics             | Data     | list     |
/topics/{topic}        | Topic             | topic              |          |          |
/topics/{topic}/messages | Messages        | messages           |          |          |
/groups                | Groups            | groups             | Data     | users    |
/groups/{group}        | Group             | group              |          |          |
/dead-letters          | Dead letters      | dead_letters       | Data     | alert    |
/dead-letters/{topic}  | Dead letters      | dead_letters.topic |          |          |
/transactions          | Transactions      | transactions       | Data     | swap     |
/schemas               | Schemas           | schemas            | Services | braces   | registry
/schemas/{subject}     | Schema            | schemas.subject    |          |          | registry
/connectors            | Connectors        | connectors         | Services | plug     | connect
/connectors/{connector} | Connector        | connectors.connector |        |          | connect
/pipelines             | Pipelines         | pipelines          | Services | flow     |
/pipelines/{pipeline}  | Pipeline          | pipelines.pipeline |          |          |
/streams               | Streams           | streams            | Services | tree     |
/streams/{application} | Streams application | streams.application |       |          |
/sql                   | SQL               | sql                | Services | terminal | sql
/sql/{query}           | Query             | sql.query          |          |          | sql
/mirrors               | Mirrors           | mirrors            | Services | mirror   |
/mirrors/{source}      | Mirror            | mirrors.mirror     |          |          |
/balancer              | Balancer          | balancer           | Services | scale    |
/lineage               | Lineage           | lineage            | Services | graph    |
/logs                  | Platform          | platform           | Services | clock    |
/acls                  | ACLs              | acls               | Security | lock     |
/users                 | Users             | users              | Security | user     |
/quotas                | Quotas            | quotas             | Security | gauge    |
/tokens                | Delegation tokens | tokens             | Security | key      |
/audit                 | Audit             | audit              | Security | clock    |
"""


def _parse(line: str) -> Page:
    path, title, module, group, icon, *rest = (part.strip() for part in line.split("|"))
    file, _, view = module.partition(".")
    return Page(
        path=path,
        title=title,
        module=file,
        view=view or "page",
        group=group,
        icon=icon,
        needs="".join(rest),
    )


PAGES: Final = tuple(_parse(line) for line in _TABLE.strip("\n").splitlines())


def page_table() -> list[dict[str, Any]]:
    """For the browser."""
    return [
        {
            "path": each.path,
            "title": each.title,
            "module": each.module,
            "view": each.view,
            "group": each.group,
            "icon": each.icon,
            "needs": each.needs,
        }
        for each in PAGES
    ]


class _Files:
    """The files of static/, read once."""

    def __init__(self) -> None:
        self._found: dict[str, Answer] = {}
        root = resources.files("moldau.services.console") / "static"
        for folder, prefix in ((root, ""), (root / "pages", "pages/")):
            for each in folder.iterdir():
                suffix = f".{each.name.rpartition('.')[2]}"
                if suffix in _TYPES:
                    data = each.read_bytes()
                    tag = f'"{hashlib.sha256(data).hexdigest()[:20]}"'
                    self._found[prefix + each.name] = Answer(
                        body=data, media_type=_TYPES[suffix], headers={**_HEADERS, "ETag": tag}
                    )

    def answer(self, name: str, request: Request) -> Answer:
        found = self._found.get(name)
        if found is None:
            raise not_found()
        if request.headers.get("if-none-match") == found.headers["ETag"]:
            return Answer(status=304, body=b"", media_type=found.media_type, headers=found.headers)
        return found


def page_routes() -> list[Route]:
    """The document at every path of the table, and the files that it loads. They hold no data, so
    they are there before the login."""
    files = _Files()

    def document(request: Request) -> Answer:
        return files.answer("index.html", request)

    def file(request: Request) -> Answer:
        return files.answer(request.path["name"], request)

    def page_file(request: Request) -> Answer:
        return files.answer(f"pages/{request.path['name']}", request)

    paths = ["/", "/login", *(f"/clusters/{{cluster}}{each.path}" for each in PAGES)]
    html = ("text/html",)
    found = [
        Route(
            method="GET", path=path, handler=document, public=True, produces=html, tag="pages",
            summary="A page", hidden=True, responses={200: {"type": "string"}},
        )
        for path in paths
    ]  # fmt: skip
    for path, handler in (("/static/{name}", file), ("/static/pages/{name}", page_file)):
        found.append(
            Route(
                method="GET", path=path, handler=handler, public=True, produces=("*/*",),
                tag="pages", summary="A file of the pages", hidden=True,
                responses={200: {"type": "string"}},
            )
        )  # fmt: skip
    return found
