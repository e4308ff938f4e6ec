"""Administration of topics, groups and offsets."""
