"""The command for trials; audits, upgrades and erasure."""
