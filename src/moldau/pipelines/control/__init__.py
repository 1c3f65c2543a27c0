"""The loop that keeps pipelines as their users want them.

| where | what |
|---|---|
| `records.py` | what the registry holds of a pipeline: its definition, its status; pure |
| `events.py`, `decisions.py` | what happens; what to do about it, and when; pure |
| `progress.py` | what a query's progress says: rates, lag, offsets to mirror; pure |
| `backlog.py` | how much of a backlog is done, and how long the rest takes; pure |
| `queries.py` | acts on Spark: sessions, queries, progress |
| `shell.py`, `workers.py` | one thread that owns the decisions, and workers that act |
| `logs.py`, `folder.py` | what a deployment folder holds: logs, lock, heartbeat |

Invariants: a pipeline's queries are started only when none of it can still run, because
its session, written down before they started, has been closed or has gone with its server. Users
write definitions and the loop writes statuses, under keys of their own: neither loses the other's.
"""
