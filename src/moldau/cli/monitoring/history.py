"""`moldau metrics history`: readings from the topic `__moldau_metrics`."""

from __future__ import annotations

import argparse
from datetime import datetime

from moldau.cli.support.client_options import client_config
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import Failure
from moldau.cli.support.tables import print_json

__all__ = ["print_history"]


def print_history(arguments: argparse.Namespace) -> int:
    from moldau.client.errors import KafkaError
    from moldau.metrics.history import TOPIC
    from moldau.monitoring.history import read_history

    config = client_config(arguments)
    wait_until_reachable(config)
    try:
        readings = read_history(config)
    except KafkaError as error:
        raise Failure(
            f"{TOPIC}: {error}. Brokers with moldau.metrics.history.interval.ms write it, and "
            "`moldau monitor` if its file has history"
        ) from None
    words = [word.lower() for word in arguments.words]
    chosen = [
        {
            **each,
            "values": {
                name: value
                for name, value in each["values"].items()
                if all(word in name.lower() for word in words)
            },
        }
        for each in readings
    ]
    if arguments.json:
        print_json(chosen)
        return 0
    for each in chosen:
        at = datetime.fromtimestamp(each["time"]).astimezone().isoformat(timespec="seconds")
        for name, value in each["values"].items():
            print(f"{at} {each['node']} {name} {value:g}")
    return 0
