"""What the plan tells Snakemake: which jobs are to run, which files survive."""


def by_hand():
    """Whether the user forces jobs (-F, -f, -R)."""
    asked = workflow.dag_settings
    forced = asked.forceall or asked.forcetargets or asked.forcerun
    return bool(forced) and workflow.is_main_process


def known(stage):
    """Return the input function of a stage, which tells Snakemake what the plan has found."""

    def inputs(wildcards):
        job = plan.job(stage, dict(wildcards))
        if not workflow.is_main_process:
            return job.inputs
        reason = pending.reason(job)
        if reason and reason.kind != "new":  # absent outputs are made anyway
            workflow.dag.forcefiles.add(job.certificate)
        # A job that does not run does not need its absent inputs.
        idle = pending.idle(job, workflow.dag_settings.targets) and not by_hand()
        return {
            name: [
                path if pending.made_again(path) else ancient(path)
                for path in paths
                if not idle or os.path.exists(path)
            ]
            for name, paths in job.listed.items()
        }

    return unpack(inputs)


def kept(stage):
    """Return the outputs of a stage, which survive if the job that would replace them fails."""
    return {name: update(path) for name, path in plan.paths.outputs(stage).items()}


def unless_made(wildcards):
    """Return the flag that ends a job at once if its inputs were remade with equal contents."""
    return "" if by_hand() else "--unless-made"
