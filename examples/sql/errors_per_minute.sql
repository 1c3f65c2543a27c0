-- Errors of a web server, counted by code and minute.
SET 'auto.offset.reset' = 'earliest';
-- Show every change, also of rows that change again soon.
SET 'statestore.cache.max.bytes' = '0';

CREATE STREAM IF NOT EXISTS requests (
    path STRING KEY,
    code INT,
    moment BIGINT
) WITH (
    kafka_topic = 'requests',
    value_format = 'JSON',
    partitions = 1,
    timestamp = 'moment'
);

CREATE TABLE IF NOT EXISTS errors_per_minute AS
    SELECT code, COUNT(*) AS errors
    FROM requests
    WINDOW TUMBLING (SIZE 1 MINUTE)
    WHERE code >= 400
    GROUP BY code;

-- Two errors 503 in the first minute, one 404 in the second, and a request that went well.
INSERT INTO requests (path, code, moment) VALUES ('/cart', 503, 1700000000000);
INSERT INTO requests (path, code, moment) VALUES ('/cart', 503, 1700000009000);
INSERT INTO requests (path, code, moment) VALUES ('/', 200, 1700000010000);
INSERT INTO requests (path, code, moment) VALUES ('/nothing', 404, 1700000070000);

SELECT code, WINDOWSTART, errors FROM errors_per_minute EMIT CHANGES LIMIT 3;
