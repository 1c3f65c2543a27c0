"""MirrorMaker 2's three connectors, on the engine of `moldau.mirror`."""
