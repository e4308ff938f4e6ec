"""The parts of a simulation: clock, network, faults and trace."""
