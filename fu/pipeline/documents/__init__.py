"""The generated documents: plug-ins, settings, kept runs, verdicts and reports. No job imports it."""
