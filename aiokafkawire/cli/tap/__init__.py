"""The command ``aiokafkawire tap``: a proxy that shows the traffic of any Kafka client, and injects faults into it."""
