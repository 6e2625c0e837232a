"""One run: an agent or a yardstick in a world, compiled or step by step, and measured."""
