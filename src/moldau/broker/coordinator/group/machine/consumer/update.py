"""What one request of a member does to its group, step by step.

1. The subscription: the member as the request leaves it; what changes the topics of the group
   raises the group epoch, and so does what changed about these topics.
2. The target assignment, if the group is ahead of it, and not more often than the group's
   assignment interval allows.
3. The member's own assignment goes as far towards the target as it can.

Each step writes records and looks at the group as these will have made it. A heartbeat that
brings nothing new falls through all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from moldau.broker.coordinator.group.machine.assignment_interval import may_assign
from moldau.broker.coordinator.group.machine.assignors.interface import (
    GroupSpec,
    MemberSubscription,
)
from moldau.broker.coordinator.group.machine.consumer import records
from moldau.broker.coordinator.group.machine.consumer.context import ConsumerContext
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.member import (
    Assignment,
    ConsumerMember,
    MemberState,
)
from moldau.broker.coordinator.group.machine.consumer.reconciliation import (
    Reconciliation,
    reconcile,
)
from moldau.broker.coordinator.group.machine.consumer.subscriptions import Subscriptions
from moldau.broker.coordinator.group.machine.consumer.timers import MemberRebalanceTimer, RegexTimer
from moldau.broker.coordinator.group.machine.regular_expressions import check_pattern
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.broker.coordinator.machine.topics import TopicFacts
from moldau.broker.coordinator.machine.wall_intervals import is_within

# However often topics and patterns change, all patterns are matched at most this often.
REGEX_REFRESH_INTERVAL_MS_MIN = 10_000


class MemberUpdate:
    def __init__(
        self,
        context: ConsumerContext,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        out: Outbox,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        """`member` is how the group knows it so far: new and empty if it does not.

        `may_describe` says which topics its regular expression may match, None all."""
        self._context = context
        self._group = group
        self._old = member
        self.member = updated
        self._out = out
        self._may_describe = may_describe
        self._group_epoch = group.group_epoch
        self._after: Subscriptions | None = None
        self.subscription_changed = False

    @property
    def group_epoch(self) -> int:
        return self._group_epoch

    # The subscription.

    def write_subscription(self) -> None:
        """Step 1: the member's own record, its regular expression, the group epoch."""
        old, new = self._old, self.member
        names_changed = False
        if new is not old and new != old:
            self._out.write(records.member_record(self._group.group_id, new))
            names_changed = new.subscribed_topic_names != old.subscribed_topic_names
        regex_changed = old.subscribed_topic_regex != new.subscribed_topic_regex
        bump = names_changed
        unresolved = False
        if regex_changed:
            unresolved = self._change_regex()
            bump = bump or self._is_regex_settled()
        self._refresh_regexes(unresolved)
        self.subscription_changed = names_changed or regex_changed
        if bump or self._group.hash_checked_at_version != self._context.topics.version:
            self._refresh_metadata(bump)

    def _change_regex(self) -> bool:
        """Whether the new expression is one that the group does not have yet."""
        counts = self._group.subscriptions.by_regex
        old, new = self._old.subscribed_topic_regex, self.member.subscribed_topic_regex
        if old and counts.get(old) == 1:
            self._out.write(records.regex_tombstone(self._group.group_id, old))
        if not new or new in counts:
            return False
        check_pattern(new)
        return True

    def _is_regex_settled(self) -> bool:
        """Whether a new target can be made now; else it follows when the regex is resolved."""
        if self.member.subscribed_topic_regex:
            subscriptions = self._group.subscriptions
            regex = self.member.subscribed_topic_regex
            return regex in subscriptions.by_regex and regex in subscriptions.resolved
        return bool(self._old.subscribed_topic_regex)

    def _refresh_regexes(self, unresolved: bool) -> None:
        subscriptions = self._group.subscriptions
        if not unresolved and not subscriptions.by_regex:
            return
        resolved = subscriptions.resolved
        # They are always resolved together, so all have the same timestamp.
        last = next(iter(resolved.values()), None)
        now_ms = self._out.now_ms
        if last is not None and is_within(
            since_ms=last.timestamp_ms,
            # Kafka's bound is part of the interval.
            interval_ms=REGEX_REFRESH_INTERVAL_MS_MIN + 1,
            now_ms=now_ms,
        ):
            return
        wanted = self._subscriptions_after().by_regex
        interval_ms = self._context.config.group_consumer_regex_refresh_interval_ms
        if wanted and (
            unresolved
            or last is None
            or len(wanted) != len(resolved)
            or self._group.regexes_resolved_at_version < self._context.newest_topic_version()
            or not is_within(since_ms=last.timestamp_ms, interval_ms=interval_ms + 1, now_ms=now_ms)
        ):
            self._out.schedule(RegexTimer(self._group.group_id, self._may_describe), 0)

    def _refresh_metadata(self, bump: bool) -> None:
        group = self._group
        metadata_hash = self._context.metadata_hash(self._subscriptions_after())
        if bump or metadata_hash != group.metadata_hash:
            self._group_epoch = group.group_epoch + 1
            self._out.write(
                records.group_epoch_record(group.group_id, self._group_epoch, metadata_hash)
            )
        else:
            # Only here: after a bump the next heartbeat looks again, lest the write has failed.
            group.hash_checked_at_version = self._context.topics.version
        if group.has_partition_metadata:
            self._out.write(records.partition_metadata_tombstone(group.group_id))

    def _subscriptions_after(self) -> Subscriptions:
        """The group's subscriptions once the records so far are replayed."""
        old, new = self._old, self.member
        if new is old:
            return self._group.subscriptions
        if self._after is None:
            after = self._after = self._group.subscriptions.copy()
            after.replace_member(old, new)
            regex = old.subscribed_topic_regex
            if regex and regex != new.subscribed_topic_regex and regex not in after.by_regex:
                after.resolve(regex, None)
        return self._after

    # The target assignment.

    def update_target(self) -> tuple[int, Assignment]:
        """Step 2: the epoch of the target, and the member's part of it."""
        group = self._group
        if group.assignment_epoch >= self._group_epoch or not self._may_assign():
            target = group.target_of(self.member.member_id, self.member.instance_id)
            return group.assignment_epoch, target
        assigned = self._assign()
        for member_id, assignment in assigned.items():
            if group.target.get(member_id) != assignment:
                self._out.write(records.target_record(group.group_id, member_id, assignment))
        self._out.write(
            records.target_epoch_record(group.group_id, self._group_epoch, self._out.now_ms)
        )
        return self._group_epoch, assigned[self.member.member_id]

    def _may_assign(self) -> bool:
        return may_assign(
            made_ms=self._group.assignment_timestamp_ms,
            interval_ms=self._context.assignment_interval_ms(self._group.group_id),
            now_ms=self._out.now_ms,
        )

    def _assign(self) -> dict[str, Assignment]:
        group, updated = self._group, self.member
        specs = {member_id: self._spec(each) for member_id, each in group.members.items()}
        previous_id = group.static_members.get(updated.instance_id or "")
        if previous_id is not None and previous_id != updated.member_id:
            specs.pop(previous_id, None)
        specs[updated.member_id] = self._spec(updated)
        name = group.preferred_assignor(self._old, updated)
        assignors = self._context.assignors
        # An assignor may have been taken out of the configuration since.
        assignor = assignors.get(name or "") or assignors[self._context.default_assignor]
        topics: dict[UUID, TopicFacts] = {}
        for topic_ids in {spec.topic_ids for spec in specs.values()}:
            for topic_id in topic_ids:
                facts = self._context.topics.topic_by_id(topic_id)
                if facts is not None:
                    topics[topic_id] = facts
        # Computed again, where Kafka may use the subscriptions before this member, and then gives
        # partitions to members that are not subscribed to them.
        homogeneous = self._subscriptions_after().is_homogeneous(len(specs))
        assigned = assignor.assign(GroupSpec(specs, homogeneous), topics)
        return {member_id: assigned.get(member_id, {}) for member_id in specs}

    def _spec(self, member: ConsumerMember) -> MemberSubscription:
        group = self._group
        target = group.target.get(member.member_id)
        if target is None:
            target = group.target_of(member.member_id, member.instance_id)
        topic_ids = self._context.topic_ids(group.subscriptions.topics_of(member))
        return MemberSubscription(member.instance_id, member.rack_id, topic_ids, target)

    # The member's own assignment.

    def reconcile(
        self, target_epoch: int, target: Assignment, owned: Assignment | None
    ) -> ConsumerMember:
        """Step 3: the member on its way to the target."""
        member = self.member
        if not self.subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        group = self._group
        names = group.subscriptions.topics_of(member)
        reconciled = reconcile(
            member,
            Reconciliation(
                target_epoch=target_epoch,
                target=target,
                owned=owned,
                owners=group.owners,
                subscribed=self._context.topic_ids(names),
                subscribes_to_nothing=not names,
                subscription_changed=self.subscription_changed,
            ),
        )
        if reconciled != member:
            self._out.write(records.current_record(group.group_id, reconciled))
            if not reconciled.uses_classic_protocol:
                self._time_revocation(reconciled)
        self.member = reconciled
        return reconciled

    def _time_revocation(self, member: ConsumerMember) -> None:
        timer = MemberRebalanceTimer(self._group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._out.schedule(timer, member.rebalance_timeout_ms)
        else:
            self._out.cancel(timer)
