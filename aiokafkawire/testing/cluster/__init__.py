"""The state that all brokers share: topics, replicas, leaders, timers and the API versions of each release."""
