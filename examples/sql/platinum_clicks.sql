-- Clicks of platinum users: a stream of clicks, each with what a table knows of its user.
SET 'auto.offset.reset' = 'earliest';

CREATE TABLE IF NOT EXISTS users (
    user_id STRING PRIMARY KEY,
    name STRING,
    level STRING
) WITH (kafka_topic = 'users', value_format = 'JSON', partitions = 1);

CREATE STREAM IF NOT EXISTS clicks (
    user_id STRING KEY,
    page STRING
) WITH (kafka_topic = 'clicks', value_format = 'JSON', partitions = 1);

CREATE STREAM IF NOT EXISTS platinum_clicks AS
    SELECT clicks.user_id AS user_id, users.name AS name, clicks.page AS page
    FROM clicks
    LEFT JOIN users ON clicks.user_id = users.user_id
    WHERE users.level = 'Platinum';

INSERT INTO users (ROWTIME, user_id, name, level) VALUES (1000, 'u1', 'Ada', 'Platinum');
INSERT INTO users (ROWTIME, user_id, name, level) VALUES (1000, 'u2', 'Grace', 'Gold');
INSERT INTO clicks (ROWTIME, user_id, page) VALUES (2000, 'u1', '/offers');
INSERT INTO clicks (ROWTIME, user_id, page) VALUES (2000, 'u2', '/help');
INSERT INTO clicks (ROWTIME, user_id, page) VALUES (2000, 'nobody', '/');
INSERT INTO clicks (ROWTIME, user_id, page) VALUES (3000, 'u1', '/cart');

SELECT name, page FROM platinum_clicks EMIT CHANGES LIMIT 2;
