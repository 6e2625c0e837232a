"""The learner: its verbs, the agent, how observations are read, what is saved."""
