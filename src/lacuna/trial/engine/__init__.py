"""A running trial: many participants, late rewards, and a log from which every decision can be replayed."""
