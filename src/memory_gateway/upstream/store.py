"""The SQL that the upstream asks of the gateway's tables."""

FIND_ERASED = "SELECT user_id FROM users WHERE user_id = :user_id AND erased_at IS NOT NULL"
