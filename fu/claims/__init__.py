"""What a paper claims, as a predicate over the rows of one of its artefacts.

`statistics(rows, p)` returns a number for each unit (a scenario) and seed, which `region(p)` must contain, and
`operands(p)` names the rows that it reads. How sure that is, `fu.claims.judging` says, in the same way for all.
"""
