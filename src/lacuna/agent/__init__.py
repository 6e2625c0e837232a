"""The agent: all that one learner is. Methods and settings, memory and file, votes, models, the verbs of a step."""
