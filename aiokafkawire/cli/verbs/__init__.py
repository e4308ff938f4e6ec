"""The verbs of the shell: one module each, with the click command in ``command``."""
