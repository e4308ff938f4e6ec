"""Record batches and their compression. No I/O, no clock."""
