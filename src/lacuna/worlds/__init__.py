"""Worlds: Lake World, tiny worlds with known answers, and Gymnasium in both directions."""
