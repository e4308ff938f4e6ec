"""The consumer: it fetches batches from brokers, and hands out their records."""
