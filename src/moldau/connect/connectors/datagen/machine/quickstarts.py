"""The quick starts: schemas by name, written short.

Each is the field that becomes the record's key, the full name of the record, and its fields, each a
name and a hint. Names, types and ranges of ids are those of Confluent's Datagen, so that tutorials
and joins work as written.
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


_USER: Final = _regex("User_[1-9]")
_REGION: Final = _regex("Region_[1-9]")
_GENDER: Final = _options("MALE", "FEMALE", "OTHER")
_FIRST: Final = _options("Ada", "Grace", "Alan", "Linus", "Barbara", "Edsger", "Margaret", "Ken")
_LAST: Final = _options("Lovelace", "Hopper", "Turing", "Liskov", "Dijkstra", "Hamilton", "Dvorak")
_CITY: Final = _options("Palo Alto", "London", "Prague", "Vienna", "Raleigh", "Frankfurt")
_IP: Final = _options(
    "111.152.45.45", "111.203.236.146", "111.168.57.122", "122.249.79.233", "122.168.57.222",
    "222.152.45.45", "222.245.174.248", "233.90.225.227", "233.173.215.103",
)  # fmt: skip
#: Few enough that records of two quick starts meet in a join.
_PRODUCT: Final = _regex("5f3a7c1e-0d2b-4a6f-9b8c-0000000000[0-4][0-9]")
_CUSTOMER: Final = _regex("c1e0d2b4-7a6f-4b8c-8d5f-0000000000[0-4][0-9]")
_DAY: Final = {**_range("int", 18000, 19000), "logicalType": "date"}
_MOMENT: Final = {**_count("long", 1609459200000, 100000), "logicalType": "timestamp-millis"}
_USERS: Final[Fields] = {
    "registertime": _range("long", 1487715775521, 1519273364600),
    "userid": _USER,
    "regionid": _REGION,
    "gender": _GENDER,
}

QUICKSTARTS: Final[dict[str, tuple[str, str, Fields]]] = {
    "pageviews": ("viewtime", "ksql.pageviews", {
        "viewtime": _count("long", 1, 10),
        "userid": _USER,
        "pageid": _regex("Page_[1-9][0-9]"),
    }),
    "users": ("userid", "ksql.users", _USERS),
    "users_": ("userid", "ksql.users", {
        **_USERS,
        "interests": {"type": "array", "items": _options("News", "Travel", "Sport", "Movies"),
                      "arg.properties": {"length": {"min": 1, "max": 3}}},
        "contactinfo": {"type": "map", "values": _regex("[0-9]{10}"),
                        "arg.properties": {"length": 2}},
    }),
    "orders": ("orderid", "ksql.orders", {
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
    "ratings": ("rating_id", "ksql.ratings", {
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
    "stock_trades": ("symbol", "ksql.StockTrade", {
        "side": _options("BUY", "SELL"),
        "quantity": _range("int", 1, 5000),
        "symbol": _options("ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"),
        "price": _range("int", 5, 1000),
        "account": _options("ABC123", "LMN456", "XYZ789"),
        "userid": _regex("User_[1-9]{0,1}"),
    }),
    "transactions": ("transaction_id", "datagen.example.transactions", {
        "transaction_id": _count("long", 1),
        "card_id": _range("long", 1, 20),
        "user_id": _regex("User_[1-9]{0,1}"),
        "purchase_id": _count("long", 0),
        "store_id": _range("int", 1, 8),
    }),
    "credit_cards": ("card_id", "datagen.example.users", {
        "card_id": _count("int", 1, restart=21),
        "card_number": _range("long", 4000000000000000, 6999999999999999),
        "cvv": _range("int", 100, 999),
        "expiration_date": _regex("(0[1-9]|1[0-2])/2[6-9]"),
    }),
    "stores": ("store_id", "datagen.example.stores", {
        "store_id": _count("int", 1, restart=9),
        "city": _CITY,
        "state": _options("CA", "NC", "NY", "TX"),
    }),
    "purchases": ("id", "datagen.example.purchase", {
        "id": _count("long", 0),
        "item_type": _options("boots", "shirt", "table", "chair", "clock", "guitar", "scarf"),
        "quantity": _range("long", 1, 10),
        "price_per_unit": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2,
                           "arg.properties": {"range": {"min": 10.0, "max": 50.0}}},
    }),
    "product": ("id", "ksql.product", {
        "id": _count("long", 0),
        "name": _options("chess", "violin", "lamp", "kettle", "notebook", "bicycle"),
        "description": _regex("[a-z]{6,12} [a-z]{4,9}"),
        "price": _range("double", 1.0, 500.0),
    }),
    "inventory": ("id", "ksql.inventory", {
        "id": _count("long", 0),
        "quantity": _count("long", 0),
        "productid": _count("long", 0),
    }),
    "clickstream": ("ip", "clickstream.events", {
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
    "clickstream_codes": ("code", "clickstream.codes", {
        "code": _count("int", 200, restart=408),
        "definition": _options("Successful", "Redirect", "Page not found", "Not allowed"),
    }),
    "clickstream_users": ("user_id", "clickstream.users", {
        "user_id": _count("int", 1),
        "username": _regex("[a-z]{4,8}_[0-9]{2}"),
        "registered_at": _range("long", 1407645330000, 1502339792000),
        "first_name": _FIRST,
        "last_name": _LAST,
        "city": _CITY,
        "level": _options("Gold", "Silver", "Platinum"),
    }),
    "pizza_orders": ("store_id", "pizza_orders.pizza_orders", {
        "store_id": _range("int", 1, 10),
        "store_order_id": _count("int", 1000),
        "coupon_code": _range("int", 1000, 2000),
        "date": _DAY,
        "status": _options("accepted"),
        "order_lines": {"type": "array", "arg.properties": {"length": {"min": 1, "max": 4}},
                        "items": _record("order_line", {
                            "product_id": _range("int", 0, 100),
                            "category": _options("pizza", "salad", "wings", "calzone"),
                            "quantity": _range("int", 1, 6),
                            "unit_price": _range("double", 2.0, 30.0),
                            "net_price": _range("double", 2.0, 150.0),
                        })},
    }),
    "pizza_orders_completed": ("store_id", "pizza_orders.pizza_orders_completed", {
        "store_id": _range("int", 1, 10),
        "store_order_id": _count("int", 1000, 2),
        "date": _DAY,
        "status": _options("completed"),
        "rack_time_secs": _range("int", 130, 230),
        "order_delivery_time_secs": _range("int", 1100, 2000),
    }),
    "pizza_orders_cancelled": ("store_id", "pizza_orders.pizza_orders_cancelled", {
        "store_id": _range("int", 1, 10),
        "store_order_id": _count("int", 1001, 2),
        "date": _DAY,
        "status": _options("cancelled"),
    }),
    "shoes": ("id", "shoes.shoe_product", {
        "id": _PRODUCT,
        "brand": _options("Okuneva-McLaughlin", "Jones-Stokes", "Beer-D'Amore"),
        "name": _options("Pro 427", "TrailRunner Air 164", "Perf 12"),
        "sale_price": _range("int", 4900, 19900),
        "rating": _range("double", 0.0, 5.0),
    }),
    "shoe_customers": ("id", "shoes.shoe_customers", {
        "id": _CUSTOMER,
        "first_name": _FIRST,
        "last_name": _LAST,
        "email": _regex("[a-z]{3,8}[0-9]{1,2}@example\\.com"),
        "phone": _regex("[2-9][0-9]{2}-[0-9]{3}-[0-9]{4}"),
        "street_address": _regex("[1-9][0-9]{1,3} (Oak|Elm|Main|Mill) Street"),
        "state": _options("California", "Texas", "Florida"),
        "zip_code": _regex("[0-9]{5}"),
        "country": _options("United States"),
        "country_code": _options("US"),
    }),
    "shoe_orders": ("order_id", "shoes.shoe_orders", {
        "order_id": _count("int", 1000),
        "product_id": _PRODUCT,
        "customer_id": _CUSTOMER,
        "ts": _MOMENT,
    }),
    "shoe_clickstream": ("product_id", "shoes.shoe_clickstream", {
        "product_id": _PRODUCT,
        "user_id": _CUSTOMER,
        "view_time": _range("int", 10, 120),
        "page_url": _regex("https://www[.]acme[.]com/product/[a-z]{5}"),
        "ip": _IP,
        "ts": _MOMENT,
    }),
    "device_information": ("device_ip", "device_information.device_information", {
        "device_ip": _IP,
        "mac_address": _regex("[0-9A-F]{2}(:[0-9A-F]{2}){5}"),
        "owner": _FIRST,
    }),
    "siem_logs": ("hostname", "siem_logs.siem_logs", {
        "hostname": _IP,
        "action": _options("allow", "deny"),
        "l4": _options("tcp"),
        "access_group": _options("group-1", "group-2", "group-3", "group-4", "admin"),
        "source": _record("source", {"ip": _IP, "port": _range("int", 10000, 99999)}),
        "destination": _record("destination", {"ip": _IP, "port": _range("int", 10000, 99999)}),
    }),
    "syslog_logs": ("host", "syslogs.syslog_logs", {
        "name": _regex("[a-zA-Z]{5,8}"),
        "type": _options("RFC5424", "RFC3164", "CEF", "UNKNOWN"),
        "message": _regex("[a-z ]{10,15}"),
        "host": _IP,
        "version": _options("3.25.1"),
        "tag": _options(".source.s_src"),
        "level": _range("int", 0, 191),
        "facility": _options("syslog", "authpriv", "cron"),
        "severity": _range("int", 0, 8),
        "appName": _regex("[A-Z]{5,8}"),
        "remoteAddress": _IP,
        "rawMessage": _regex("[a-z ]{10,15}"),
        "processId": _regex("[1-9][0-9]{6}"),
        "messageId": _regex("[1-9][0-9]{2}"),
        "deviceVendor": _regex("[a-z]{5}"),
        "deviceProduct": _regex("[a-z]{5}"),
        "deviceVersion": _options("1.0", "2.0", "3.0", "4.0", "5.0"),
        "ts": _count("long", 1609459200000, 100),
    }),
    "fleet_mgmt_sensors": ("vehicle_id", "fleet_mgmt.fleet_mgmt_sensors", {
        "vehicle_id": _range("int", 1000, 9999),
        "engine_temperature": _range("int", 150, 250),
        "average_rpm": _range("int", 1800, 5000),
    }),
    "fleet_mgmt_description": ("vehicle_id", "fleet_mgmt.fleet_mgmt_description", {
        "vehicle_id": _range("int", 1000, 9999),
        "driver_name": _regex("(Ada|Grace|Alan|Ken) (Hopper|Turing|Liskov|Dvorak)"),
        "license_plate": _regex("[A-Z]{2}[0-9]{6}[A-Z]"),
    }),
    "fleet_mgmt_location": ("vehicle_id", "fleet_mgmt.fleet_mgmt_location", {
        "vehicle_id": _range("int", 1000, 9999),
        "location": _record("location", {
            "latitude": _range("double", 37.0, 41.0),
            "longitude": _range("double", -122.0, -116.0),
        }),
        "ts": _MOMENT,
    }),
    "gaming_player_activity": ("player_id", "gaming.gaming_player_activity", {
        "player_id": _range("int", 1000, 1100),
        "game_room_id": _range("int", 1000, 5000),
        "points": _range("int", 10, 500),
        "coordinates": _regex("\\[[0-9]{1,2},[0-9]{1,2}\\]"),
    }),
    "gaming_games": ("id", "gaming.gaming_games", {
        "id": _range("int", 1000, 5000),
        "room_name": _regex("(Arcade|Survival|Classic) -- (Rookie|Skilled|Expert)"),
        "created_date": _MOMENT,
    }),
    "gaming_players": ("player_id", "gaming.gaming_players", {
        "player_id": _count("int", 1001, restart=1101),
        "player_name": _regex("(Ada|Grace|Alan|Ken) (Hopper|Turing|Liskov|Dvorak)"),
        "ip": _IP,
    }),
    "payroll_employee": ("employee_id", "payroll.payroll_employee", {
        "employee_id": _count("int", 1000, restart=1100),
        "first_name": _FIRST,
        "last_name": _LAST,
        "age": _range("int", 20, 67),
        "ssn": _regex("[0-9]{3}-[0-9]{2}-[0-9]{4}"),
        "hourly_rate": _range("int", 10, 25),
        "gender": _options("male", "female"),
        "email": _regex("[a-z]{3,8}@example\\.com"),
    }),
    "payroll_employee_location": ("employee_id", "payroll.payroll_employee_location", {
        "employee_id": _range("int", 1000, 1100),
        "lab": _regex("lab-[0-9]"),
        "department_id": _range("int", 1, 10),
        "arrival_date": _DAY,
    }),
    "payroll_bonus": ("employee_id", "payroll.payroll_bonus", {
        "employee_id": _range("int", 1000, 1100),
        "bonus": _range("int", 10, 50),
        "ts": {**_range("long", 1609459200000, 1640995199000), "logicalType": "timestamp-millis"},
    }),
    "insurance_offers": ("offer_id", "insurance.insurance_offers", {
        "offer_id": _count("int", 1, restart=6),
        "offer_name": _options("new_home_policy", "new_auto_policy", "safe_driver_program"),
        "offer_url": _regex("https://example[.]com/offers/[a-z]{5}"),
    }),
    "insurance_customers": ("customer_id", "insurance.insurance_customers", {
        "customer_id": _range("int", 1, 1000),
        "first_name": _FIRST,
        "last_name": _LAST,
        "email": _regex("[a-z]{3,8}@example\\.com"),
        "gender": _options("Male", "Female"),
        "income": _range("int", 20000, 500000),
        "fico": _range("int", 300, 900),
        "years_active": _range("int", 1, 45),
    }),
    "insurance_customer_activity": ("activity_id", "insurance.insurance_customer_activity", {
        "activity_id": _count("int", 1),
        "customer_id": _range("int", 1, 1000),
        "activity_type": _options("web_open", "mobile_open", "new_account"),
        "propensity_to_churn": _range("double", 0.01, 1.0),
        "ip_address": _IP,
    }),
    "campaign_finance": ("candidate_id", "datagen.campaign_finance", {
        "time": _range("long", 1587715775521, 1619273364600),
        "candidate_id": _regex("[A-Z][1-9]{8}"),
        "party_affiliation": _options("REP", "DEM", "IND"),
        "contribution": _range("int", 20, 3500),
    }),
}  # fmt: skip


def quickstart(name: str) -> tuple[str, dict[str, Any]]:
    """The key's field and the Avro schema; KeyError for an unknown name."""
    key, full_name, fields = QUICKSTARTS[name]
    namespace, _, record = full_name.rpartition(".")
    schema: dict[str, Any] = _record(record, fields)
    schema["namespace"] = namespace
    return key, schema
