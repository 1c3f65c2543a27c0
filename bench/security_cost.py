"""What ACLs and the audit log cost a request, in instructions (`hot_path.py`):
`python -m bench.security_cost`."""

from __future__ import annotations

from bench.hot_path import instructions


def main() -> None:
    print("request              no authorizer        ACLs   of none     audited   of ACLs")
    for kind in ("produce", "fetch"):
        none, acls, audit = (instructions(kind, each, 100) for each in ("bare", "acls", "audit"))
        print(
            f"{f'{kind}, 100 B':<18} {none:>15,.0f} {acls:>11,.0f} {acls / none:>9.3f}"
            f" {audit:>11,.0f} {audit / acls:>9.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
