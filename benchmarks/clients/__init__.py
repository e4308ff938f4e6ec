"""One program per client library; each takes one measurement in a process of its own and prints it as a JSON line."""
