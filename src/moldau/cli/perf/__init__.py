"""Commands that measure throughput and latency."""
