"""Which broker to ask: metadata, lanes, retries."""
