"""How two runs differ: in settings, code, files and numbers."""
