"""The typed config: types of values, records, merged papers and presets, the generated reference.

May use the catalogue of plug-ins; no job imports it, so an edit here reruns nothing.
"""
