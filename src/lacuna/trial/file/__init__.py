"""What a trial file declares: actions, allocation, rewards, and the context that an app reports."""
