"""Copies topics, groups and settings between clusters, in the formats of MirrorMaker 2."""
