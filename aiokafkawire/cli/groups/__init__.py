"""The verb ``groups``: what it asks, the rows that it prints, and the plans of its resets."""
