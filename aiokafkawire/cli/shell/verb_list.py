"""The verbs of the command and a line about each, so that help and completion import none of them."""

from typing import Final

__all__ = ("PLAIN_VERBS", "SHELL_VERBS", "VERBS", "extra_of")

SHELL_VERBS: Final = {
    "produce": "send lines, JSON lines or files to a topic",
    "consume": "print the records of topics",
    "topics": "list, describe, create, extend and delete topics; offsets, leaders",
    "groups": "list, describe, reset and delete groups",
    "dead-letters": "count, show and replay the records of dead-letter topics",
    "configs": "list, describe and change settings of topics, brokers and groups",
    "acls": "list, create and delete ACLs",
    "quotas": "list, change, delete and resolve client quotas",
    "users": "list, create, alter and delete users with SCRAM credentials",
    "transactions": "list and describe transactions, find and abort hanging ones",
    "cluster": "describe brokers, controllers, features and versions",
    "log-dirs": "describe log directories, and move replicas between them",
    "reassign": "plan which brokers hold partitions, and move them",
    "tokens": "create, list, renew and expire delegation tokens",
    "apply": "make a cluster what a file declares: topics, configs, ACLs, quotas, users",
    "export": "write the settings of a cluster as such a file",
    "top": "watch brokers, topics and groups",
    "migrate": "find what a code base needs to move from another client",
    "completion": "print the completion script of bash, zsh or fish",
}
"""The verbs that need click: ``cli/verbs`` has a module for each."""

PLAIN_VERBS: Final = {
    "tap": "show the traffic of any client, and inject faults into it",
    "demo": "stream 336,776 flights through Kafka and back",
    "broker": "run an in-memory broker until Ctrl-C",
    "wire": "decode bytes of the protocol: header, message, fields, records",
}
"""The verbs that run without click."""

VERBS: Final = SHELL_VERBS | PLAIN_VERBS


def extra_of(verb: str) -> str:
    """Return the extra of the package that a verb of the shell needs."""
    return verb if verb in ("top", "migrate") else "shell"
