"""Settings of topics, brokers and other resources, and clients' quotas."""
