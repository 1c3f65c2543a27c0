"""The planner of `moldau balance`: `python -m bench.balance [--brokers 1002 --partitions 100000]`.

- `large`: a made-up cluster in three racks, sizes and traffic log-normal, most replicas on the
  first brokers. Printed: CPU seconds, how even it gets, and the bytes to copy as a multiple of the
  surplus that must leave its broker in any plan.
- `exact`: small clusters, beside a solver that tries all placements: how often the plan is as even
  as any can be, and its bytes as a multiple of the least with which that is possible.

The planner uses no randomness; only the CPU seconds differ between runs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from moldau.balance.machine.model import Broker, Cluster, Partition, Plan, Resource
from moldau.balance.machine.planner import TOLERANCE, plan

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support import balance as checks

RESULTS = Path(__file__).parent / "results"
RACKS = 3
SHAPES = ((2, 7, 1), (3, 6, 1), (3, 4, 2), (2, 6, 2), (4, 5, 1))


def made(brokers: int, partitions: int, seed: int) -> Cluster:
    """One replica in each of three racks, most of them on the first brokers."""
    draw = random.Random(seed)
    of_rack = brokers // RACKS
    found = []
    for number in range(partitions):
        places = [rack + RACKS * int(of_rack * draw.random() ** 1.5) for rack in range(RACKS)]
        draw.shuffle(places)
        into = draw.lognormvariate(0, 0.5) * 1e6
        size = draw.lognormvariate(0, 0.5) * 1e9
        out = into * draw.choice((1, 2))
        found.append(Partition("t", number, tuple(places), size, into, out))
    listed = [Broker(each, f"rack-{each % RACKS}") for each in range(of_rack * RACKS)]
    return Cluster(listed, found)


def large(brokers: int, partitions: int, seed: int) -> dict[str, Any]:
    cluster = made(brokers, partitions, seed)
    began = time.process_time()
    planned = plan(cluster)
    took = time.process_time() - began
    after = list(planned.after.values())
    shares = {}
    for resource in Resource:
        even = sum(load[resource] for load in after) / len(after)
        if even:
            loads = [load[resource] / even for load in after]
            shares[resource.label] = (round(max(loads), 3), round(min(loads), 3))
    return {
        "brokers": len(cluster.brokers),
        "partitions": len(cluster.partitions),
        "cpu_s": took,
        "steps": planned.steps,
        "changes": len(planned.reassignments),
        "bytes_per_surplus": planned.bytes_moved / max(1.0, _surplus(planned)),
        "most_before": max(_relative(planned.before)),
        "most_and_least_after": shares,
        "unmet": len(planned.unmet),
    }


def _relative(loads: Any) -> list[float]:
    disks = [load[Resource.DISK] for load in loads.values()]
    return [each * len(disks) / sum(disks) for each in disks]


def _surplus(planned: Plan) -> float:
    """What is above the band of its broker has to move, whatever the plan."""
    disks = [load[Resource.DISK] for load in planned.before.values()]
    high = sum(disks) / len(disks) * (1 + TOLERANCE)
    return sum(max(0.0, each - high) for each in disks)


def exact(seeds: int) -> dict[str, Any]:
    ratios, best = [], 0
    for shape in SHAPES:
        for seed in range(seeds):
            cluster = checks.made(*shape, seed)
            planned = plan(cluster)
            off_least, bytes_least = checks.exact(cluster)
            off = checks.outside(checks.carried_out(cluster, planned))
            best += off <= off_least + 1e-6
            if bytes_least:
                ratios.append(planned.bytes_moved / bytes_least)
    return {
        "clusters": seeds * len(SHAPES),
        "as_even_as_possible": best,
        "bytes_mean": statistics.fmean(ratios),
        "bytes_most": max(ratios),
        "bytes_least_exactly": sum(each <= 1 + 1e-9 for each in ratios),
        "with_bytes": len(ratios),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--brokers", type=int, default=1002)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=20, help="small clusters of each shape")
    parser.add_argument("--parts", default="large,exact", help="comma-separated (default: all)")
    given = parser.parse_args()
    found: dict[str, Any] = {"load_average": os.getloadavg()}
    if "exact" in given.parts:
        found["exact"] = exact(given.seeds)
        print(json.dumps(found["exact"], indent=1), flush=True)
    if "large" in given.parts:
        found["large"] = large(given.brokers, given.partitions, given.seed)
        print(json.dumps(found["large"], indent=1), flush=True)
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    (RESULTS / f"{stamp}-balance.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
