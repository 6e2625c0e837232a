"""What is learned of transitions, how hidden values are drawn from it, and how it is planned on."""
