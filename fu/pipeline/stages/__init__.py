"""One file a stage: its `Spec` (a frozen record), its `Files`, its `main`; a command that a person can paste.

May use the science and the artefacts, never the plan. What a main needs of torch it imports inside, so that the plan
can read the specs without.
"""
