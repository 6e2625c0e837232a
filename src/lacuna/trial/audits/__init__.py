"""Audits of a trial: its log replayed, people erased from it, and its continuation with another version."""
