-- Cards with more than three authorisation attempts within 5 seconds.
SET 'auto.offset.reset' = 'earliest';

CREATE STREAM IF NOT EXISTS authorisations (
    card_number STRING KEY,
    amount DECIMAL(8, 2),
    moment BIGINT
) WITH (
    kafka_topic = 'authorisations',
    value_format = 'JSON',
    partitions = 1,
    timestamp = 'moment'
);

CREATE TABLE IF NOT EXISTS suspicious_cards AS
    SELECT card_number, COUNT(*) AS attempts
    FROM authorisations
    WINDOW TUMBLING (SIZE 5 SECONDS)
    GROUP BY card_number
    HAVING COUNT(*) > 3;

-- Four attempts with one card in three seconds, and four with another over a minute.
INSERT INTO authorisations VALUES ('4111-1', 10.00, 1700000000000);
INSERT INTO authorisations VALUES ('4111-1', 20.00, 1700000001000);
INSERT INTO authorisations VALUES ('4222-2', 10.00, 1700000001500);
INSERT INTO authorisations VALUES ('4111-1', 30.00, 1700000002000);
INSERT INTO authorisations VALUES ('4111-1', 40.00, 1700000003000);
INSERT INTO authorisations VALUES ('4222-2', 10.00, 1700000020000);
INSERT INTO authorisations VALUES ('4222-2', 10.00, 1700000040000);
INSERT INTO authorisations VALUES ('4222-2', 10.00, 1700000060000);

SELECT card_number, attempts FROM suspicious_cards EMIT CHANGES LIMIT 1;
