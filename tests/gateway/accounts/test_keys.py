import hashlib
import hmac
import math
import re

import pytest

from memory_gateway.gateway.accounts.keys import is_user_key, key_hash, new_user_key


def test_a_key_is_a_prefix_256_random_bits_and_a_checksum() -> None:
    key = new_user_key()
    assert re.fullmatch(r"mgw_[0-9A-Za-z]{49}", key)
    assert math.log2(62**43) > 256
    assert is_user_key(key)


def test_no_two_keys_are_the_same() -> None:
    assert len({new_user_key() for _ in range(1000)}) == 1000


def test_the_checksum_of_a_known_key_never_changes() -> None:
    assert is_user_key("mgw_" + "0" * 43 + "1XVwot") is True


@pytest.mark.parametrize("position", [4, 20, 46, 52])
def test_one_wrong_character_is_seen_without_asking_the_gateway(position: int) -> None:
    key = new_user_key()
    other = "a" if key[position] != "a" else "b"
    assert not is_user_key(key[:position] + other + key[position + 1 :])


@pytest.mark.parametrize("text", ["", "mgw_", "mgx_" + "0" * 49, "mgw_" + "0" * 48 + "\n", "mgw_" + "é" * 49])
def test_what_has_not_the_form_is_no_key(text: str) -> None:
    assert not is_user_key(text)


def test_only_a_keyed_hash_is_ever_stored() -> None:
    assert key_hash("mgw_x", b"secret") == hmac.new(b"secret", b"mgw_x", hashlib.sha256).hexdigest()
    assert key_hash("mgw_x", b"secret") != key_hash("mgw_x", b"other secret")


def test_a_text_longer_than_any_key_costs_no_more_than_none() -> None:
    assert key_hash("x" * 257, b"secret") == key_hash("", b"secret")
