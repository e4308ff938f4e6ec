"""The help texts of ``aiokafkawire tap``."""

from typing import Final

__all__ = ("DESCRIPTION", "EPILOG", "SUMMARY")

SUMMARY: Final = "show the traffic of any Kafka client, and inject faults into it"

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
