import hashlib
import hmac
import math
import re

from memory_gateway.gateway.accounts import keys
from memory_gateway.gateway.accounts.keys import key_hash, new_user_key


def test_a_key_is_a_prefix_256_random_bits_and_a_checksum_of_all_before_it() -> None:
    key = new_user_key()
    assert re.fullmatch(r"mgw_[0-9A-Za-z]{49}", key)
    assert math.log2(62**43) > 256
    assert key[-6:] == keys._checksum(key[:-6])


def test_no_two_keys_are_the_same() -> None:
    assert len({new_user_key() for _ in range(1000)}) == 1000


def test_the_checksum_of_a_known_key_never_changes() -> None:
    """Scanners outside compute it too."""
    assert keys._checksum("mgw_" + "0" * 43) == "1XVwot"


def test_only_a_keyed_hash_is_ever_stored() -> None:
    assert key_hash("mgw_x", b"secret") == hmac.new(b"secret", b"mgw_x", hashlib.sha256).hexdigest()
    assert key_hash("mgw_x", b"secret") != key_hash("mgw_x", b"other secret")


def test_a_text_longer_than_any_key_costs_no_more_than_none() -> None:
    assert key_hash("x" * 257, b"secret") == key_hash("", b"secret")
