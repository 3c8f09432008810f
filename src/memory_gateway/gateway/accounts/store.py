"""All SQL on accounts and keys.

A key stops (`stops_at`) when another replaces it, and is closed (`closed_at`) when its user's erasure begins.
`users` is the list of accounts itself, so a few statements look over all of it: the check that an id is free, the
admin's list, and the erasures that are not finished.
"""

TAKE_NAME = """
INSERT INTO user_names (folded_id, user_id) VALUES (:folded_id, :user_id) ON CONFLICT (folded_id) DO NOTHING
"""
INSERT_USER = """
INSERT INTO users (user_id, folded_id, created_at) VALUES (:user_id, :folded_id, :created_at)
"""
INSERT_KEY = """
INSERT INTO user_keys (user_id, key_hash, created_at) VALUES (:user_id, :key_hash, :created_at)
"""
FIND_KEY = """
SELECT key_hash, stops_at, closed_at FROM user_keys WHERE user_id = :user_id AND key_hash = :key_hash
"""
FIND_USER = "SELECT user_id, created_at, erased_at FROM users WHERE user_id = :user_id"
FIND_TAKEN_ID = "SELECT user_id FROM user_names WHERE folded_id = :folded_id"
LIST_USERS = "SELECT user_id, created_at, erased_at FROM users ORDER BY user_id"
LIST_KEYS = "SELECT created_at, stops_at FROM user_keys WHERE user_id = :user_id ORDER BY created_at"

STOP_KEYS = """
UPDATE user_keys SET stops_at = :stops_at WHERE user_id = :user_id AND (stops_at IS NULL OR stops_at > :stops_at)
"""
DELETE_STOPPED_KEYS = "DELETE FROM user_keys WHERE user_id = :user_id AND stops_at <= :now"
CLOSE_KEYS = "UPDATE user_keys SET closed_at = :now WHERE user_id = :user_id AND closed_at IS NULL"
DELETE_KEYS = "DELETE FROM user_keys WHERE user_id = :user_id"

MARK_ERASED = "UPDATE users SET erased_at = :now WHERE user_id = :user_id AND erased_at IS NULL"
MARK_CLEARED = "UPDATE users SET cleared_at = :now WHERE user_id = :user_id AND cleared_at IS NULL"
MARK_SETTLED = "UPDATE users SET settled_at = :now WHERE user_id = :user_id"
UNFINISHED_ERASURES = """
SELECT user_id, cleared_at FROM users
WHERE erased_at IS NOT NULL AND (cleared_at IS NULL OR (settled_at IS NULL AND cleared_at <= :settles_at))
ORDER BY user_id
"""
