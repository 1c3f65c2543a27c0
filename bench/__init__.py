"""Benchmarks: Moldau beside Apache Kafka and beside the machine's own limits, in one run."""
