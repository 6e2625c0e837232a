"""What could be reached: five that know what no agent can know, run and measured like the methods."""
