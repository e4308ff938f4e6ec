"""The brokers of a cluster: metadata, connections, coordinators and retries."""
