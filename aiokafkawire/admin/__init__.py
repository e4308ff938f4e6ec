"""Topics and offsets, administered."""
