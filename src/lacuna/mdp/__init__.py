"""A finite decision problem as arrays: its optimum, its environment, its picture."""
