"""Seeds: drawn by name, equal everywhere and for ever."""

from fu.seeds import derive_integer


def test_a_seed_is_the_first_63_bits_of_a_hash_over_its_parts() -> None:
    assert derive_integer("abc") == 0xBA7816BF8F01CFEA >> 1  # SHA-256 of "abc", FIPS 180-4's example
    assert derive_integer(0, "partition") == 0xC98EA06A2AF8CEDA >> 1
    assert min(derive_integer(k) for k in range(1000)) >= 0
    assert max(derive_integer(k) for k in range(1000)) < 2**63


def test_seeds_of_other_names_differ() -> None:
    names = [(3, "a"), (3, "b"), (4, "a"), ("3a",), ("a", 3), (3, "a", 0), (3, "a", 1), (31,), (3, 1)]
    assert len({derive_integer(*name) for name in names}) == len(names)
    assert derive_integer(3, "a") == derive_integer("3", "a")
