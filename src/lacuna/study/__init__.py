"""Studies: thousands of runs described in a file, kept in a store that can be stopped and resumed."""
