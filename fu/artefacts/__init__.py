"""Kinds of tables and figures. Plug-ins with `make(frame, entry) -> Result`, which opens no file.

May use the science; knows no paths and no workflow.
"""
