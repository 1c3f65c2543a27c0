"""The live view: how a moment of the demo looks, made for a terminal of 100 x 30.

Pure: a `Moment` in, something for rich to print out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from orders.demo.checks import Check, Revenue
from orders.model import FAILED, VALIDATED

__all__ = ["Moment", "PipelineSeen", "check_list", "line", "view"]

_BAR: Final = 24
_MINUTES: Final = 5
_MAILS: Final = 4
_STATE_STYLES: Final = {"waiting": "yellow", VALIDATED: "green", FAILED: "red"}


@dataclass(frozen=True, slots=True)
class PipelineSeen:
    name: str
    state: str
    lag: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    title: str
    phase: str
    #: 0 to 1, of the time in which orders are made.
    progress: float
    posted: int
    repeated: int
    created: int
    states: Mapping[str, int]
    emails: int
    posted_rate: float
    final_rate: float
    #: Seconds to the final state, sorted.
    latencies: Sequence[float]
    lags: Mapping[str, int]
    pipelines: Sequence[PipelineSeen]
    #: By Spark, None without it; and as counted by the view from the orders.
    revenue: Revenue | None
    counted: Revenue
    mails: Sequence[str]
    kills: Sequence[str] = ()

    @property
    def waiting(self) -> int:
        return max(0, self.created - sum(self.states.values()))


def view(moment: Moment) -> RenderableType:
    columns = Table.grid(expand=True, padding=(0, 1))
    columns.add_column(ratio=1)
    columns.add_column(ratio=1)
    columns.add_row(Group(_orders(moment), _revenue(moment)), _lags(moment))
    return Group(_head(moment), columns, _mails(moment))


def _head(moment: Moment) -> RenderableType:
    head = Table.grid(expand=True)
    head.add_column(ratio=1)
    head.add_column(justify="right")
    done = round(moment.progress * _BAR)
    bar = Text("━" * done, style="cyan") + Text("━" * (_BAR - done), style="bright_black")
    head.add_row(Text(moment.title, style="bold"), bar)
    head.add_row(Text(moment.phase, style="cyan"), Text(", ".join(moment.kills[-2:]), style="red"))
    return head


def _orders(moment: Moment) -> RenderableType:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(width=10)
    table.add_column(width=7, justify="right")
    table.add_column(ratio=1)
    counts = {"waiting": moment.waiting, **{each: moment.states.get(each, 0)
                                            for each in (VALIDATED, FAILED)}}  # fmt: skip
    for name, count in counts.items():
        style = _STATE_STYLES[name]
        share = count / moment.created if moment.created else 0.0
        bar = "█" * round(share * 20) or ("▏" if count else "")
        table.add_row(Text(name.lower(), style=style), f"{count:,}", Text(bar, style=style))
    facts = Text.assemble(
        ("posted ", "bright_black"), f"{moment.posted_rate:.0f}/s",
        ("  done ", "bright_black"), f"{moment.final_rate:.0f}/s",
        ("  emailed ", "bright_black"), f"{moment.emails:,}",
    )  # fmt: skip
    more = Text.assemble(
        f"{moment.created:,}", (" orders, ", "bright_black"),
        f"{moment.repeated:,}", (" of them posted again", "bright_black"),
    )  # fmt: skip
    took = Text.assemble(("to the end in ", "bright_black"), _latency(moment.latencies))
    return _panel("orders", Group(table, more, facts, took))


def _latency(latencies: Sequence[float]) -> str:
    if not latencies:
        return "-"
    middle, slow = (latencies[round((len(latencies) - 1) * share)] for share in (0.5, 0.95))
    return f"{middle:.1f} s, and 95 % within {slow:.1f} s"


def _revenue(moment: Moment) -> RenderableType:
    shown = moment.counted if moment.revenue is None else moment.revenue
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(width=5)
    table.add_column(width=6, justify="right")
    table.add_column(width=11, justify="right")
    table.add_column(ratio=1)
    minutes = sorted({*shown, *moment.counted})[-_MINUTES:]
    most = max((cents for _, cents in moment.counted.values()), default=0)
    for minute in minutes:
        orders, cents = shown.get(minute, (0, 0))
        behind = moment.counted.get(minute, (0, 0))[1] - cents
        bar = Text("█" * _part(cents, most, 16), style="green")
        # What the pipeline has not counted yet.
        bar += Text("░" * _part(behind, most, 16), style="bright_black")
        table.add_row(minute[11:16], f"{orders:,}", f"{cents / 100:,.2f}", bar)
    for _ in range(_MINUTES - len(minutes)):
        table.add_row("", "", "", "")
    by = "counted here" if moment.revenue is None else "by Spark"
    return _panel(f"revenue per minute, {by}", table)


def _part(cents: int, most: int, width: int) -> int:
    return round(max(0, cents) / most * width) if most else 0


def _lags(moment: Moment) -> RenderableType:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1)
    table.add_column(width=9, justify="right")
    table.add_column(width=9, justify="right")
    table.add_row(*(Text(each, style="bright_black") for each in ("group", "", "lag")))
    for name, lag in moment.lags.items():
        table.add_row(name, "", _lag(lag))
    if moment.pipelines:
        table.add_row(*(Text(each, style="bright_black") for each in ("pipeline", "", "")))
    for each in moment.pipelines:
        style = {"running": "green", "failed": "red"}.get(each.state, "yellow")
        table.add_row(each.name, Text(each.state, style=style), _lag(each.lag))
        if each.error:
            table.add_row(Text(each.error, style="red", overflow="ellipsis", no_wrap=True), "", "")
    return _panel("behind", table)


def _lag(lag: int | None) -> Text:
    if lag is None:
        return Text("-", style="bright_black")
    return Text(f"{lag:,}", style="green" if lag < 100 else "yellow" if lag < 1000 else "red")


def _mails(moment: Moment) -> RenderableType:
    text = Text(no_wrap=True, overflow="ellipsis")
    shown = list(moment.mails)[-_MAILS:]
    for mail in [*shown, *[""] * (_MAILS - len(shown))]:
        style = "red" if "could not" in mail else ""
        text.append(mail + "\n", style=style)
    text.right_crop(1)
    return _panel("last e-mails", text)


def _panel(title: str, content: RenderableType) -> Panel:
    return Panel(
        content, title=title, title_align="left", box=box.ROUNDED, border_style="bright_black"
    )


def line(moment: Moment) -> str:
    """For where there is no terminal."""
    states = ", ".join(f"{count} {name.lower()}" for name, count in sorted(moment.states.items()))
    lag = max(moment.lags.values(), default=0)
    pipelines = "".join(f", {each.name} {each.state}" for each in moment.pipelines)
    return (
        f"{moment.phase}: {moment.created} orders, {states or 'none done'}, {moment.waiting} "
        f"waiting, {moment.emails} e-mails, lag at most {lag}{pipelines}"
    )


def check_list(checks: Sequence[Check]) -> RenderableType:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(width=1)
    table.add_column()
    table.add_column(style="bright_black", overflow="fold")
    for check in checks:
        mark = Text("✓", style="green") if check.passed else Text("✗", style="bold red")
        text = Text(check.text, style="" if check.passed else "bold red")
        table.add_row(mark, text, check.detail)
    return table
