"""Pushing a client's metrics to the cluster, where it asks for them (KIP-714)."""

from moldau.client.telemetry.reporter import TelemetryReporter as TelemetryReporter
