"""The parts of the conductor: recording, gate, evaluation, archive, groups, confirmation, commands."""
