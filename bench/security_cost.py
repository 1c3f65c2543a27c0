"""What ACLs and the audit log cost a request (`hot_path.py`): `python -m bench.security_cost`.

In CPU time of one process, in which all variants take turns: two processes that do the same differ
by more than what is measured here. Then in instructions, which do not depend on what else the
machine does but take minutes; `--times` leaves them out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

from bench.hot_path import ROOT, exchanges, instructions

VARIANTS = ("bare", "acls", "audit")
ROUNDS = 301
REQUESTS_PER_ROUND = 100


def times(kind: str) -> tuple[float, float]:
    """The medians of single rounds: with ACLs, of none; audited, of ACLs."""
    measured = {variant: exchanges(kind, variant, 100) for variant in VARIANTS}
    for exchange in measured.values():
        _seconds(exchange)
    ratios: list[tuple[float, float]] = []
    for number in range(ROUNDS):
        order = VARIANTS if number % 2 else VARIANTS[::-1]
        seconds = {variant: _seconds(measured[variant]) for variant in order}
        ratios.append((seconds["acls"] / seconds["bare"], seconds["audit"] / seconds["acls"]))
    return median(each[0] for each in ratios), median(each[1] for each in ratios)


def _seconds(exchange: Callable[[], int]) -> float:
    started = time.thread_time()
    for _ in range(REQUESTS_PER_ROUND):
        exchange()
    return time.thread_time() - started


def main() -> None:
    sys.path.append(str(ROOT / "tests"))
    print("CPU time               ACLs, of none    audited, of ACLs")
    for kind in ("produce", "fetch"):
        acls, audit = times(kind)
        print(f"{f'{kind}, 100 B':<18} {acls:>17.3f} {audit:>19.3f}", flush=True)
    if "--times" in sys.argv:
        return
    print("instructions         no authorizer        ACLs   of none     audited   of ACLs")
    for kind in ("produce", "fetch"):
        none, acls, audit = (instructions(kind, each, 100) for each in VARIANTS)
        print(
            f"{f'{kind}, 100 B':<18} {none:>15,.0f} {acls:>11,.0f} {acls / none:>9.3f}"
            f" {audit:>11,.0f} {audit / acls:>9.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
