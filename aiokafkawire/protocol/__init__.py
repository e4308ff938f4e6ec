"""What the bytes mean: primitives, declared messages, and the functions compiled from them. No I/O, no clock."""
