"""Every method in every world: which studies ask that, and what comes out, ranked and judged."""
