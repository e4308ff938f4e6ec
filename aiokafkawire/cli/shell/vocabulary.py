"""The keys of JSON objects and of rows: one name for one thing in all verbs, with the heading of its column.

Keys of moments, in ms since 1970, end with ``timestamp``; keys of time spans with ``_ms``, of ids with ``_id``, and of
sizes with ``_bytes``. Keys of values that are true or false begin with ``is_``.
"""

from typing import Final, NamedTuple

__all__ = ("VOCABULARY", "Term", "heading", "is_moment")


class Term(NamedTuple):
    """The meaning of a key, and the heading of its column; a key without a heading is in no table."""

    meaning: str
    heading: str = ""


VOCABULARY: Final[dict[str, Term]] = {
    # nodes
    "cluster_id": Term("the id of the cluster", "CLUSTER"),
    "node_id": Term("the id of a broker or a controller; in `apply` also `default`, for all brokers", "NODE"),
    "leader_id": Term("the node that leads a partition, or the controllers", "LEADER"),
    "coordinator_id": Term("the node that coordinates a transactional id", "COORDINATOR ID"),
    "controller_id": Term("the node that is the active controller"),
    "coordinator": Term("the address of a group's coordinator, as host:port", "COORDINATOR"),
    "address": Term("the address of a broker, as host:port"),
    "host": Term("the host of a node, a member or an ACL", "HOST"),
    "port": Term("the port of a node", "PORT"),
    "rack": Term("the rack of a node or a member", "RACK"),
    "role": Term("what a node is: broker, controller; leader, follower, observer", "ROLE"),
    "release": Term("the newest release of Kafka whose APIs the node supports", "RELEASE"),
    "endpoints": Term("the addresses of a controller, as listener://host:port", "ENDPOINTS"),
    "directory_id": Term("the id of a controller's log directory", "DIRECTORY ID"),
    "state": Term("the state of a node, group, transaction or move", "STATE"),
    "is_controller": Term("whether a broker is the active controller"),
    # topics and partitions
    "topic": Term("the name of a topic", "TOPIC"),
    "topic_id": Term("the UUID of a topic", "TOPIC ID"),
    "partition": Term("the index of a partition", "PARTITION"),
    "partitions": Term("how many partitions there are", "PARTITIONS"),
    "topic_partitions": Term("the partitions of a transaction: indexes by topic", "TOPIC PARTITIONS"),
    "replication_factor": Term("how many replicas each partition has", "REPLICATION FACTOR"),
    "leader_epoch": Term("how often a partition, or the controllers, got a leader", "LEADER EPOCH"),
    "replicas": Term("the nodes that have replicas, the preferred leader first", "REPLICAS"),
    "isr": Term("the nodes whose replicas are in sync", "ISR"),
    "elr": Term("the nodes that may become leader without loss of records"),
    "last_known_elr": Term("the last of these that were known"),
    "offline_replicas": Term("the nodes whose replicas are not in service"),
    "adding_replicas": Term("the nodes that get a replica", "ADDING"),
    "removing_replicas": Term("the nodes that lose theirs", "REMOVING"),
    "target_replicas": Term("the replicas as the plan says", "TARGET REPLICAS"),
    "replica_count": Term("how many replicas there are", "REPLICAS"),
    "in_sync_count": Term("how many replicas are in sync"),
    "moving_here": Term("how many replicas move to this log directory", "MOVING HERE"),
    "configs": Term("the settings of a topic or a broker itself, by name", "CONFIGS"),
    "log_dir": Term("the path of a log directory", "LOG DIRECTORY"),
    "target_log_dir": Term("the log directory that a replica moves to", "TO LOG DIRECTORY"),
    "future_log_dir": Term("the log directory that a replica moves to already"),
    "is_future": Term("whether this is the new replica of such a move", "MOVING HERE"),
    "is_cordoned": Term("whether a log directory takes no new replicas", "CORDONED"),
    "size_bytes": Term("the bytes of replicas, or of a request or a response", "BYTES"),
    "usable_bytes": Term("the free bytes of a volume", "USABLE"),
    "total_bytes": Term("the bytes of a volume", "OF VOLUME"),
    "bytes_to_copy": Term("the bytes that a reassignment copies", "BYTES TO COPY"),
    # records and offsets
    "offset": Term("the offset of a record, or the one that was looked up", "OFFSET"),
    "timestamp": Term("the moment of a record, or of the sample of `top`", "TIMESTAMP"),
    "timestamp_type": Term("who sets the timestamps: create_time or log_append_time"),
    "key": Term("the key of a record"),
    "value": Term("the value of a record, a setting or a quota", "VALUE"),
    "headers": Term("the headers of a record"),
    "log_start_offset": Term("the first offset of a partition", "START OFFSET"),
    "log_end_offset": Term("the end of a partition, or of a controller's log", "END OFFSET"),
    "before_offset": Term("the first record to keep", "DELETE BEFORE"),
    "records": Term("how many offsets that deletes", "RECORDS"),
    "low_watermark": Term("the first offset after it"),
    "high_watermark": Term("the end of what a majority of controllers has", "HIGH WATERMARK"),
    "lag": Term("offsets between here and the end", "LAG"),
    "max_lag": Term("the largest lag of a voter", "LARGEST LAG OF A VOTER"),
    "offset_lag": Term("offsets between a replica and the high watermark", "LAG"),
    "last_fetch_timestamp": Term("when a controller last fetched, by the leader's clock", "LAST FETCH"),
    "last_caught_up_timestamp": Term("when it last had all records", "CAUGHT UP"),
    # groups
    "group_id": Term("the id of a group", "GROUP"),
    "group_type": Term("the type of a group: classic, consumer, share, streams", "TYPE"),
    "protocol_type": Term("what a group is for: consumer, connect, share", "PROTOCOL"),
    "member_id": Term("the id of a member", "MEMBER"),
    "member_type": Term("the protocol of a member: classic or consumer"),
    "group_instance_id": Term("the name of a static member", "INSTANCE"),
    "client_id": Term("the client id of a member, of requests, or of a quota", "CLIENT ID"),
    "members": Term("how many members there are", "MEMBERS"),
    "assignor": Term("the assignor of a group", "ASSIGNOR"),
    "group_epoch": Term("the epoch of a group", "GROUP EPOCH"),
    "assignment_epoch": Term("the group epoch of its assignment", "ASSIGNMENT EPOCH"),
    "member_epoch": Term("the epoch of a member", "MEMBER EPOCH"),
    "topology_epoch": Term("the epoch of a streams member's topology"),
    "process_id": Term("the process of a streams member"),
    "assignment": Term("what a member reads: indexes by topic, of a streams member by subtopology", "ASSIGNMENT"),
    "target_assignment": Term("what it is to read"),
    "standby_tasks": Term("the standby tasks of a streams member"),
    "warmup_tasks": Term("its warm-up tasks"),
    "subscription": Term("the topics that a member subscribes to"),
    "subscribed_pattern": Term("its regular expression"),
    "committed_offset": Term("the offset that a group has committed", "COMMITTED"),
    "start_offset": Term("the first offset of a share group, or of an open transaction", "START OFFSET"),
    "new_offset": Term("the offset that a reset sets", "NEW OFFSET"),
    "metadata": Term("the text of a commit"),
    "note": Term("what is particular about a row", "NOTE"),
    # transactions
    "transactional_id": Term("a transactional id", "TRANSACTIONAL ID"),
    "producer_id": Term("the id of a producer", "PRODUCER ID"),
    "producer_epoch": Term("the epoch of a producer", "PRODUCER EPOCH"),
    "coordinator_epoch": Term("the epoch of the coordinator that ended the last transaction", "COORDINATOR EPOCH"),
    "last_sequence": Term("the last sequence number of a producer", "LAST SEQUENCE"),
    "last_timestamp": Term("when a producer last wrote", "LAST WRITE"),
    "start_timestamp": Term("when a transaction began", "STARTED"),
    "duration_ms": Term("how long a transaction is open, or a response took", "DURATION MS"),
    "idle_ms": Term("how long a producer has written nothing", "IDLE MS"),
    "timeout_ms": Term("the timeout of a transaction", "TIMEOUT MS"),
    # settings, rights, quotas, users, tokens
    "resource_type": Term("the type of a resource, such as topic or broker", "RESOURCE"),
    "resource_name": Term("its name; null for the defaults of all brokers", "NAME"),
    "own_settings": Term("how many settings are set for a resource itself", "OWN SETTINGS"),
    "config": Term("the name of a setting", "CONFIG"),
    "source": Term("where the value of a setting comes from", "SOURCE"),
    "value_type": Term("the type of a setting's value"),
    "synonyms": Term("all sources of a value", "SYNONYMS"),
    "documentation": Term("the brokers' text about a setting", "DOCUMENTATION"),
    "is_sensitive": Term("whether the value is secret"),
    "is_read_only": Term("whether a setting cannot be changed while the broker runs"),
    "pattern_type": Term("how the name of an ACL's resource matches", "PATTERN"),
    "principal": Term("the principal of an ACL, such as User:alice", "PRINCIPAL"),
    "operation": Term("the operation of an ACL", "OPERATION"),
    "permission_type": Term("allow or deny", "PERMISSION"),
    "entity": Term("whom quotas are for: user, client_id, ip; null is the default of these"),
    "quota": Term("the key of a quota", "QUOTA"),
    "limits": Term("the quotas of an entity, by key"),
    "ip": Term("the address of a quota", "IP"),
    "set_for": Term("the entity of the quota that holds", "SET FOR"),
    "user": Term("the name of a user", "USER"),
    "mechanism": Term("the SCRAM mechanism of a credential", "MECHANISM"),
    "iterations": Term("its iterations", "ITERATIONS"),
    "password": Term("where `apply` takes a password from"),
    "token_id": Term("the id of a delegation token", "TOKEN ID"),
    "hmac": Term("its password", "HMAC"),
    "owner": Term("its owner", "OWNER"),
    "requester": Term("who requested it", "REQUESTER"),
    "renewers": Term("who may renew it", "RENEWERS"),
    "issue_timestamp": Term("when it was issued", "ISSUED"),
    "expiry_timestamp": Term("when it expires", "EXPIRES"),
    "max_timestamp": Term("when it expires at latest", "AT LATEST"),
    # features and APIs
    "feature": Term("the name of a feature", "FEATURE"),
    "level": Term("its level in effect; 0 is disabled", "LEVEL"),
    "finalized_features_epoch": Term("how often levels were changed", "EPOCH"),
    "min_version": Term("the lowest version that is supported", "MIN"),
    "max_version": Term("the highest one", "MAX"),
    "api_key": Term("the number of an API", "API KEY"),
    "api_name": Term("its name", "API"),
    "api_version": Term("the version of a request"),
    # top and tap
    "brokers": Term("the brokers of a sample"),
    "topics": Term("its topics"),
    "groups": Term("its groups"),
    "seconds": Term("the time between two samples, in seconds"),
    "leads": Term("how many partitions a broker leads"),
    "under_replicated": Term("how many partitions have replicas that are not in sync"),
    "leaderless": Term("how many partitions have no leader"),
    "unread": Term("how many partitions have an end that is not known"),
    "unknown": Term("how many partitions have a lag that is not known"),
    "rate": Term("new records per second"),
    "lag_rate": Term("the change of the lag per second"),
    "event": Term("request or response"),
    "time": Term("the moment of an event of `tap`: ISO 8601 in UTC, with microseconds"),
    "connection": Term("the number of a connection"),
    "client": Term("the address of a client, as host:port"),
    "correlation_id": Term("the correlation id of a request"),
    "errors": Term("error codes by name, and how often each is in a response"),
    "rewritten": Term("whether addresses in a response were replaced"),
    "fault": Term("the fault that was injected"),
    # outcomes
    "outcome": Term("what became of the thing in the row", "OUTCOME"),
    "error": Term("the error of the thing in the row", "ERROR"),
    "action": Term("what `apply` does: create, alter, delete, conflict"),
    "kind": Term("what it changes: topic, broker, acl, quota, user"),
    "reason": Term("why it cannot"),
}


def heading(key: str) -> str:
    """Return the heading of a column."""
    return VOCABULARY[key].heading


def is_moment(key: str) -> bool:
    """Return whether the values of a key are moments in ms since 1970, which tables show as dates."""
    return key.endswith("timestamp")
