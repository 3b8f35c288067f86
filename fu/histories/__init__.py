"""Plug-ins: what a training records for methods that need it, each a function `record`. Use `fu.federation`."""
