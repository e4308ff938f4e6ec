"""Records in, batches out."""
