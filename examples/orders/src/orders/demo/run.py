"""The demo from beginning to end: set up, run, drain, check, clean up."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

from orders.demo import facts, screen
from orders.demo.checks import check_all
from orders.demo.pipelines import Pipelines
from orders.demo.screen import Moment
from orders.demo.stage import Stage, StageError
from orders.demo.tables import Database, reachable
from orders.demo.watch import Watcher
from orders.generator import Settings
from orders.load import Load, seed_tables

__all__ = ["Demo", "Options"]

_DRAIN_S_MAX: Final = 180.0
_SETTLE_S_MAX: Final = 5.0
_REFRESH_S: Final = 0.25
_LINE_EVERY_S: Final = 5.0
_RATE_OVER_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    settings: Settings
    seconds: float
    folder: Path
    bootstrap_servers: str | None = None
    with_spark: bool = True
    connector: str = "auto"
    database: str | None = None
    chaos_s: float | None = None
    plain: bool = False


class Demo:
    def __init__(self, options: Options, console: Console) -> None:
        self._options = options
        self._console = console
        self._kills: list[str] = []
        self._samples: deque[tuple[float, int, int]] = deque()
        self._pipelines: Pipelines | None = None

    def run(self) -> bool:
        """Whether every check passed."""
        options = self._options
        with ExitStack() as closing, self._ending():
            self._stage = closing.enter_context(Stage(options.folder, options.bootstrap_servers))
            self._set_up(closing)
            self._watcher = Watcher(self._stage.bootstrap_servers)
            closing.callback(self._watcher.stop)
            self._watcher.start()
            with self._shown() as show:
                self._make_orders(show)
                self._drain(show)
            self._console.print("Reading everything again from the beginning ...")
            return self._check()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """What follows in `run` is clean-up: it takes its time, and is not to be interrupted."""
        try:
            yield
        except KeyboardInterrupt:
            self._say("Ending everything that was started ...")
            raise
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _set_up(self, closing: ExitStack) -> None:
        options, stage = self._options, self._stage
        began = time.monotonic()
        self._say("Starting a broker ..." if not options.bootstrap_servers else "Making topics ...")
        stage.start_broker()
        seed_tables(stage.bootstrap_servers, options.settings)
        self._say("Starting the services ...")
        stage.start_services()
        self._load = Load(stage.url, options.settings)
        self._load.post_first()
        if options.with_spark:
            self._pipelines = Pipelines(
                options.folder / "spark", stage.bootstrap_servers, self._database(),
                parquet=options.folder / "orders.parquet", connector=options.connector,
            )  # fmt: skip
            closing.callback(self._pipelines.stop)
            self._say("Starting Spark and the pipelines, which takes a while ...")
            self._pipelines.start(stage.check)
        self._say(f"All is up after {time.monotonic() - began:.0f} s: {stage.url}/v1/orders")

    def _database(self) -> Database:
        address = self._options.database
        if address is not None:
            why_not = reachable(address)
            if why_not is None:
                return Database(address)
            self._say(f"[yellow]PostgreSQL cannot be used, SQLite is: {why_not}")
        return Database(self._options.folder / "orders.sqlite")

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    # While it runs.

    def _make_orders(self, show: Callable[[str, float], None]) -> None:
        seconds = self._options.seconds
        failures: list[BaseException] = []

        def work() -> None:
            try:
                self._load.run(seconds)
            except BaseException as error:
                failures.append(error)

        sender = threading.Thread(target=work, name="load")
        began = time.monotonic()
        next_kill = began + (self._options.chaos_s or float("inf"))
        sender.start()
        try:
            while sender.is_alive():
                elapsed = time.monotonic() - began
                show(f"making orders, {min(elapsed, seconds):.0f} of {seconds:.0f} s",
                     min(1.0, elapsed / seconds))  # fmt: skip
                self._stage.check()
                if self._options.chaos_s and time.monotonic() >= next_kill:
                    self._kills.append(f"killed {self._stage.kill_next()}")
                    next_kill += self._options.chaos_s
                sender.join(_REFRESH_S)
        finally:
            self._load.stop()
            sender.join()
        if failures:
            raise failures[0]
        unanswered = self._load.counts["unanswered"] + self._load.counts["refused"]
        if unanswered:
            raise StageError(
                f"{unanswered} orders were not accepted, see {self._stage.log('orders')}"
            )

    def _drain(self, show: Callable[[str, float], None]) -> None:
        """Until all work is done, or time is over: the checks show which."""
        deadline = time.monotonic() + _DRAIN_S_MAX
        while not self._is_drained() and time.monotonic() < deadline:
            show("no more orders, waiting for the last ones", 1.0)
            self._stage.check()
            time.sleep(_REFRESH_S)
        # All is done; the groups' offsets follow within a moment, and the last picture shows it.
        deadline = time.monotonic() + _SETTLE_S_MAX
        while any(self._watcher.seen.lags.values()) and time.monotonic() < deadline:
            show("all orders are done", 1.0)
            time.sleep(_REFRESH_S)
        show("done", 1.0)

    def _is_drained(self) -> bool:
        with self._watcher.lock:
            seen = self._watcher.seen
            posted = len(self._load.posted)
            if not posted <= seen.created == seen.finals == seen.emails:
                return False
            counted, revenue = dict(seen.counted), dict(seen.revenue)
        letters = sum(1 for _ in self._stage.mailbox.glob("*.eml"))
        if letters < seen.created:
            return False
        if self._pipelines is None:
            return True
        return revenue == counted and self._pipelines.rows() >= seen.created

    @contextmanager
    def _shown(self) -> Iterator[Callable[[str, float], None]]:
        if self._options.plain or not self._console.is_terminal:
            yield self._show_lines()
            return
        with Live(console=self._console, auto_refresh=False) as live:
            yield lambda phase, progress: live.update(
                screen.view(self._moment(phase, progress)), refresh=True
            )

    def _show_lines(self) -> Callable[[str, float], None]:
        last = -_LINE_EVERY_S

        def show(phase: str, progress: float) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _LINE_EVERY_S or phase == "done":
                last = now
                self._say(screen.line(self._moment(phase, progress)))

        return show

    def _moment(self, phase: str, progress: float) -> Moment:
        options = self._options
        broker = "Apache Kafka or another cluster" if options.bootstrap_servers else "Moldau"
        posted = sum(self._load.counts[each] for each in ("created", "repeated"))
        pipelines = self._pipelines.seen() if self._pipelines else ()
        with self._watcher.lock:
            seen = self._watcher.seen
            posted_rate, final_rate = self._rates(posted, seen.finals)
            return Moment(
                title=f"Orders on {broker}, {options.settings.rate:g} per second, "
                f"{options.settings.disorder:.0%} in disorder",
                phase=phase,
                progress=progress,
                posted=posted,
                repeated=self._load.counts["repeated"],
                created=seen.created,
                states=dict(seen.states),
                emails=seen.emails,
                posted_rate=posted_rate,
                final_rate=final_rate,
                latencies=sorted(seen.latencies),
                lags=dict(seen.lags),
                pipelines=pipelines,
                revenue=dict(seen.revenue) if self._pipelines else None,
                counted=dict(seen.counted),
                mails=list(seen.mails),
                kills=self._kills,
            )

    def _rates(self, posted: int, finals: int) -> tuple[float, float]:
        now = time.monotonic()
        self._samples.append((now, posted, finals))
        while self._samples[0][0] < now - _RATE_OVER_S:
            self._samples.popleft()
        since, posted_then, finals_then = self._samples[0]
        seconds = max(now - since, _REFRESH_S)
        return (posted - posted_then) / seconds, (finals - finals_then) / seconds

    # When it is over.

    def _check(self) -> bool:
        pipelines = self._pipelines
        found = facts.collect(
            self._stage.bootstrap_servers,
            posted=self._load.posted,
            url=self._stage.url,
            mailbox=self._stage.mailbox,
            tables=pipelines.tables() if pipelines else {},
            with_revenue=pipelines is not None,
        )
        checks = check_all(found)
        self._console.print(screen.check_list(checks))
        passed = all(check.passed for check in checks)
        counts = self._load.counts
        self._say(
            f"{len(found.posted)} orders, {counts['late']} late, {counts['repeated']} posted "
            f"again, {self._stage.kills} services killed: "
            + ("[green]all is well" if passed else "[bold red]something is wrong")
        )
        return passed
