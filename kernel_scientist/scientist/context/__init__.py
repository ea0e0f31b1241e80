"""What a prompt holds besides the task: facts, knowledge, bug classes."""
