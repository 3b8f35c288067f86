"""What the plan tells Snakemake: which jobs are to run, which files survive."""


def by_hand():
    """Whether the user forces jobs (-F, -f, -R)."""
    asked = workflow.dag_settings
    forced = asked.forceall or asked.forcetargets or asked.forcerun
    return bool(forced) and workflow.is_main_process


@cache
def ordered():
    """Return the jobs that this submitted process was told to run; where it runs them itself, prepare for several."""
    told = {
        (job.rulename, frozenset(job.wildcards_dict.items()))
        for job in workflow.dag_settings.target_jobs
    }
    workflow.scheduling_settings.max_jobs_per_timespan = None  # see profiles/default
    if workflow.local_exec:
        gc.enable()
        workflow.execution_settings.keep_going = True
        if len(told) > 1:
            fork_server.start()
    return told


@cache
def places():
    """Return where in packs the jobs of this run are submitted."""
    targets = workflow.dag_settings.targets or ["all"]
    asked = [job for target in targets for job in plan.wanted(target)]
    due = [job for job, _ in pending.to_make(asked)]
    jobs = plan.behind(asked) if by_hand() else due
    found = groups.places(plan, jobs, 60 * site.pack_minutes)
    join({place.pack for place in found.values()})
    return found


def join(packs):
    """Have Snakemake submit each pack as one job, though not all in it depend on each other."""
    workflow.group_settings.group_components = dict.fromkeys(packs, sys.maxsize)


def pack(stage):
    """Return the function that names the pack in which a job is submitted; None where all jobs run on their own."""
    if not snapshot.INSIDE:
        return None

    def name(wildcards):
        if workflow.is_main_process:
            place = places().get(plan.job(stage, dict(wildcards)).certificate)
            return place and place.pack
        join({"pack"})
        return "pack" if len(ordered()) > 1 else None

    return name


def needs(stage):
    """Return the resources of a stage: what a job is started with, and what it asks of a cluster."""
    computes = groups.computes(stage)
    here = not snapshot.INSIDE or stage in groups.HERE

    def minutes(wildcards, attempt):
        job = plan.job(stage, dict(wildcards))
        place = places().get(job.certificate) if submits and not here else None
        if place is None:
            return cluster.minutes(job.minutes, attempt, limit)
        return place.minutes(
            job, cluster.minutes(estimates.minutes(place.seconds), attempt, limit)
        )

    return {
        "mem_mb": lambda wildcards: plan.job(stage, dict(wildcards)).mem_mb,
        "runtime": minutes,
        "plugins": plan.config.plugins or "",
        **({"device": plan.config.device} if computes else {}),
        **({} if here else {"turn": 1, **site.resources(gpu and computes)}),
    }


def packs():
    """Return the name of the pack of each job that is submitted with others, by certificate."""
    return {certificate: place.pack for certificate, place in places().items()}


def give_up(numbers):
    """Have the scheduler not submit jobs again that would fail again."""
    for job in list(workflow.scheduler.running):
        if numbers & {one.jobid for one in (job.jobs if job.is_group() else [job])}:
            job.attempt = job.restart_times + 1


def end_at_once(*_):
    """End on SIGTERM, as when a login node restarts: Snakemake would wait for all jobs in the queue."""
    workflow.persistence.unlock()
    shown.end()
    print(
        "error: ended by SIGTERM; jobs in the queue go on, and the same command goes on from what they make.",
        file=sys.stderr,
        flush=True,
    )
    os._exit(128 + signal.SIGTERM)


def known(stage):
    """Return the input function of a stage, which tells Snakemake what the plan has found."""

    def inputs(wildcards):
        job = plan.job(stage, dict(wildcards))
        if not workflow.is_main_process:
            return (
                job.inputs if (stage, frozenset(wildcards.items())) in ordered() else {}
            )
        reason = pending.reason(job)
        if reason and reason.kind != "new":  # absent outputs are made anyway
            workflow.dag.forcefiles.add(job.certificate)
        # A job that does not run does not need its absent inputs.
        idle = pending.idle(job, workflow.dag_settings.targets) and not by_hand()
        return {
            name: [
                (
                    path
                    if pending.made_again(path)
                    else ancient(snapshot.file(path) if name == "published" else path)
                )
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
    forced = by_hand() if workflow.is_main_process else snapshot.planned()["forced"]
    return "" if forced else "--unless-made"
