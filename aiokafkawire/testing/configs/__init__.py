"""Settings of topics, brokers and the rest, and clients' quotas."""
