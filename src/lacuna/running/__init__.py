"""An agent or a yardstick in a world, measured."""
