"""The arguments and help texts of ``aiokafkawire wire``."""

import argparse
from typing import Final

__all__ = ("DESCRIPTION", "EPILOG", "declare")

DESCRIPTION: Final = """\
Decode bytes of Kafka's protocol: header, message, every field, every record.

The input is hex in any notation: plain, 0x, with colons or spaces, xxd, hexdump -C, tcpdump -x and -X, Wireshark's, a
bytes literal of Python, or hex within a log line; or a pcap file, or raw bytes. It may have several frames, with or
without length prefixes. The exit status is 1 if a frame could not be decoded or a batch was damaged.
"""

EPILOG: Final = """\
examples:
  A request names its API; from an argument, or pasted into the standard input:
    aiokafkawire wire 000000230012000300000007000464656d6f000d61696f6b61666b617769726506302e312e3000

  A response does not, so name its API; without a version, the newest version that decodes it is used:
    aiokafkawire wire --response Metadata:1 \\
      0000003100000008000000010000000100056b61666b6100002384ffff000000010000000100030007666c69676874730000000000

  Or list the APIs and versions that decode it:
    aiokafkawire wire --guess 00000007000000000000

  Captures. In a capture of both directions, responses are matched with their requests:
    aiokafkawire wire --file capture.pcap
    tcpdump -X -r capture.pcap tcp port 9092 | aiokafkawire wire
    aiokafkawire wire --requests to-broker.raw --responses from-broker.raw

  Messages that are embedded in others, and segments of a log:
    aiokafkawire wire --message ConsumerProtocolSubscription 0001000000010007666c6967687473ffffffff00000000
    aiokafkawire wire --records --file 00000000000000000000.log

  JSON for programs, one object per line:
    aiokafkawire wire --json --file capture.pcap | jq -c '[.api, .version, .body.error_code_means]'

Passwords, tokens and configs that look like secrets are hidden, so that the output can be put in a bug report;
--secrets shows them. Other contents are not hidden: check the output before you publish it.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to the parser."""
    parser.add_argument("hex", nargs="*", metavar="HEX", help="the bytes; - or nothing reads the standard input")
    parser.add_argument("--file", metavar="PATH", help="read a file: raw bytes, a pcap file, or hex, detected")

    notation = parser.add_mutually_exclusive_group()
    notation.add_argument("--hex", dest="notation", action="store_const", const="hex", help="the input is hex")
    notation.add_argument("--raw", dest="notation", action="store_const", const="raw", help="the input is raw bytes")
    notation.add_argument("--base64", dest="notation", action="store_const", const="base64", help="the input is base64")

    lengths = parser.add_mutually_exclusive_group()
    always, never = "every frame has a length prefix", "the input is one frame without a length prefix"
    lengths.add_argument("--length", dest="prefixed", action="store_const", const=True, help=always)
    lengths.add_argument("--no-length", dest="prefixed", action="store_const", const=False, help=never)

    content = parser.add_argument_group("content, where the bytes do not show it")
    content.add_argument("--response", metavar="API[:VERSION]", help="responses of this API, as Metadata:12 or 3:12")
    content.add_argument("--requests", metavar="PATH", help="a file of requests, for --responses")
    content.add_argument("--responses", metavar="PATH", help="a file of their responses, matched by correlation id")
    content.add_argument("--guess", action="store_true", help="try every API on unknown frames, and list matches")
    content.add_argument("--message", metavar="NAME[:VERSION]", help="one message without a header, as EndTxnMarker")
    content.add_argument("--records", action="store_true", help="record batches, as in Fetch and log segments")

    shown = parser.add_argument_group("output")
    shown.add_argument("--json", action="store_true", help="one JSON object per frame; bytes are base64")
    shown.add_argument("--brief", action="store_true", help="omit fields with their default value")
    shown.add_argument("--full", action="store_true", help="shorten nothing")
    shown.add_argument("--secrets", action="store_true", help="show passwords and tokens too")
