"""What every kernel stands on: compiling, spaces, random numbers, counts."""
