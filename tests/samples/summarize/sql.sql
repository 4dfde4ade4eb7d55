-- Boats and who rows them.
-- Copyright 1994 Ada Björk

/* The boats themselves. */
CREATE TABLE IF NOT EXISTS boats (
  id integer PRIMARY KEY,
  name text DEFAULT 'CREATE TABLE not_this'
);
create unique index boats_by_name on boats (name);
CREATE OR REPLACE VIEW "long boats" AS SELECT * FROM boats;
CREATE OR REPLACE FUNCTION harbour.row(strokes integer) RETURNS void AS $$ $$ LANGUAGE sql;
CREATE TRIGGER floats AFTER INSERT ON boats EXECUTE PROCEDURE check_water();
INSERT INTO `rowers` VALUES (1, 'it''s Ada');
ALTER TABLE boats ADD COLUMN oars integer;
