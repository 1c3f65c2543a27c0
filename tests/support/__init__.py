"""What several tests share: servers in processes of their own, and raw requests."""
