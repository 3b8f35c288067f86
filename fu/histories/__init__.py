"""Histories: what training records for methods that need it. Plug-ins with `record`. They use `fu.federation`."""
