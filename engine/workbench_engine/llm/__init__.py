"""How a language model is asked: one contract, a client for any OpenAI-compatible server, its limits and its costs."""
