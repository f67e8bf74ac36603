"""The hands: tasks, policies, search, referee, sandbox, backends, and the conductor that joins them."""
