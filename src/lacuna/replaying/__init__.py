"""A run to watch: recorded by the real agent, played back on one offline page, checked against its header."""
