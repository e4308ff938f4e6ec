"""The verbs of the command and a line about each, so that help and completion import none of them."""

from typing import Final

__all__ = ("PLAIN_VERBS", "SHELL_VERBS", "VERBS")

SHELL_VERBS: Final = {
    "produce": "send lines, JSON lines or files to a topic",
    "consume": "print the records of topics",
    "topics": "list, describe, create and delete topics",
    "completion": "print the completion script of bash, zsh or fish",
}
"""The verbs that need click: ``cli/verbs`` has a module for each."""

PLAIN_VERBS: Final = {
    "demo": "stream 336,776 flights through Kafka and back",
    "broker": "run an in-memory broker until Ctrl-C",
    "wire": "decode bytes of the protocol: header, message, fields, records",
    "tap": "show the traffic of any client, and inject faults into it",
    "top": "watch brokers, topics and groups",
}
"""The verbs that run without click."""

VERBS: Final = SHELL_VERBS | PLAIN_VERBS
