"""Task files of others brought in: found, described in the sandbox, made smaller where asked, kept with provenance."""
