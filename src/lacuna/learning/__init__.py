"""The learner: methods and settings, imputation, Q, votes, the agent and its file."""
