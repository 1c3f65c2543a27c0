"""Watches a cluster from outside: lag, a canary, objectives, alerts; and describes dashboards."""
