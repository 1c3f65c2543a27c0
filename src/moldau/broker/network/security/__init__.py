"""Security of listeners: TLS, and the composition of TLS and SASL for each listener."""
