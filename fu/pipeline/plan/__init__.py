"""From settings to jobs: which there are, what each reads, what it costs, which have to run. Nothing here runs one."""
