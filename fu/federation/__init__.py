"""The federated training loop: flat parameters, local updates, aggregation, checkpoints, divergence.

A library of its own (docs/python.md trains and unlearns with it in 30 lines): `local` (Federation, LocalTraining,
aggregate), `losses`, `task` (Task, State), `driver` (drive), `flat` (Layout), `model_files`. It is imported by module,
so that a job's digest covers no more than the job uses.
"""
