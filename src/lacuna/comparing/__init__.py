"""Methods compared in any world or environment, seed by seed."""
