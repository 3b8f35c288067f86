"""The typed settings: value types, records, merging of papers and presets.

It may use the catalogue of plug-ins. No job imports it, so edits here rerun nothing.
"""
