"""The resources, the changes and the table rows of the verb ``configs``."""
