"""The decisions of one node of the metadata quorum: `machine.py` is where to begin."""
