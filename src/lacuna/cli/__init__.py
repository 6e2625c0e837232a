"""The command: every command and its options. Heavy imports happen inside the commands that need them."""
