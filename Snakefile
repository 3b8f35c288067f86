# The workflow is workflow/Snakefile; after an `include:` a plain `snakemake` would have no target.
workflow.include("workflow/Snakefile", overwrite_default_target=True)
