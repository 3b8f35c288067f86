"""Kinds of tables and figures (plug-ins): `make(frame, entry) -> Result`, which opens no file.

May use the science; knows no paths and no workflow.
"""
