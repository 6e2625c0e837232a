"""A real trial: many participants, late rewards, and a log from which everything can be computed again."""
