"""`python -m moldau.sim`: run many seeds, or replay one and print every step."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.progress import Progress

from moldau.sim.runner import SCENARIOS, Outcome, Summary, run_seed, run_seeds


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    if options.seed is not None:
        return _replay(options.seed, options.scenario, console)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    summary = Summary()
    began = time.monotonic()
    outcomes = run_seeds(seeds, jobs=options.jobs, scenario=options.scenario)
    for outcome in _with_progress(outcomes, len(seeds), console):
        summary.add(outcome)
        if outcome.invariant is not None:
            _report_failure(outcome, options.scenario, console)
    _report(summary, time.monotonic() - began, console)
    return 1 if summary.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m moldau.sim",
        description="Run logs, brokers, quorums and clusters in virtual time on disks and a network"
        " that fail, seed by seed, and check the invariants after every step.",
    )
    parser.add_argument("--seeds", type=_count, default=200, help="how many seeds (200)")
    parser.add_argument("--first-seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seed", type=int, help="run only this seed, and print every step")
    parser.add_argument(
        "--scenario", choices=sorted(SCENARIOS), help="run only this one (default: by the seed)"
    )
    parser.add_argument(
        "--jobs",
        type=_count,
        default=os.cpu_count() or 1,
        help="processes to use (one for each core)",
    )
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _replay(seed: int, scenario: str | None, console: Console) -> int:
    outcome = run_seed(seed, lambda line: console.print(line, markup=False), scenario=scenario)
    _report_faults(outcome.faults, console)
    if outcome.invariant is None:
        console.print(f"seed {seed}: every invariant held in {outcome.steps} steps")
        return 0
    console.print(f"seed {seed}: VIOLATED: {outcome.invariant}", markup=False)
    return 1


def _with_progress(outcomes: Iterable[Outcome], count: int, console: Console) -> Iterator[Outcome]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stdout.isatty():
        yield from outcomes
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("simulating", total=count)
        for outcome in outcomes:
            progress.advance(task)
            yield outcome


def _report_failure(outcome: Outcome, scenario: str | None, console: Console) -> None:
    console.print(f"\nseed {outcome.seed}: VIOLATED: {outcome.invariant}", markup=False)
    console.print(f"  {outcome.detail}", markup=False)
    console.print(f"  the last {len(outcome.last_steps)} lines of {outcome.steps} steps:")
    for line in outcome.last_steps:
        console.print(f"    {line}", markup=False)
    again = f"--seed {outcome.seed}" + (f" --scenario {scenario}" if scenario else "")
    console.print(f"  replay: python -m moldau.sim {again}\n", markup=False)


def _report(summary: Summary, seconds: float, console: Console) -> None:
    console.print(
        f"{summary.seeds} seeds in {seconds:.1f} s"
        f" ({summary.seeds / max(seconds, 1e-9) * 60:.0f} per minute),"
        f" {summary.steps} steps, {summary.virtual_s / 3600:.1f} virtual hours"
    )
    _report_faults(summary.faults, console)
    if summary.failures:
        seeds = ", ".join(str(outcome.seed) for outcome in summary.failures[:20])
        console.print(f"VIOLATED in {len(summary.failures)} of {summary.seeds} seeds: {seeds}")
    else:
        console.print("every invariant held")


def _report_faults(faults: dict[str, int], console: Console) -> None:
    shown = ", ".join(f"{count} x {kind}" for kind, count in sorted(faults.items()))
    console.print(f"faults: {shown or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
