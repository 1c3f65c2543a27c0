"""What metrics cost a request, in instructions (`hot_path.py`): `python -m bench.metrics_cost`."""

from __future__ import annotations

from bench.hot_path import instructions


def main() -> None:
    print("request            without metrics   with metrics   metrics")
    for kind, batch_size in (("produce", 100), ("produce", 16_000), ("fetch", 16_000)):
        without = instructions(kind, "bare", batch_size)
        counted = instructions(kind, "metrics", batch_size)
        share = (counted - without) / counted
        name = f"{kind}, {batch_size} B"
        print(f"{name:<18} {without:>16,.0f} {counted:>14,.0f} {share:>9.1%}", flush=True)


if __name__ == "__main__":
    main()
