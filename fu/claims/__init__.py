"""Claims of a paper, as predicates over the rows of one of its tables or figures.

`statistics(rows, p)` returns one number per unit (a scenario) and seed, `region(p)` the interval that must contain it,
and `operands(p)` the rows that it uses. `fu.claims.judging` judges all claims by the same statistics.
"""
