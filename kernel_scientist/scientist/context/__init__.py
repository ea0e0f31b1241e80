"""The content of prompts: facts, related kernels, background documents, bug classes."""
