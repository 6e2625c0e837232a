"""The log of a trial: where it is kept, the keys from which its draws follow, and the tables made from it."""
