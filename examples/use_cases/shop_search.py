"""E-commerce with search: orders change prices and stock, and the search index follows the topic.

The index is Elasticsearch, written by a connector with the product's id as the document's: a change
replaces the document, a record without a value deletes it. `make demo` runs the shop's services.
"""

from stage import Stage, ask

with Stage(__doc__) as stage:
    from support.elasticsearch import elasticsearch_missing, running_elasticsearch

    if reason := elasticsearch_missing():
        raise SystemExit(reason)
    stage.topics("products", partitions=2, cleanup_policy="compact")
    stage.topics("shop-orders")
    count = 20 if stage.short else 500
    search = stage.server(running_elasticsearch())
    stage.connector(
        stage.service("connect"),
        "search",
        **{
            "connector.class": "ElasticsearchSink",
            "topics": "products",
            "connection.url": search.url,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "schema.ignore": "true",
            "behavior.on.null.values": "delete",
        },
    )
    products = {
        f"p{number}": {"name": f"{'red' if number % 2 else 'blue'} chair", "stock": 5, "price": 40}
        for number in range(count)
    }
    for key, product in products.items():
        stage.send("products", key, product)
    for number in range(0, count, 2):
        stage.send("shop-orders", f"o{number}", {"product": f"p{number}", "quantity": 2})
        products[f"p{number}"]["stock"] -= 2
        stage.send("products", f"p{number}", products[f"p{number}"])
    del products["p1"]
    stage.send("products", "p1", None)
    stage.producer.flush()
    stage.fact("products", lambda: len(products))
    stage.until(lambda: search.documents("products") == products, "the index is up to date")
    stage.check(
        "the index has every product, as it is now", search.documents("products") == products
    )
    query = {"query": {"match": {"name": "red"}}, "size": 0}
    found = ask(f"{search.url}/products/_search", query)["hits"]["total"]
    stage.fact("red chairs found", lambda: found)
    stage.check(
        "a search finds the red ones",
        found == sum("red" in each["name"] for each in products.values()),
    )
