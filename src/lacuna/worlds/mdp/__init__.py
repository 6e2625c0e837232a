"""Decision problems as arrays: their tables, optimal values, Gymnasium environment and pictures."""
