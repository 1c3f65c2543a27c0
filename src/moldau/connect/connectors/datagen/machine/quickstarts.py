"""The quick starts: schemas by name, written short.

Each field is a name and a hint; `key` is the field that becomes the record's key. Names and fields
are those of Confluent's Datagen, so that tutorials work as written.
"""

from __future__ import annotations

from typing import Any, Final

Fields = dict[str, Any]


def _regex(pattern: str) -> Any:
    return {"type": "string", "arg.properties": {"regex": pattern}}


def _options(*values: Any, kind: str = "string") -> Any:
    return {"type": kind, "arg.properties": {"options": list(values)}}


def _range(kind: str, low: float, high: float) -> Any:
    return {"type": kind, "arg.properties": {"range": {"min": low, "max": high}}}


def _count(kind: str, start: int, step: int = 1, restart: int | None = None) -> Any:
    hints = {"start": start, "step": step, **({} if restart is None else {"restart": restart})}
    return {"type": kind, "arg.properties": {"iteration": hints}}


def _record(name: str, fields: Fields) -> Any:
    listed = [{"name": each, "type": kind} for each, kind in fields.items()]
    return {"type": "record", "name": name, "fields": listed}


_USER: Final = _regex("User_[1-9]{0,1}")
_REGION: Final = _regex("Region_[1-9]?")
_GENDER: Final = _options("MALE", "FEMALE", "OTHER")
_FIRST: Final = _options("Ada", "Grace", "Alan", "Linus", "Barbara", "Edsger", "Margaret", "Ken")
_LAST: Final = _options("Lovelace", "Hopper", "Turing", "Liskov", "Dijkstra", "Hamilton", "Dvorak")
_CITY: Final = _options("Palo Alto", "London", "Prague", "Vienna", "Raleigh", "Frankfurt")
_IP: Final = _options(
    "111.152.45.45", "111.203.236.146", "111.168.57.122", "122.249.79.233", "122.168.57.222",
    "222.152.45.45", "222.245.174.248", "233.90.225.227", "233.173.215.103",
)  # fmt: skip
_UUID: Final = _regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_USERS: Final[Fields] = {
    "registertime": _range("long", 1487715775521, 1519273364600),
    "userid": _USER,
    "regionid": _REGION,
    "gender": _GENDER,
}

QUICKSTARTS: Final[dict[str, tuple[str | None, str, Fields]]] = {
    "pageviews": ("userid", "pageviews", {
        "viewtime": _count("long", 1, 10),
        "userid": _USER,
        "pageid": _regex("Page_[1-9][0-9]?"),
    }),
    "users": ("userid", "users", _USERS),
    "users_": ("userid", "users", {
        **_USERS,
        "interests": {"type": "array", "items": _options("News", "Travel", "Sport", "Movies"),
                      "arg.properties": {"length": {"min": 1, "max": 3}}},
        "contactinfo": {"type": "map", "values": _regex("[0-9]{10}"),
                        "arg.properties": {"length": 2}},
    }),
    "orders": ("orderid", "orders", {
        "ordertime": _range("long", 1487715775521, 1519273364600),
        "orderid": _count("int", 0),
        "itemid": _regex("Item_[1-9][0-9]{0,2}"),
        "orderunits": _range("double", 0.1, 10.0),
        "address": _record("address", {
            "city": _regex("City_[1-9][0-9]?"),
            "state": _regex("State_[1-9][0-9]?"),
            "zipcode": _range("long", 10000, 99999),
        }),
    }),
    "ratings": ("rating_id", "ratings", {
        "rating_id": _count("long", 1),
        "user_id": _range("int", 1, 20),
        "stars": _range("int", 1, 5),
        "route_id": _range("int", 1, 10000),
        "rating_time": _count("long", 1, 12),
        "channel": _options("web", "ios", "android", "iOS-test", "ios-test"),
        "message": _options(
            "airport refurb looks great, will fly outta here more!",
            "Surprisingly good, maybe you are getting your mojo back at long last!",
            "your team here rocks!", "worst. flight. ever. #neveragain",
            "more peanuts please", "why is it so difficult to keep the bathrooms clean ?",
        ),
    }),
    "stock_trades": ("symbol", "StockTrade", {
        "side": _options("BUY", "SELL"),
        "quantity": _range("int", 1, 5000),
        "symbol": _options("ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"),
        "price": _range("int", 5, 1000),
        "account": _options("ABC123", "LMN456", "XYZ789"),
        "userid": _regex("User_[1-9]{0,1}"),
    }),
    "transactions": ("transaction_id", "transactions", {
        "transaction_id": _count("long", 1),
        "card_id": _range("long", 1, 20),
        "user_id": _regex("User_[1-9]{0,1}"),
        "purchase_id": _count("long", 0),
        "store_id": _range("int", 1, 8),
    }),
    "credit_cards": ("card_id", "credit_cards", {
        "card_id": _count("long", 1),
        "card_number": _regex("[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{4}"),
        "cvv": _regex("[0-9]{3}"),
        "expiration_date": _regex("(0[1-9]|1[0-2])/2[5-9]"),
    }),
    "stores": ("store_id", "stores", {
        "store_id": _count("int", 1, restart=9),
        "city": _CITY,
        "state": _options("CA", "NC", "NY", "TX"),
    }),
    "purchases": ("id", "purchases", {
        "id": _count("long", 0),
        "item_type": _options("best", "better", "good"),
        "quantity": _range("int", 1, 20),
        "price_per_unit": _range("double", 1.0, 99.0),
    }),
    "product": ("id", "product", {
        "id": _count("long", 0),
        "name": _options("chess", "violin", "lamp", "kettle", "notebook", "bicycle"),
        "description": _regex("[a-z]{6,12} [a-z]{4,9}"),
        "price": _range("double", 1.0, 500.0),
    }),
    "inventory": ("id", "inventory", {
        "id": _range("long", 0, 100),
        "quantity": _range("long", 1, 1000),
        "productid": _range("long", 0, 100),
    }),
    "clickstream": ("ip", "clickstream", {
        "ip": _IP,
        "userid": _range("int", 1, 38),
        "remote_user": _options("-"),
        "time": _regex("[0-9]{13}"),
        "_time": _count("long", 1, 10),
        "request": _options(
            "GET /index.html HTTP/1.1", "GET /site/user_status.html HTTP/1.1",
            "GET /site/login.html HTTP/1.1", "GET /images/track.png HTTP/1.1",
        ),
        "status": _options("200", "302", "404", "405", "406", "407"),
        "bytes": _options("278", "1289", "2048", "4096", "4006", "4196", "14096"),
        "referrer": _options("-"),
        "agent": _options("Mozilla/5.0 (compatible)", "curl/8.0"),
    }),
    "clickstream_codes": ("code", "clickstream_codes", {
        "code": _count("int", 200, restart=408),
        "definition": _options("Successful", "Redirect", "Page not found", "Not allowed"),
    }),
    "clickstream_users": ("user_id", "clickstream_users", {
        "user_id": _count("int", 1),
        "username": _regex("[a-z]{4,8}_[0-9]{2}"),
        "registered_at": _range("long", 1407645330000, 1502339792000),
        "first_name": _FIRST,
        "last_name": _LAST,
        "city": _CITY,
        "level": _options("Gold", "Silver", "Platinum"),
    }),
    "pizza_orders": ("store_id", "pizza_orders", {
        "store_id": _range("int", 0, 10),
        "store_order_id": _count("int", 1000),
        "coupon_code": _range("int", 1000, 2000),
        "date": _range("int", 18000, 19000),
        "status": _options("accepted"),
        "order_lines": {"type": "array", "arg.properties": {"length": {"min": 1, "max": 4}},
                        "items": _record("order_line", {
                            "product_id": _range("int", 0, 100),
                            "category": _options("pizza", "salad", "wings", "calzone"),
                            "quantity": _range("int", 1, 6),
                            "unit_price": _range("double", 2.0, 30.0),
                        })},
    }),
    "shoes": ("id", "shoes", {
        "id": _UUID,
        "brand": _options("Okuneva-McLaughlin", "Jones-Stokes", "Beer-D'Amore"),
        "name": _options("Pro 427", "TrailRunner Air 164", "Perf 12"),
        "sale_price": _range("int", 4900, 19900),
        "rating": _range("double", 0.0, 5.0),
    }),
    "shoe_customers": ("id", "shoe_customers", {
        "id": _UUID,
        "first_name": _FIRST,
        "last_name": _LAST,
        "email": _regex("[a-z]{3,8}[0-9]{1,2}@example\\.com"),
        "state": _options("California", "Texas", "Florida"),
    }),
    "shoe_orders": ("order_id", "shoe_orders", {
        "order_id": _count("int", 1000),
        "product_id": _UUID,
        "customer_id": _UUID,
        "ts": _count("long", 1609459200000, 100000),
    }),
    "device_information": ("device_ip", "device_information", {
        "device_ip": _regex("192\\.168\\.[0-9]{1,2}\\.[1-9][0-9]?"),
        "device_name": _regex("device_[1-9][0-9]?"),
        "owner": _FIRST,
    }),
    "fleet_mgmt_sensors": ("vehicle_id", "fleet_mgmt_sensors", {
        "vehicle_id": _range("int", 1000, 1010),
        "engine_temperature": _range("int", 150, 250),
        "average_rpm": _range("int", 1800, 5000),
    }),
    "gaming_player_activity": ("player_id", "gaming_player_activity", {
        "player_id": _range("int", 1000, 1100),
        "game_room_id": _range("int", 1000, 5000),
        "points": _range("int", 10, 500),
        "coordinates": _regex("\\[[0-9]{1,2},[0-9]{1,2}\\]"),
    }),
    "payroll_employee": ("employee_id", "payroll_employee", {
        "employee_id": _count("int", 1000),
        "first_name": _FIRST,
        "last_name": _LAST,
        "age": _range("int", 20, 67),
        "ssn": _regex("[0-9]{3}-[0-9]{2}-[0-9]{4}"),
        "hourly_rate": _range("int", 10, 20),
        "gender": _options("Male", "Female"),
        "email": _regex("[a-z]{3,8}@example\\.com"),
    }),
    "insurance_offers": ("offer_id", "insurance_offers", {
        "offer_id": _count("int", 1000),
        "offer_name": _options("new_customer", "long_term", "vehicle_bundle"),
        "customer_type": _options("personal", "business", "nonprofit"),
        "age": _range("int", 18, 80),
    }),
    "campaign_finance": ("cand_id", "campaign_finance", {
        "time": _count("long", 1609459200000, 1000),
        "cand_id": _regex("[HPS][0-9]{8}"),
        "party_affiliation": _options("DEM", "REP", "IND"),
        "contribution": _range("long", 100, 3000),
    }),
}  # fmt: skip


def quickstart(name: str) -> tuple[str | None, dict[str, Any]]:
    """The key's field and the Avro schema; KeyError for an unknown name."""
    key, record, fields = QUICKSTARTS[name]
    schema: dict[str, Any] = _record(record, fields)
    schema["namespace"] = "ksql"
    return key, schema
