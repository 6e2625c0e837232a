"""Methods side by side in a world or environment of any kind, seed by seed."""
