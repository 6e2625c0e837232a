"""A run to watch: recorded from the real agent, played on one offline page, reproduced from its header."""
