"""Plug-ins: data sets, each a constant `ABOUT`. Use `fu.data.dataset`."""
