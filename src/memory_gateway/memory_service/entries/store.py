"""All SQL on memory entries. Every statement names the user by number or by id, but for the last two.

``entry_key`` is ``user_no * 2^32 + entry_no``: the rows of a user lie together, in the order of their making, whatever
others do. ``+user_no`` keeps SQLite from walking an index of the user where a range of keys is meant.
"""

FIND_USER = "SELECT user_no FROM memory_user_numbers WHERE user_id = :user_id"
CREATE_USER = "INSERT INTO memory_users (user_id) VALUES (:user_id) RETURNING user_no"
NUMBER_USER = "INSERT INTO memory_user_numbers (user_id, user_no) VALUES (:user_id, :user_no)"
LOAD_USER = """
SELECT user_id, last_entry_no, change_no, unindexed_count, indexed_count, segment_count, signature_stamp
FROM memory_users WHERE user_no = :user_no
"""
SAVE_USER = """
UPDATE memory_users SET last_entry_no = :last_entry_no, change_no = :change_no, unindexed_count = :unindexed_count,
  indexed_count = :indexed_count, segment_count = :segment_count, signature_stamp = :signature_stamp
WHERE user_no = :user_no
"""

ENTRY = """
SELECT id, content, summary, category, priority, importance, keywords, session_id, source, access_count, last_access,
  created_at, updated_at, expires_at, entry_key, summary_derived, bigram_count
FROM memory_entries WHERE user_no = :user_no AND entry_key = :entry_key
"""
INSERT_ENTRY = """
INSERT INTO memory_entries (
  entry_key, user_no, importance, priority, category, expires_at, content_hash, change_no, bigram_count, access_count,
  last_access, id, source, created_at, updated_at, session_id, summary_derived, keywords, summary, content, folded
) VALUES (
  :entry_key, :user_no, :importance, :priority, :category, :expires_at, :content_hash, :change_no, :bigram_count,
  :access_count, :last_access, :id, :source, :created_at, :updated_at, :session_id, :summary_derived, :keywords,
  :summary, :content, :folded
) ON CONFLICT (id, user_no) DO NOTHING
"""
UPDATE_ENTRY = """
UPDATE memory_entries SET
  importance = :importance, priority = :priority, category = :category, expires_at = :expires_at,
  content_hash = :content_hash, change_no = :change_no, bigram_count = :bigram_count, access_count = :access_count,
  last_access = :last_access, source = :source, updated_at = :updated_at, summary_derived = :summary_derived,
  keywords = :keywords, summary = :summary, content = :content, folded = :folded
WHERE user_no = :user_no AND entry_key = :entry_key
"""
DELETE_ENTRY = "DELETE FROM memory_entries WHERE user_no = :user_no AND entry_key = :entry_key"
COUNT_ACCESSES = """
UPDATE memory_entries SET access_count = access_count + :accesses,
  last_access = CASE WHEN last_access < :last_access THEN :last_access ELSE last_access END
WHERE user_no = :user_no AND entry_key = :entry_key
"""
DEMOTE = """
UPDATE memory_entries SET priority = priority - 1, demoted_at = :now, change_no = :change_no
WHERE user_no = :user_no AND entry_key = :entry_key
"""

LIST = """
SELECT id, content, summary, category, priority, importance, keywords, session_id, source, access_count, last_access,
  created_at, updated_at, expires_at, entry_key, summary_derived, bigram_count
FROM memory_entries
WHERE user_no = :user_no AND importance >= :min_importance AND (expires_at IS NULL OR expires_at > :now)
ORDER BY importance DESC, priority DESC, entry_key DESC LIMIT :limit OFFSET :offset
"""
LIST_CATEGORY = """
SELECT id, content, summary, category, priority, importance, keywords, session_id, source, access_count, last_access,
  created_at, updated_at, expires_at, entry_key, summary_derived, bigram_count
FROM memory_entries
WHERE user_no = :user_no AND category = :category AND importance >= :min_importance
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY importance DESC, priority DESC, entry_key DESC LIMIT :limit OFFSET :offset
"""
PAGE_BY_KEY = """
SELECT id, content, summary, category, priority, importance, keywords, session_id, source, access_count, last_access,
  created_at, updated_at, expires_at, entry_key, summary_derived, bigram_count
FROM memory_entries
WHERE +user_no = :user_no AND entry_key > :after AND entry_key <= :last ORDER BY entry_key LIMIT :limit
"""

COUNT_ENTRIES = """
INSERT INTO memory_counts (user_no, category, importance, entries) VALUES (:user_no, :category, :importance, :change)
ON CONFLICT (user_no, category, importance) DO UPDATE SET entries = memory_counts.entries + excluded.entries
"""
COUNTS = """
SELECT category, CAST(SUM(entries) AS BIGINT) FROM memory_counts
WHERE user_no = :user_no AND importance >= :min_importance GROUP BY category
"""
EXPIRED_COUNTS = """
SELECT category, COUNT(*) FROM memory_entries
WHERE user_no = :user_no AND expires_at <= :now AND importance >= :min_importance GROUP BY category
"""

ADD_SENTENCE = """
INSERT INTO memory_sentences (user_no, sentence_hash, entry_no) VALUES (:user_no, :sentence_hash, :entry_no)
"""
DROP_SENTENCE = """
DELETE FROM memory_sentences WHERE user_no = :user_no AND sentence_hash = :sentence_hash AND entry_no = :entry_no
"""
SENTENCE_HOLDERS = """
SELECT entry_no FROM memory_sentences
WHERE user_no = :user_no AND sentence_hash = :sentence_hash AND entry_no >= :first ORDER BY entry_no LIMIT :limit
"""

SIGNATURES = """
SELECT chunk_no, records FROM memory_signatures
WHERE user_no = :user_no AND level = :level AND chunk_no >= :first ORDER BY chunk_no
"""
APPEND_SIGNATURES = """
INSERT INTO memory_signatures (user_no, level, chunk_no, records) VALUES (:user_no, :level, :chunk_no, :records)
ON CONFLICT (user_no, level, chunk_no) DO UPDATE
SET records = CAST(memory_signatures.records || excluded.records AS BLOB)
"""
DROP_SIGNATURES = """
DELETE FROM memory_signatures WHERE user_no = :user_no AND level = :level AND chunk_no < :first
"""

MARK_UNINDEXED = """
INSERT INTO memory_unindexed (user_no, entry_key) VALUES (:user_no, :entry_key)
ON CONFLICT (user_no, entry_key) DO NOTHING
"""
UNMARK_UNINDEXED = "DELETE FROM memory_unindexed WHERE user_no = :user_no AND entry_key = :entry_key"
UNMARK_ALL_UNINDEXED = "DELETE FROM memory_unindexed WHERE user_no = :user_no"
UNINDEXED_TEXTS = """
SELECT e.entry_key, e.folded
FROM memory_unindexed u JOIN memory_entries e ON e.user_no = u.user_no AND e.entry_key = u.entry_key
WHERE u.user_no = :user_no
"""
TEXTS = """
SELECT entry_key, folded FROM memory_entries
WHERE +user_no = :user_no AND entry_key > :after AND entry_key <= :last ORDER BY entry_key LIMIT :limit
"""
APPEND_POSTINGS = """
INSERT INTO memory_postings (user_no, bucket, block_no, postings) VALUES (:user_no, :bucket, :block_no, :postings)
ON CONFLICT (user_no, bucket, block_no) DO UPDATE
SET postings = CAST(memory_postings.postings || excluded.postings AS BLOB)
"""
DROP_POSTINGS = "DELETE FROM memory_postings WHERE user_no = :user_no"
POSTINGS_SIZE = """
SELECT CAST(COALESCE(SUM(LENGTH(postings)), 0) AS BIGINT) FROM memory_postings
WHERE user_no = :user_no AND bucket = :bucket
"""
POSTINGS = "SELECT postings FROM memory_postings WHERE user_no = :user_no AND bucket = :bucket ORDER BY block_no"

KEYS_AT_ONCE = 64
UNINDEXED_CANDIDATES = """
SELECT e.entry_key, e.importance, e.content_hash, e.category, e.expires_at, e.folded
FROM memory_unindexed u JOIN memory_entries e ON e.user_no = u.user_no AND e.entry_key = u.entry_key
WHERE u.user_no = :user_no
"""
CANDIDATES = """
SELECT entry_key, importance, content_hash, category, expires_at, folded FROM memory_entries
WHERE +user_no = :user_no AND entry_key IN (
  :key_0, :key_1, :key_2, :key_3, :key_4, :key_5, :key_6, :key_7, :key_8, :key_9, :key_10, :key_11, :key_12,
  :key_13, :key_14, :key_15, :key_16, :key_17, :key_18, :key_19, :key_20, :key_21, :key_22, :key_23, :key_24,
  :key_25, :key_26, :key_27, :key_28, :key_29, :key_30, :key_31, :key_32, :key_33, :key_34, :key_35, :key_36,
  :key_37, :key_38, :key_39, :key_40, :key_41, :key_42, :key_43, :key_44, :key_45, :key_46, :key_47, :key_48,
  :key_49, :key_50, :key_51, :key_52, :key_53, :key_54, :key_55, :key_56, :key_57, :key_58, :key_59, :key_60,
  :key_61, :key_62, :key_63
)
"""
SCAN = """
SELECT entry_key, importance, content_hash, category, expires_at, '' FROM memory_entries
WHERE +user_no = :user_no AND entry_key > :after AND entry_key <= :last AND folded LIKE :pattern ESCAPE '\\'
ORDER BY entry_key LIMIT :limit
"""
SCAN_TEXTS = """
SELECT entry_key, importance, content_hash, category, expires_at, folded FROM memory_entries
WHERE +user_no = :user_no AND entry_key > :after AND entry_key <= :last AND folded LIKE :pattern ESCAPE '\\'
ORDER BY entry_key LIMIT :limit
"""

CONTENTS = """
SELECT entry_key, change_no, content, importance, priority FROM memory_entries
WHERE +user_no = :user_no AND entry_key > :after AND entry_key <= :last
  AND (expires_at IS NULL OR expires_at > :now) ORDER BY entry_key LIMIT :limit
"""
CONTENT = """
SELECT entry_key, change_no, content, importance, priority FROM memory_entries
WHERE user_no = :user_no AND entry_key = :entry_key
"""
CHANGES = """
SELECT entry_key, change_no FROM memory_entries
WHERE +user_no = :user_no AND entry_key > :after AND entry_key <= :last
  AND (expires_at IS NULL OR expires_at > :now) ORDER BY entry_key LIMIT :limit
"""

DECAY_CANDIDATES = """
SELECT entry_key, category, priority, importance, access_count, last_access, demoted_at, expires_at FROM memory_entries
WHERE +user_no = :user_no AND entry_key > :after AND entry_key <= :last
  AND (last_access < :idle_before OR expires_at <= :now) ORDER BY entry_key
"""

ERASE = (
    "DELETE FROM memory_entries WHERE user_no = :user_no",
    "DELETE FROM memory_counts WHERE user_no = :user_no",
    "DELETE FROM memory_sentences WHERE user_no = :user_no",
    "DELETE FROM memory_signatures WHERE user_no = :user_no",
    "DELETE FROM memory_unindexed WHERE user_no = :user_no",
    "DELETE FROM memory_postings WHERE user_no = :user_no",
    "DELETE FROM memory_users WHERE user_no = :user_no",
    "DELETE FROM memory_user_numbers WHERE user_id = :user_id",
)

FIND_BY_ID = """
SELECT id, content, summary, category, priority, importance, keywords, session_id, source, access_count, last_access,
  created_at, updated_at, expires_at, entry_key, summary_derived, bigram_count, u.user_id
FROM memory_entries e JOIN memory_users u ON u.user_no = e.user_no
WHERE e.id = :id AND e.user_no = :user_no
"""
FIND_BY_ID_ALONE = """
SELECT id, content, summary, category, priority, importance, keywords, session_id, source, access_count, last_access,
  created_at, updated_at, expires_at, entry_key, summary_derived, bigram_count, u.user_id
FROM memory_entries e JOIN memory_users u ON u.user_no = e.user_no
WHERE e.id = :id
"""
USER_IDS = "SELECT user_id FROM memory_user_numbers WHERE user_id > :after ORDER BY user_id LIMIT :limit"
