"""What ``aiokafkawire wire`` takes, and how its help teaches it."""

import argparse
from typing import Final

__all__ = ("DESCRIPTION", "EPILOG", "SUMMARY", "declare")

SUMMARY: Final = "tell what bytes of the protocol say: header, message, fields, records"

DESCRIPTION: Final = """\
Tell what bytes of Kafka's protocol say: header, message, every field, every record.

The bytes are hex in any notation: plain, 0x, with colons or spaces, xxd, hexdump -C, tcpdump -x and -X, Wireshark's, a
bytes literal of Python, hex within a log line. Or a pcap file, or raw bytes. Several frames may follow one another,
with the lengths before them or not. The exit status is 1 if something could not be read or was damaged.
"""

EPILOG: Final = """\
examples:
  A request says what it is; from an argument, or pasted into the standard input:
    aiokafkawire wire 000000230012000300000007000464656d6f000d61696f6b61666b617769726506302e312e3000

  A response does not, so say what it answers; without a version, the newest that reads it is taken:
    aiokafkawire wire --response Metadata:1 \\
      0000003100000008000000010000000100056b61666b6100002384ffff000000010000000100030007666c69676874730000000000

  Or ask what it could be:
    aiokafkawire wire --guess 00000007000000000000

  Captures. In a capture of both directions responses are told by the requests before them:
    aiokafkawire wire --file capture.pcap
    tcpdump -X -r capture.pcap tcp port 9092 | aiokafkawire wire
    aiokafkawire wire --requests to-broker.raw --responses from-broker.raw

  What travels inside of messages, and what is in a segment of a log:
    aiokafkawire wire --message ConsumerProtocolSubscription 0001000000010007666c6967687473ffffffff00000000
    aiokafkawire wire --records --file 00000000000000000000.log

  For programs, one object a line:
    aiokafkawire wire --json --file capture.pcap | jq -c '[.api, .version, .body.error_code_means]'

Passwords, tokens and the values of configs that look like them are hidden, for the output may go into a bug report;
--secrets shows them. Other contents are not hidden: look at what you publish.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Give the parser the arguments of the command."""
    parser.add_argument("hex", nargs="*", metavar="HEX", help="the bytes; - or nothing is the standard input")
    parser.add_argument("--file", metavar="PATH", help="read a file: raw bytes, a pcap file, or hex, as it looks")

    notation = parser.add_mutually_exclusive_group()
    notation.add_argument("--hex", dest="notation", action="store_const", const="hex", help="the input is hex")
    notation.add_argument("--raw", dest="notation", action="store_const", const="raw", help="it is bytes as they are")
    notation.add_argument("--base64", dest="notation", action="store_const", const="base64", help="it is base64")

    lengths = parser.add_mutually_exclusive_group()
    always, never = "every frame has its length before it", "it is one frame without a length"
    lengths.add_argument("--length", dest="prefixed", action="store_const", const=True, help=always)
    lengths.add_argument("--no-length", dest="prefixed", action="store_const", const=False, help=never)

    what = parser.add_argument_group("what the bytes are, where they do not say it")
    what.add_argument("--response", metavar="API[:VERSION]", help="responses, as Metadata:12 or 3:12")
    what.add_argument("--requests", metavar="PATH", help="a file of one direction, for --responses")
    what.add_argument("--responses", metavar="PATH", help="the other direction, matched by correlation id")
    what.add_argument("--guess", action="store_true", help="try every API on what cannot be read, and list what fits")
    what.add_argument("--message", metavar="NAME[:VERSION]", help="one message without a header, as EndTxnMarker")
    what.add_argument("--records", action="store_true", help="record batches, as Fetch and log segments have them")

    shown = parser.add_argument_group("how it is shown")
    shown.add_argument("--json", action="store_true", help="one JSON object a frame; bytes are base64")
    shown.add_argument("--brief", action="store_true", help="leave out fields at their default")
    shown.add_argument("--full", action="store_true", help="shorten nothing")
    shown.add_argument("--secrets", action="store_true", help="show passwords and tokens too")
