"""The suites of `python -m bench`: each measures and appends its rows to the run."""
