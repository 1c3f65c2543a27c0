"""The log simulated: real logs and folders, a plain model of them, and what must hold."""
