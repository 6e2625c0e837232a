"""Trials with people: the file that declares one, the log, the engine that decides and learns, and its audits."""
