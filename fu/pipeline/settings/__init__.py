"""The typed config: kinds of values, records, papers and presets laid over each other, the generated reference.

May use the catalogue of plug-ins; no job imports it, so an edit here runs nothing again.
"""
