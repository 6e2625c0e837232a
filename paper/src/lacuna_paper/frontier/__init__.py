"""Every method in every world: the studies, and their results, ranked and compared with our default."""
