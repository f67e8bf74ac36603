"""How a session is shown: full screen, with rich progress, or in plain lines. One protocol, chosen once."""
