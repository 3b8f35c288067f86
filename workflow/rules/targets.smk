# One target per paper and one per artefact: `snakemake fedosd`, `snakemake fedosd_table8`.
for paper in plan.papers:

    rule:
        name:
            paper
        input:
            plan.targets(*(key for key in plan.artefacts if key[0] == paper)),


for key in plan.artefacts:

    rule:
        name:
            "_".join(key)
        input:
            plan.targets(key),
