"""Mutations of the membership in a group: of assignments, commits and heartbeats."""

from .mutation import Mutation

__all__ = ("GROUPS",)

_FINISHED = "only finished records are committed"
_OWNER = "a partition has one owner in a generation"
_START = "a member begins at the group's committed offset"
_SHARE = "every member has a share, whichever client it is, and whichever client leads"
_FORMER = "a member commits nothing that it got under an earlier assignment"

GROUPS = (
    Mutation(
        "commits what is handed out, not what is finished",
        _FINISHED,
        "consumer.subscription_state",
        "offset = state.position if state.held is None else state.held",
        "offset = state.position",
        "groups",
    ),
    Mutation(
        "no commit before a revocation",
        "what is finished when a partition is given up in order is committed",
        "consumer.partition_changes",
        "            await self._auto_commit.commit_last(within=self.commit_timeout)\n",
        "            pass\n",
        "orderly_groups",
    ),
    Mutation(
        "on_revoked is not called",
        "the listener hears of every revocation",
        "consumer.partition_changes",
        "            await self._call_listener(self._topics.listeners.on_revoked, partitions)\n        finally:",
        "            pass\n        finally:",
        "groups",
    ),
    Mutation(
        "records of a revoked partition are kept",
        "no record of a partition is returned once it is revoked",
        "consumer.record_iteration",
        "return fetched.ask.is_current and self._positions.get(state.partition) is state",
        "return True",
        "consumer_groups",
    ),
    Mutation(
        "revocation does not wait for the user",
        "no partition is given up while the user has records of it",
        "consumer.partition_changes",
        "            with anyio.move_on_after(self._patience):\n",
        "            with anyio.move_on_after(0):\n",
        "consumer_groups",
    ),
    Mutation(
        "partitions of others are kept",
        _OWNER,
        "consumer.partition_changes",
        "        await self.revoke(revoked, task=task)\n        if task is not self._driver.machine.task:",
        "        if task is not self._driver.machine.task:",
        "orderly_groups",
    ),
    Mutation(
        "records are returned before on_assigned",
        "on_assigned may seek before the first record",
        "consumer.partition_changes",
        "self._positions.add(added, withheld=True, ids=ids)",
        "self._positions.add(added, withheld=False, ids=ids)",
        "process",
    ),
    Mutation(
        "commits ignore the generation",
        "a commit has the member's generation",
        "consumer.auto_commit",
        "return self.driver.machine.group if self.driver is not None else GroupMetadata(self._offsets.group_id)",
        "return GroupMetadata(self._offsets.group_id)",
        "orderly_groups",
    ),
    Mutation(
        "partitions that came back may be committed",
        _FORMER,
        "consumer.offset_commits",
        "if any(state is not None and self._positions.get(at) is not state for at, state in states.items()):",
        "if False:",
        "groups",
    ),
    Mutation(
        "records that were lost in hand may be committed",
        _FORMER,
        "consumer.subscription_state",
        "        if lost:\n            found = self.lost_in_hand[lost[0]]",
        "        if False:\n            found = self.lost_in_hand[lost[0]]",
        "groups",
    ),
    Mutation(
        "lost records are committed under the new membership",
        "a transaction has the membership under which its records were read",
        "consumer.offset_commits",
        "            if lost.group is not None:\n",
        "            if False:\n",
        "processing",
    ),
    Mutation(
        "errors of commits are ignored",
        "a commit that returns is stored by the coordinator",
        "group.group_offsets",
        "        raise_gravest(errors)\n",
        "        pass\n",
        "groups",
    ),
    Mutation(
        "committed offset is ignored",
        _START,
        "consumer.subscription_state",
        "return PartitionState(partition, None, self._default_of(partition), self._epoch, ask_group=self._in_group)",
        "return PartitionState(partition, None, self._default_of(partition), self._epoch, ask_group=False)",
        "groups",
    ),
    Mutation(
        "begins one record after the committed offset",
        _START,
        "consumer.subscription_state",
        "self.position, self.spec, self.ask_group = at.offset, None, False",
        "self.position, self.spec, self.ask_group = at.offset + (at.offset > 0), None, False",
        "groups",
    ),
    Mutation(
        "heartbeats stop",
        "a member that is alive stays in its group",
        "group.classic_membership",
        "return self.state in _HEARTBEAT_STATES and self.is_member",
        "return False",
        "groups",
    ),
    Mutation(
        "heartbeats of a consumer group stop",
        "a member that is alive stays in its group",
        "group.consumer_group_membership",
        "            return max(self._heartbeat_at, self._back_off_until)\n",
        "            return max(self._heartbeat_at + 60, self._back_off_until)\n",
        "consumer_groups",
    ),
    Mutation(
        "end of the membership is ignored",
        "a member that was removed reads no more",
        "group.classic_membership",
        "elif action in (ErrorAction.LOSE, ErrorAction.LOSE_GENERATION):",
        "elif action in (ErrorAction.LOSE, ErrorAction.LOSE_GENERATION) and kind is not RequestKind.HEARTBEAT:",
        "groups",
    ),
    Mutation(
        "member leaves without a word",
        "a member that is closed leaves its group at once",
        "group.classic_membership",
        "        if self.member_id and not (self.settings",
        "        if False and not (self.settings",
        "processing",
    ),
    Mutation(
        "partitions are reported as owned no more while they are read",
        "a consumer group's partition goes to another member only once it is given up",
        "consumer.consumer_group_tasks",
        "            await self._changes.change_to(assigned, task, named, ids=ids, on_revoked=take)\n"
        "            self.machine.reconciled(task, self._owned())\n",
        "            owned = {ids[name]: [] for name in ids}\n"
        "            for name, index in assigned:\n"
        "                owned[ids[name]].append(index)\n"
        "            self.machine.owned, self.machine._heartbeat_at = owned, 0.0\n"
        "            await self._changes.change_to(assigned, task, named, ids=ids, on_revoked=take)\n"
        "            self.machine.reconciled(task, self._owned())\n",
        "consumer_groups",
    ),
    Mutation(
        "leader ignores members whose subscription is of version 0",
        _SHARE,
        "group.consumer_protocol",
        "        topics=tuple(message.topics),\n        user_data=None",
        "        topics=tuple(message.topics) if data[1] else (),\n        user_data=None",
        "mixed",
    ),
    Mutation(
        "subscriptions must have owned partitions",
        _SHARE,
        "group.consumer_protocol",
        "_decode_truncated(data) or _decode(ConsumerProtocolSubscription, data)",
        "_decode(ConsumerProtocolSubscription, data)",
        "mixed",
    ),
    Mutation(
        "assignments of older versions are ignored",
        _SHARE,
        "group.client_side_assignment",
        "if task.assignment else Assignment(())",
        'if task.assignment[1:2] == b"\\3" else Assignment(())',
        "mixed",
    ),
    Mutation(
        "offsets of a topic that was made anew are committed by its name",
        "no offset of a deleted topic counts for the next one of its name",
        "group.group_offsets",
        "        ids, latest = _topic_ids(self._cluster, given, topic_ids), newer or (lambda: given)\n",
        "        ids, latest = _topic_ids(self._cluster, given), newer or (lambda: given)\n",
        "recreated",
    ),
    Mutation(
        "records of a paused partition are handed out",
        "poll() returns no record of a partition that is paused",
        "consumer.record_iteration",
        "        if state.paused or state.withheld or state.has_reached_end:\n",
        "        if state.withheld or state.has_reached_end:\n",
        "subscriptions",
    ),
)
