"""Which statement each record needs."""
