"""What the brokers share: topics, replicas and their leaders, time, and what each release speaks."""
