"""How the hidden part of a state is guessed."""
