"""The parts of a simulation: clock, network, faults, and the trace of what happened."""
