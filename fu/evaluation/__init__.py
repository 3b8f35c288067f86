"""How well a model forgot, and at what cost: evaluators (plug-ins with `METRICS` and `evaluate`).

A metric's `tells` in `METRICS` says whether the untouched `original` or a `broken` model has a lower or a higher number
than a retrained one; every evaluator needs a metric that tells at least one of them, as the contract test checks.

One that can be measured after every round has `trace` and names its columns in the literal `TRACE` (none where they
hang on the data); `conflicts`, which compares two models, has `count` instead.

Also the columns of a trace, and the choice among trials. Uses `fu.federation` and `fu.data`; knows no method.
"""
