-- Spreads Memory Gateway's tables over the nodes of a Citus cluster. Run it once on the coordinator, after
-- `CREATE EXTENSION citus` and after the first start has made the tables, while no gateway is running:
--
--     psql -v ON_ERROR_STOP=1 -f citus.sql "$DATABASE_URL"
--
-- Rows of one value of a group's column lie together on one node.

-- What a gateway knows of a user
SELECT create_distributed_table('users', 'user_id', colocate_with => 'none');
SELECT create_distributed_table('user_keys', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('user_resources', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('memory_attachments', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('file_intents', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('idempotency_keys', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('shown_memories', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('memory_tombstones', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('memory_overrides', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('audit_log', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('sent_messages', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('outbox', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('engine_space_names', 'user_id', colocate_with => 'users');
SELECT create_distributed_table('memory_user_numbers', 'user_id', colocate_with => 'users');

-- Names that are taken
SELECT create_distributed_table('user_names', 'folded_id', colocate_with => 'none');

-- Whose a session is
SELECT create_distributed_table('session_owners', 'session_id', colocate_with => 'none');

-- The engine's memory, a space at a time
SELECT create_distributed_table('engine_spaces', 'space_no', colocate_with => 'none');
SELECT create_distributed_table('engine_participants', 'space_no', colocate_with => 'engine_spaces');
SELECT create_distributed_table('engine_segments', 'space_no', colocate_with => 'engine_spaces');
SELECT create_distributed_table('engine_messages', 'space_no', colocate_with => 'engine_spaces');
SELECT create_distributed_table('engine_turns', 'space_no', colocate_with => 'engine_spaces');
SELECT create_distributed_table('engine_columns', 'space_no', colocate_with => 'engine_spaces');
SELECT create_distributed_table('engine_postings', 'space_no', colocate_with => 'engine_spaces');
SELECT create_distributed_table('engine_vectors', 'space_no', colocate_with => 'engine_spaces');
SELECT create_distributed_table('engine_cases', 'space_no', colocate_with => 'engine_spaces');

-- The Memory-Service's entries
SELECT create_distributed_table('memory_users', 'user_no', colocate_with => 'none');
SELECT create_distributed_table('memory_entries', 'user_no', colocate_with => 'memory_users');
SELECT create_distributed_table('memory_counts', 'user_no', colocate_with => 'memory_users');
SELECT create_distributed_table('memory_sentences', 'user_no', colocate_with => 'memory_users');
SELECT create_distributed_table('memory_signatures', 'user_no', colocate_with => 'memory_users');
SELECT create_distributed_table('memory_unindexed', 'user_no', colocate_with => 'memory_users');
SELECT create_distributed_table('memory_postings', 'user_no', colocate_with => 'memory_users');

-- The Memory-Service's thinking logs
SELECT create_distributed_table('thinking_logs', 'shard_key', colocate_with => 'none');

-- Requests a user may still make
SELECT create_distributed_table('token_buckets', 'name', colocate_with => 'none');

-- Of no user, small
SELECT create_reference_table('schema_migrations');
SELECT create_reference_table('leases');
