from tests.engines.__main__ import REPOSITORY, admitted


def test_the_oldest_snakemake_is_what_the_workflow_and_the_readme_ask_for() -> None:
    oldest = admitted()["oldest"].removeprefix("snakemake==")
    assert f'min_version("{oldest}")' in (REPOSITORY / "workflow/Snakefile").read_text()
    assert f"[![Snakemake {oldest} or later]" in (REPOSITORY / "README.md").read_text()
