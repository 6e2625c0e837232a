"""Mechanisms from data: what a log of masks shows about missingness, and what it cannot show."""
