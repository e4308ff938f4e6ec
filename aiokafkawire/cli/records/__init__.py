"""Records as text: lines that become records, and records that become lines."""
