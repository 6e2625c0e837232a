"""What a learner is made of: methods, settings, its memory and its file, the updates of Q, the votes."""
