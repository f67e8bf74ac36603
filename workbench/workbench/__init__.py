"""The face: command line, app shell, configuration, doctor, reports."""
