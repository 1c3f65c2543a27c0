"""What is read when metrics are collected: partitions, logs, controller, quorum, groups, sockets.

Each module walks one part of the node and yields its values; nothing here runs in between.
"""
