"""What is asked of a trial from outside: its command, audits, upgrade and erasure."""
