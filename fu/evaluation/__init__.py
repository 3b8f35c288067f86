"""Evaluators: how well a model forgot, and at what cost. Plug-ins with `METRICS` and `evaluate`.

The entry `tells` of a metric states whether its value is lower or higher than after retraining for the unchanged
`original` model or for a `broken` one. Every evaluator needs a metric that detects at least one of the two; the
contract test checks this.

An evaluator that can run after every round defines `trace` and lists its columns in the literal `TRACE` (empty if they
depend on the data). `conflicts` compares two models and defines `count` instead.

The package also holds the columns of a trace and the choice among trials. It uses `fu.federation` and `fu.data` and
imports no method.
"""
