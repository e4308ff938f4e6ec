"""What a topic holds: record batches and their compression. No I/O, no clock."""
