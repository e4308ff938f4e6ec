"""The frame of the shell: its verbs, their common options, settings, output and exit status."""
