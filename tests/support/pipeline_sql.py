"""SQL steps over a source with known columns: what Spark accepts, and what it refuses."""

from __future__ import annotations

SCHEMA = "id STRING, amount DOUBLE, at TIMESTAMP, tags ARRAY<STRING>"

#: Each with a part of the message that `validate` has for it.
REFUSED = [
    ("SELECT id, FROM input", "expected an expression, found 'FROM'"),
    ("SELECT id FRM input", "unknown word 'FRM' (did you mean FROM?)"),
    ("SELECT id FROM input WHER amount > 1", "unknown word 'WHER' (did you mean WHERE?)"),
    ("SELECT (id FROM input", "expected ')', found 'FROM'"),
    ("SELECT id FROM input GROUP id", "expected BY, found 'id'"),
    ("SELECT 'abc FROM input", "this text is not closed: ' is missing"),
    ("SELECT id FROM input WHERE amount >", "expected an expression, found the end"),
    ("SELECT CAST(id AS BIGNT) FROM input", "unknown type 'BIGNT' (did you mean BIGINT?)"),
    ("SELECT id FROM input i JION input j ON 1", "unknown word 'JION' (did you mean JOIN?)"),
    ("SELECT CASE WHEN id THEN 1 FROM input", "expected END, found 'FROM'"),
    ("INSERT INTO t SELECT 1", "INSERT is not a query"),
    ("SELECT id FROM inputt", "there is no view 'inputt' (did you mean input?)"),
    ("SELECT i.idd FROM input i", "there is no column 'i.idd' (did you mean id?)"),
    ("SELECT amount AS a FROM input WHERE a > 1", "there is no column 'a'"),
    ("SELECT x FROM (SELECT id FROM input)", "there is no column 'x' (there is id)"),
    ("WITH t AS (SELECT id FROM input) SELECT amount FROM t", "there is no column 'amount'"),
    ("SELECT transform(tags, t -> t + u) FROM input", "there is no column 'u'"),
    ("SELECT id FROM input WHERE id IN (SELECT idd FROM input)", "there is no column 'idd'"),
    ("SELECT id FROM input UNION ALL SELECT idd FROM input", "there is no column 'idd'"),
    ("SELECT count(*) FROM input GROUP BY idd", "there is no column 'idd'"),
]

ACCEPTED = [
    "SELECT * FROM input;",
    "select ID, Amount from INPUT where _offset > 5",
    "SELECT window.start AS s, sum(amount) FROM input GROUP BY window(at, '1 minute')",
    "SELECT session_window, count(*) FROM input GROUP BY session_window(at, '5 minutes'), id",
    "SELECT amount * 2 AS twice, twice + 1 AS more FROM input ORDER BY more DESC NULLS LAST",
    "SELECT id AS k, count(*) n FROM input GROUP BY k HAVING n > 1",
    "SELECT a.id, b.amount FROM input a LEFT JOIN input b ON a.id = b.id AND a.at > b.at",
    "SELECT id FROM input LEFT SEMI JOIN (SELECT id AS other FROM input) ON id = other",
    "SELECT id FROM input WHERE at > now() - INTERVAL 1 DAY 2 HOURS AND id NOT LIKE 'a%'",
    "SELECT CASE amount WHEN 1 THEN 'a' ELSE 'b' END FROM input WHERE amount BETWEEN 1 AND 2",
    "SELECT row_number() OVER (PARTITION BY id ORDER BY at DESC) AS r FROM input",
    "SELECT tags[0], size(tags) FROM input WHERE size(tags) > 0 AND tags[0] IN (id, 'a')",
    "SELECT filter(tags, (t, i) -> i > 0 AND t <> ''), named_struct('a', id).a FROM input",
    "SELECT explode(tags) AS tag FROM input -- a comment",
    "SELECT `id`, sum(amount) FILTER (WHERE amount > 0) AS `a sum` FROM input GROUP BY ALL",
    "SELECT * EXCEPT (tags), extract(HOUR FROM at) AS h, DATE '2026-01-01' AS d FROM input",
    "SELECT id::INT, -amount, amount % 2 = 0 OR NOT (amount <=> NULL) FROM input",
    "SELECT count(DISTINCT id), percentile(amount, array(0.5, .9)) FROM input",
    "SELECT id, tag FROM input LATERAL VIEW explode(tags) t AS tag",
    "SELECT * FROM input PIVOT (sum(amount) FOR id IN ('a', 'b'))",
    "FROM input |> WHERE amount > 1 |> SELECT id",
    "VALUES (1, 'a')",
]
