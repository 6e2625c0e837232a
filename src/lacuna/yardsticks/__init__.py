"""What could be reached: four that know what no agent can know, run and measured like the methods."""
