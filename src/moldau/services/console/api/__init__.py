"""The JSON API, one module per section; the pages use nothing else."""
