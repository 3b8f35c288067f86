"""How well a model forgot, and at what cost: evaluators (plug-ins with `METRICS` and `evaluate`).

A metric's `tells` in `METRICS` says whether the untouched `original` or a `broken` model has a lower or a higher number
than a retrained one; every evaluator needs a metric that tells at least one of them, as the contract test checks.

Also the metrics of every round, and the choice among trials. Uses `fu.federation` and `fu.data`; knows no method.
"""
