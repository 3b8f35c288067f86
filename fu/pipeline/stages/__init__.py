"""One file per stage: its `Spec` (a frozen record), `Files` and `main`; a command that a person can paste.

May use the science and the artefacts, never the plan. A `main` imports torch inside the function, so that the plan can
read the specs without it.
"""
