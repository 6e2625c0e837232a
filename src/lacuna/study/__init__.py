"""Studies: thousands of runs described in a file and kept in a store; they can be stopped and continued."""
