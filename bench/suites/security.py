"""What an authorizer, an audit log and TLS cost."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from bench import acls as acl_work
from bench import permissions as permission_work
from bench import servers
from bench import tls as tls_work
from bench.run import Row, Run
from bench.servers import Server


def acls(run: Run) -> None:
    """Small produce and fetch without an authorizer and with 1,000 and 10,000 ACLs, in turns."""
    found: dict[str, permission_work.Ratios] = {}
    for broker, counts in zip(run.brokers(), ((0, 1_000, 10_000), (0, 10_000)), strict=False):
        with ExitStack() as running:
            measured: dict[str, Server] = {}
            for number in counts:
                server = running.enter_context(
                    partial(broker, *acl_work.SETTINGS)() if number else broker()
                )
                permission_work.prepare(server)
                if number:
                    acl_work.create(
                        server.bootstrap, number, permission_work.TOPIC, permission_work.MANY
                    )
                measured[str(number)] = server
            # Of Kafka only its round trips are shown.
            rounds = permission_work.ROUNDS if server.name == "moldau" else 9
            found[server.name] = permission_work.measure(
                measured, none="0", scale=run.scale, rounds=rounds
            )
    for number in (1_000, 10_000):
        kafkas = found.get("kafka", {}).get(str(number), {})
        for name, (what, unit) in permission_work.FIGURES.items():
            value, none = found["moldau"][str(number)][name]
            kafka = None if "cpu" in name or name not in kafkas else kafkas[name][0]
            run.rows.append(
                Row(f"{what} with {number:,} ACLs", unit, value, kafka, none, "<= 1.03 of none")
            )


def audit(run: Run) -> None:
    """Small produce and fetch with ACLs, and with an audit log of everything beside them."""
    with ExitStack() as running:
        folder = running.enter_context(servers.scratch_folder())
        measured: dict[str, Server] = {}
        for name, settings in (
            ("none", ()),
            ("audit", (f"moldau.audit.file={folder / 'audit.jsonl'}",)),
        ):
            server = running.enter_context(servers.moldau(*acl_work.SETTINGS, *settings))
            permission_work.prepare(server)
            acl_work.create(server.bootstrap, 1_000, permission_work.TOPIC, permission_work.MANY)
            measured[name] = server
        found = permission_work.measure(measured, none="none", scale=run.scale)
    for name, (what, unit) in permission_work.FIGURES.items():
        value, none = found["audit"][name]
        run.rows.append(Row(f"{what}, audited", unit, value, None, none, "<= 1.05 of none"))


def tls(run: Run) -> None:
    """Produce, fetch, latency and handshakes over SSL, beside PLAINTEXT; all servers in turns."""
    with ExitStack() as running:
        folder = running.enter_context(servers.scratch_folder())
        certificates = tls_work.Certificates(folder)
        measured: dict[str, Server] = {}
        for broker in run.brokers():
            server = running.enter_context(broker())
            measured[f"{server.name} PLAINTEXT"] = server
        for broker in run.brokers(*certificates.overrides):
            server = running.enter_context(broker())
            measured[f"{server.name} SSL"] = replace(server, ca=str(certificates.certificate))
        found = tls_work.measure(measured, run.scale)
    for protocol in ("SSL", "PLAINTEXT"):
        ours, kafkas = found[f"moldau {protocol}"], found.get(f"kafka {protocol}", {})
        for name, (what, unit, aim) in tls_work.FIGURES.items():
            if name in ours:
                limit = found["moldau PLAINTEXT"].get(name) if protocol == "SSL" else None
                run.rows.append(
                    Row(
                        f"{what}, {protocol}",
                        unit,
                        ours[name],
                        kafkas.get(name),
                        limit,
                        aim if protocol == "SSL" else "",
                    )
                )
