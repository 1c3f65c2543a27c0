"""The interpreter of a topology: pure, record by record. Hosts give it time, input and output."""
