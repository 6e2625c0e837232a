"""Transition models: what is counted, how hidden values are drawn, and planning."""
