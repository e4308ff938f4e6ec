"""ACLs as options of the shell describe them."""
