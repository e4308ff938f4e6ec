"""The arguments and help texts of ``aiokafkawire tap``."""

import argparse
from typing import Final

from ..shell.shared_options import declare_shared

__all__ = ("DESCRIPTION", "EPILOG", "declare")


DESCRIPTION: Final = """\
Run a proxy in front of a Kafka cluster. It prints a line for each request and each response of any client, and injects
faults on request. In the cluster's responses it replaces the addresses of brokers by its own, one port for each broker,
so that all connections of the clients go through it.
"""

EPILOG: Final = """\
examples:
  aiokafkawire tap --to kafka:9092               listen at 127.0.0.1:19092: use that as bootstrap.servers
  aiokafkawire tap --to kafka:9092 --listen 0.0.0.0:9192 --advertised-host build-7
                                                 for clients on other machines
  aiokafkawire tap --to kafka:9092 --journal day.pcap --except Fetch,Heartbeat
  aiokafkawire wire --file day.pcap              decode all that was sent, field by field
  aiokafkawire tap --to kafka:9092 --fault "Produce delay 500ms" --fault "Fetch drop after topic orders times 3"
  aiokafkawire tap --to kafka:9092 --fault "FindCoordinator answer COORDINATOR_NOT_AVAILABLE group g once"
  aiokafkawire tap --config client.properties    the cluster, and the TLS to its brokers, as for the other commands
  aiokafkawire tap --to kafka:9093 --tls --cafile ca.pem
                                                 TLS to the brokers; clients connect without TLS
  aiokafkawire tap --to kafka:9092 --json | jq -c 'select(.errors | length > 0)'

faults: the name of an API, or any, and words in any order:
  answer ERROR             the error, as NOT_LEADER_OR_FOLLOWER, instead of handling the request
  delay TIME               handle the request later: 500ms, 2s, 1m
  delay answer TIME        send the response later
  drop before|after        close the connection before, or after, the broker handles the request
  swallow before|after     never answer this request and later ones of the connection
  cut                      send half of the response, and close the connection
  corrupt records|INDEX    one wrong byte in the first record batch, or in the response
  topic T, partition N, group G, transactional-id T, client ID, version N, node N
                           only requests with these
  once, times N, skip N    only one request, only N, or only after N others
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to the parser."""
    parser.add_argument(
        "--listen",
        default="127.0.0.1:19092",
        metavar="HOST:PORT",
        help="the address for clients; brokers get the next ports, with port 0 any free ones (default: %(default)s)",
    )
    parser.add_argument("--advertised-host", metavar="HOST", help="the host for clients (default: --listen's)")
    repeated = "may be given several times"
    parser.add_argument("--fault", action="append", default=[], metavar="TEXT", help=f"inject a fault; {repeated}")
    parser.add_argument("--only", action="append", default=[], metavar="API", help="print these only: Produce,Fetch")
    parser.add_argument("--except", action="append", default=[], dest="excluded", metavar="API", help="omit these APIs")
    parser.add_argument("--journal", metavar="PATH", help="write the bytes of all connections to a pcap file")
    parser.add_argument("--tls", action="store_true", help="connect to the brokers by TLS")
    parser.add_argument("--cafile", metavar="PATH", help="the certificate authorities, in PEM (default: the system's)")
    parser.add_argument("--certfile", metavar="PATH", help="the tap's own certificate, in PEM")
    parser.add_argument("--keyfile", metavar="PATH", help="the certificate's key, if it is in another file")
    declare_shared(parser, "--to")
