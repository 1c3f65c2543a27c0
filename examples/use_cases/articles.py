"""Articles: a crawler reads a feed; topics clean, deduplicate and match what it finds to users.

The feed is a server of this program, which lists articles twice and with tracking parameters.
"""

import html
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit, urlunsplit

from stage import Stage

from moldau.streams import Materialized, StreamsBuilder, Topology

WORDS = ("Kafka", "Python", "rivers", "bridges", "maps")
INTERESTS = {"anna": ["kafka", "maps"], "ben": ["rivers"], "carl": ["opera"]}
TAG, SPACE = re.compile(r"<[^>]+>"), re.compile(r"\s+")


def normalise(article: dict[str, str]) -> dict[str, object]:
    address = urlsplit(article["url"])
    text = SPACE.sub(" ", html.unescape(TAG.sub(" ", article["body"]))).strip()
    words = sorted(set(re.findall(r"\w+", text.lower())))
    return {
        "url": urlunsplit(
            (address.scheme, address.netloc.lower(), address.path.rstrip("/"), "", "")
        ),
        "text": text,
        "words": words,
    }


def match(url: str, article: dict) -> list[tuple[str, dict[str, str]]]:
    return [
        (user, {"url": url, "because": ", ".join(common)})
        for user, interests in INTERESTS.items()
        if (common := [word for word in interests if word in article["words"]])
    ]


def build() -> Topology:
    builder = StreamsBuilder()
    cleaned = (
        builder.stream("crawled", value_serde="json")
        .map_values(normalise)
        .select_key(lambda _, article: article["url"])
    )
    (
        # The first of a key passes: the others are the same article under other addresses.
        cleaned.group_by_key(key_serde="string", value_serde="json")
        .aggregate(
            lambda: {"seen": 0},
            lambda url, article, before: {"seen": before["seen"] + 1, "article": article},
            store=Materialized(name="articles", value_serde="json", caching=False),
        )
        .to_stream()
        .filter(lambda url, each: each["seen"] == 1)
        .map_values(lambda each: each["article"])
        .to("articles", key_serde="string", value_serde="json")
    )
    (
        builder.stream("articles", key_serde="string", value_serde="json")
        .flat_map(match)
        .to("for-users", key_serde="string", value_serde="json")
    )
    return builder.build()


with Stage(__doc__) as stage:
    count = 10 if stage.short else 200
    feed = []
    for number in range(count):
        word = WORDS[number % len(WORDS)]
        body = f"<p>About  <b>{word}</b> &amp; more</p>"
        for address in (
            f"http://News.example/{number}?utm_source=feed",
            f"http://news.example/{number}/",
        ):
            feed.append({"id": len(feed) + 1, "url": address, "body": body})

    class Feed(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            since = int(self.path.rpartition("=")[2] or 0)
            page = json.dumps([each for each in feed if each["id"] > since][:20]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Feed)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    stage.topics("crawled", "articles", "for-users")
    stage.streams(build(), "articles")
    stage.connector(
        stage.service("connect"),
        "crawler",
        **{
            "connector.class": "HttpSource",
            "http.request.url": f"http://127.0.0.1:{site.server_port}/feed?since=${{offset}}",
            "http.offset.initial": "0",
            "http.response.record.offset.pointer": "/id",
            "http.timer.interval.millis": "100",
            "kafka.topic": "crawled",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        },
    )
    stage.until_records("crawled", 2 * count)
    matched = sum(word.lower() in ("kafka", "maps", "rivers") for word in WORDS)
    stage.until_records("for-users", count // len(WORDS) * matched)
    articles, mail = dict(stage.read("articles")), stage.read("for-users")
    stage.fact("crawled", lambda: len(feed))
    stage.fact("articles", lambda: len(articles))
    stage.fact("recommended", lambda: len(mail))
    stage.check("each article is there once", len(articles) == count)
    stage.check(
        "its text is clean", articles["http://news.example/0"]["text"] == "About Kafka & more"
    )
    unique = {(user, each["url"]) for user, each in mail}
    expected = count // len(WORDS) * matched
    stage.check("each recommendation comes once", len(unique) == len(mail) == expected)
    stage.check("it goes to who is interested", {user for user, _ in unique} == {"anna", "ben"})
    site.shutdown()
