CREATE TABLE user_names (
  folded_id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL
);
INSERT INTO user_names (folded_id, user_id) SELECT folded_id, user_id FROM users;
CREATE TABLE engine_space_names (
  user_id TEXT NOT NULL,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  space_no INTEGER NOT NULL,
  PRIMARY KEY (user_id, app_id, project_id)
) WITHOUT ROWID;
INSERT INTO engine_space_names (user_id, app_id, project_id, space_no)
SELECT user_id, app_id, project_id, space_no FROM engine_spaces;
CREATE TABLE memory_user_numbers (
  user_id TEXT PRIMARY KEY,
  user_no INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO memory_user_numbers (user_id, user_no) SELECT user_id, user_no FROM memory_users;
