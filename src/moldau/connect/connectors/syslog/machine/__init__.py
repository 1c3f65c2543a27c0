"""What the syslog source decides: what a message says."""
