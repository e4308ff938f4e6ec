"""Dead letters in the shell: counts, one with its failure, and the way back to the origin topic."""
