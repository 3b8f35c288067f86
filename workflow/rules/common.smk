"""What the plan tells Snakemake: which jobs are to run, which files survive."""


def by_hand():
    """Whether a person forces jobs (-F, -f, -R)."""
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
        if reason and reason.kind != "new":  # what is absent is made anyway
            workflow.dag.forcefiles.add(job.certificate)
        # An absent input of what does not run is not needed.
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
    """Return the outputs of a stage, which survive where a job fails that would have replaced them."""
    return {name: update(path) for name, path in plan.paths.outputs(stage).items()}


def unless_made(wildcards):
    """Return what ends a job at once where its inputs were made again with equal contents."""
    return "" if by_hand() else "--unless-made"
