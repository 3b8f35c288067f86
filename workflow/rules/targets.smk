# One target per paper and one per artefact: `snakemake fedosd`, `snakemake fedosd_table8`.
for paper in plan.papers:

    rule:
        name:
            paper
        input:
            sorted(
                {
                    file
                    for key, files in targets.items()
                    if key[0] == paper
                    for file in files
                }
            ),


for (paper, artefact), files in targets.items():

    rule:
        name:
            f"{paper}_{artefact}"
        input:
            files,
