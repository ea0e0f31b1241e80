"""The agent that is a command: any program that reads a task file and leaves a kernel."""
