from packaging.requirements import Requirement
from packaging.version import Version

from tests.engines.__main__ import admitted


def test_the_oldest_snakemake_is_the_least_that_the_newest_admits() -> None:
    versions = admitted()
    oldest, newest = Requirement(versions["oldest"]), Requirement(versions["newest"])
    (least,) = oldest.specifier
    assert (oldest.name, newest.name, least.operator) == ("snakemake", "snakemake", "==")
    assert newest.specifier.contains(Version(least.version))
