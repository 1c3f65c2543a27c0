"""Change data capture: rows of PostgreSQL in a search index and a cache, moments after each change.

The source reads the database's replication log; nothing in the application has to change. Two sinks
follow its topic: Elasticsearch for search, Redis as a cache.
"""

import json

from stage import Stage

UNWRAP = {
    # Debezium's form has before and after; the row after the change is the document.
    "transforms": "after,id",
    "transforms.after.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
    "transforms.after.field": "after",
    "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.id.field": "id",
}

with Stage(__doc__) as stage:
    from support.elasticsearch import elasticsearch_missing, running_elasticsearch
    from support.postgres import postgres_missing, running_postgres
    from support.redis import redis_missing, running_redis

    if reason := elasticsearch_missing() or postgres_missing() or redis_missing():
        raise SystemExit(reason)
    database = stage.server(running_postgres())
    search = stage.server(running_elasticsearch())
    cache = stage.server(running_redis())
    rows = stage.server(database.connect(autocommit=True))
    rows.execute("CREATE TABLE customers (id int PRIMARY KEY, name text, city text)")
    rows.execute("INSERT INTO customers VALUES (1, 'Ada', 'Prague'), (2, 'Bob', 'Linz')")

    worker = stage.service("connect")
    stage.connector(
        worker,
        "database",
        **{
            "connector.class": "PostgresCdc",
            "database.hostname": "127.0.0.1",
            "database.port": database.port,
            "database.user": "moldau",
            "database.dbname": "postgres",
            "topic.prefix": "shop",
            "table.include.list": "public.customers",
        },
    )
    topics = {"topics": "shop.public.customers"}
    stage.connector(
        worker,
        "search",
        **topics,
        **UNWRAP,
        **{
            "connector.class": "ElasticsearchSink",
            "connection.url": search.url,
            "schema.ignore": "true",
            "behavior.on.null.values": "delete",
        },
    )
    stage.connector(
        worker,
        "cache",
        **topics,
        **UNWRAP,
        **{
            "connector.class": "RedisSink",
            "redis.uri": cache.uri,
            "redis.key": "customer",
            "key.converter.schemas.enable": "false",
        },
    )
    redis = cache.client()

    def table() -> dict[str, dict]:
        found = rows.execute("SELECT id, name, city FROM customers").fetchall()
        return {str(row[0]): {"id": row[0], "name": row[1], "city": row[2]} for row in found}

    def cached() -> dict[str, dict]:
        return {
            key.partition(":")[2]: json.loads(redis.get(key)) for key in redis.keys("customer:*")
        }

    def same() -> bool:
        return table() == search.documents("shop.public.customers") == cached()

    stage.fact("rows", lambda: len(table()))
    stage.until(same, "the first rows have arrived")
    stage.check("what was there is in the index and in the cache", same())
    for number in range(3, 10 if stage.short else 200):
        rows.execute(
            "INSERT INTO customers VALUES (%s, %s, 'Pisek')", (number, f"Customer {number}")
        )
    rows.execute("UPDATE customers SET city = 'Budweis' WHERE id = 1")
    rows.execute("DELETE FROM customers WHERE id = 2")
    stage.until(same, "the changes have arrived")
    stage.check("inserts, updates and deletes have followed", same())
    stage.check("the cache answers with the new city", cached()["1"]["city"] == "Budweis")
