# One target per paper, artefact and scenario with oracles: `snakemake fedosd fedosd_table8 audit/mnist-backdoor`.
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


for scenario in plan.repeated:

    rule:
        name:
            scenario
        input:
            plan.paths("oracles", "archive", scenario=scenario),
