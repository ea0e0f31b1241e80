"""Renders an example of each prompt into docs/prompts."""
