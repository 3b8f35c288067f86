"""One file per stage, with its `Spec` (a frozen record), `Files` and `main`; each is a command to run by hand, too.

Stages may use the science and the artefacts, never the plan. `main` imports torch inside the function, so that the plan
can read the specs without it.
"""
