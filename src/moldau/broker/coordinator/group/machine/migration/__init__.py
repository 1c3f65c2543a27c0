"""Members of the classic protocol in consumer groups, and groups that change their kind.

A group moves from one protocol to the other while it runs: clients are restarted one by one with
the other protocol. The first member of the new protocol converts a classic group into a consumer
group (`upgrade`), in which members of the old protocol continue (`classic_members`); when the last
member of the new protocol is gone, it is converted back (`downgrade`).

The shard calls, in this order of lookup:

- A heartbeat to the id of a classic group: `OnlineMigration.upgrade`, which the section of consumer
  groups gets when it is built.
- JoinGroup to a consumer group with members: `ClassicMembers.join`; to one without members:
  `downgrade.release_empty`, and then the classic machine as for a new group.
- SyncGroup, Heartbeat, LeaveGroup to a consumer group: the methods of `ClassicMembers`.
- Members are about to be removed from a consumer group, for any reason:
  `OnlineMigration.downgrade`, which the section of consumer groups calls.
- `on_written` with a `Downgraded`: `downgrade.on_downgraded`.
"""
