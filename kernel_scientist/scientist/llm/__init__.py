"""Language models: client, endpoint, response cache, budget, prices, parsing of replies, and the agent."""
