"""Mechanisms from data: what a log of masks says about how values went missing, and what it cannot say."""
