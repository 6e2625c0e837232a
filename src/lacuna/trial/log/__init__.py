"""The log of a trial: its stores, the keys of its random draws, and the tables made from it."""
