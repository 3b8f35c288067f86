"""How well a model forgot, and at what cost: evaluators (plug-ins with `METRICS` and `evaluate`).

Also what is measured in every round, and the choice among trials. Uses `fu.federation` and `fu.data`; knows no method.
"""
