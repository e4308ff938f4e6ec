"""Share groups (KIP-932): the state of shared partitions, share sessions, and the groups' coordinator."""
