"""Data sets: plug-ins that define a constant `ABOUT`. They use `fu.data.dataset`."""
