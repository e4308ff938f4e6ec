"""The processing of records by a function of the user: concurrency, retries, dead letters, and what is committed."""
