"""One module a family of commands. Heavy imports happen inside the commands, so that `--help` stays instant."""
