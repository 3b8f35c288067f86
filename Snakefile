# The workflow is workflow/Snakefile; from here Snakemake also finds profiles/default.
include:
    "workflow/Snakefile", overwrite_default_target=True
