import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Values;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;
import org.apache.kafka.common.record.TimestampType;

/**
 * What Kafka's own classes make of cases: a file with one in JSON per line, an answer per line.
 * Records, schemas and values of cases with an `input` are written as in the shared vectors.
 */
public class ConnectAnswers {
    private static final ObjectMapper JSON = new ObjectMapper()
        .enable(com.fasterxml.jackson.databind.DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);
    private static final String DATA = "org.apache.kafka.connect.data.";
    private static final String TRANSFORMS = "org.apache.kafka.connect.transforms.";
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    public static void main(String[] arguments) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        Locale.setDefault(Locale.ROOT);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (BufferedReader in =
                new BufferedReader(new FileReader(arguments[0], StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                ObjectNode answer = NODES.objectNode();
                try {
                    answer(JSON.readTree(line), answer);
                } catch (Exception error) {
                    answer.removeAll();
                    answer.put("error", error.getClass().getSimpleName());
                    answer.put("message", error.getMessage());
                }
                out.println(JSON.writeValueAsString(answer));
            }
        }
        out.flush();
    }

    private static void answer(JsonNode given, ObjectNode into) throws Exception {
        switch (given.get("kind").asText()) {
            case "parse" -> {
                SchemaAndValue found = Values.parseString(given.get("text").asText());
                found = found == null ? SchemaAndValue.NULL : found;
                put(into, found.schema(), found.value());
            }
            case "json" -> {
                JsonConverter converter = new JsonConverter();
                converter.configure(config(given.get("config")), false);
                SchemaAndValue found = converter.toConnectData("t", bytes(given.get("text")));
                put(into, found.schema(), found.value());
                byte[] back = converter.fromConnectData("t", found.schema(), found.value());
                into.put("back", back == null ? null : new String(back, StandardCharsets.UTF_8));
            }
            case "values_to_string" -> {
                SchemaAndValue data = both(given.get("input"));
                into.put("text", Values.convertToString(data.schema(), data.value()));
            }
            case "header_to_connect" -> {
                byte[] text = rawBytes(given.get("input"));
                SchemaAndValue found = new SimpleHeaderConverter().toConnectHeader("t", "h", text);
                put(into, found.schema(), found.value());
            }
            case "connect_to_header" -> {
                SchemaAndValue data = both(given.get("input"));
                into.set("bytes", value(new SimpleHeaderConverter()
                    .fromConnectHeader("t", "h", data.schema(), data.value())));
            }
            case "converter_to_connect" -> {
                SchemaAndValue found = converter(given).toConnectData("t", rawBytes(given.get("input")));
                put(into, found.schema(), found.value());
            }
            case "converter_from_connect" -> {
                SchemaAndValue data = both(given.get("input"));
                Converter converter = converter(given);
                into.set("bytes", value(converter.fromConnectData("t", data.schema(), data.value())));
            }
            case "predicate" -> predicate(given, into);
            case "record" -> {
                ConnectRecord<?> record = record(given.get("input"));
                transformRecord(given, record, into);
            }
            default -> transform(given, into);
        }
    }

    private static Converter converter(JsonNode given) throws Exception {
        Class<?> kind = Class.forName(given.get("converter").asText());
        Converter made = (Converter) kind.getDeclaredConstructor().newInstance();
        made.configure(config(given.get("config")), given.path("key").asBoolean());
        return made;
    }

    @SuppressWarnings("unchecked")
    private static void predicate(JsonNode given, ObjectNode into) throws Exception {
        Class<?> kind = Class.forName(TRANSFORMS + "predicates." + given.get("predicate").asText());
        Predicate<SourceRecord> made =
            (Predicate<SourceRecord>) kind.getDeclaredConstructor().newInstance();
        made.configure(config(given.get("config")));
        into.put("found", made.test((SourceRecord) record(given.get("input"))));
    }

    @SuppressWarnings("unchecked")
    private static <R extends ConnectRecord<R>> void transformRecord(
            JsonNode given, ConnectRecord<?> record, ObjectNode into) throws Exception {
        Class<?> kind = Class.forName(TRANSFORMS + given.get("smt").asText());
        try (Transformation<R> made =
                (Transformation<R>) kind.getDeclaredConstructor().newInstance()) {
            made.configure(config(given.get("config")));
            put(into, made.apply((R) record));
        }
    }

    private static void put(ObjectNode into, ConnectRecord<?> found) {
        if (found == null) {
            into.putNull("dropped");
            return;
        }
        into.put("topic", found.topic());
        into.put("timestamp", found.timestamp());
        put(into.putObject("key"), found.keySchema(), found.key());
        put(into.putObject("value"), found.valueSchema(), found.value());
        ArrayNode headers = into.putArray("headers");
        found.headers().forEach(each ->
            put(headers.addObject().put("key", each.key()), each.schema(), each.value()));
    }

    // Cases as the shared vectors write them.

    private static ConnectRecord<?> record(JsonNode given) {
        SchemaAndValue key = both(given.get("key"));
        SchemaAndValue value = both(given.get("value"));
        String topic = given.get("topic").isNull() ? null : given.get("topic").asText();
        Integer partition = given.hasNonNull("partition") ? given.get("partition").asInt() : null;
        Long at = given.hasNonNull("timestamp") ? given.get("timestamp").asLong() : null;
        ConnectHeaders headers = new ConnectHeaders();
        given.path("headers").forEach(each -> {
            SchemaAndValue data = both(each);
            headers.add(each.get("key").asText(), data.value(), data.schema());
        });
        if (given.path("kind").asText().equals("sink")) {
            return new SinkRecord(topic, partition == null ? 0 : partition, key.schema(),
                key.value(), value.schema(), value.value(), given.get("offset").asLong(), at,
                TimestampType.CREATE_TIME, headers);
        }
        return new SourceRecord(null, null, topic, partition, key.schema(), key.value(),
            value.schema(), value.value(), at, headers);
    }

    private static SchemaAndValue both(JsonNode node) {
        if (node == null || node.isNull()) {
            return SchemaAndValue.NULL;
        }
        Schema schema = schemaOf(node.get("schema"));
        return new SchemaAndValue(schema, valueOf(schema, node.get("value")));
    }

    private static Schema schemaOf(JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        if (node.isTextual()) {
            String name = node.asText();
            boolean optional = name.endsWith("?");
            SchemaBuilder made = new SchemaBuilder(
                Schema.Type.valueOf(name.replace("?", "").toUpperCase(Locale.ROOT)));
            return optional ? made.optional().build() : made.build();
        }
        SchemaBuilder made = switch (node.get("type").asText()) {
            case "array" -> SchemaBuilder.array(schemaOf(node.get("items")));
            case "map" -> SchemaBuilder.map(schemaOf(node.get("keys")), schemaOf(node.get("values")));
            default -> new SchemaBuilder(
                Schema.Type.valueOf(node.get("type").asText().toUpperCase(Locale.ROOT)));
        };
        if (node.path("optional").asBoolean()) {
            made.optional();
        }
        if (node.hasNonNull("name")) {
            made.name(node.get("name").asText());
        }
        if (node.hasNonNull("version")) {
            made.version(node.get("version").asInt());
        }
        if (node.hasNonNull("doc")) {
            made.doc(node.get("doc").asText());
        }
        node.path("parameters").fields().forEachRemaining(
            each -> made.parameter(each.getKey(), each.getValue().asText()));
        node.path("fields").forEach(
            each -> made.field(each.get("field").asText(), schemaOf(each.get("schema"))));
        if (node.hasNonNull("default")) {
            made.defaultValue(valueOf(made, node.get("default")));
        }
        return made.build();
    }

    private static Object valueOf(Schema schema, JsonNode node) {
        if (schema == null) {
            return plain(node);
        }
        if (node == null || node.isNull()) {
            return null;
        }
        if (schema.name() != null && schema.name().startsWith(DATA)) {
            return schema.name().endsWith("Decimal")
                ? new BigDecimal(node.asText()) : new java.util.Date(node.asLong());
        }
        return switch (schema.type()) {
            case INT8 -> (byte) node.asLong();
            case INT16 -> (short) node.asLong();
            case INT32 -> (int) node.asLong();
            case INT64 -> node.asLong();
            case FLOAT32 -> Float.valueOf(node.asText());
            case FLOAT64 -> Double.valueOf(node.asText());
            case BOOLEAN -> node.asBoolean();
            case STRING -> node.asText();
            case BYTES -> Base64.getDecoder().decode(node.asText());
            case ARRAY -> {
                List<Object> items = new ArrayList<>();
                node.forEach(each -> items.add(valueOf(schema.valueSchema(), each)));
                yield items;
            }
            case MAP -> {
                Map<Object, Object> map = new HashMap<>();
                if (node.isObject()) {
                    node.fields().forEachRemaining(each ->
                        map.put(each.getKey(), valueOf(schema.valueSchema(), each.getValue())));
                } else {
                    node.forEach(each -> map.put(valueOf(schema.keySchema(), each.get(0)),
                        valueOf(schema.valueSchema(), each.get(1))));
                }
                yield map;
            }
            case STRUCT -> {
                Struct made = new Struct(schema);
                for (Field each : schema.fields()) {
                    if (node.hasNonNull(each.name())) {
                        made.put(each.name(), valueOf(each.schema(), node.get(each.name())));
                    }
                }
                yield made;
            }
        };
    }

    private static Object plain(JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        if (node.isTextual()) {
            return node.asText();
        }
        if (node.isBoolean()) {
            return node.asBoolean();
        }
        if (node.isIntegralNumber()) {
            return node.asLong();
        }
        if (node.isNumber()) {
            return node.asDouble();
        }
        if (node.isArray()) {
            List<Object> items = new ArrayList<>();
            node.forEach(each -> items.add(plain(each)));
            return items;
        }
        if (node.size() == 1 && node.fieldNames().next().startsWith("$")) {
            JsonNode inner = node.elements().next();
            return switch (node.fieldNames().next()) {
                case "$int8" -> (byte) inner.asInt();
                case "$int16" -> (short) inner.asInt();
                case "$int32" -> inner.asInt();
                case "$float32" -> Float.valueOf(inner.asText());
                case "$float64" -> Double.valueOf(inner.asText());
                case "$bytes" -> Base64.getDecoder().decode(inner.asText());
                case "$decimal" -> new BigDecimal(inner.asText());
                case "$bigint" -> new java.math.BigInteger(inner.asText());
                case "$date_ms" -> new java.util.Date(inner.asLong());
                case "$pairs" -> {
                    Map<Object, Object> map = new HashMap<>();
                    inner.forEach(each -> map.put(plain(each.get(0)), plain(each.get(1))));
                    yield map;
                }
                default -> throw new IllegalStateException(node.toString());
            };
        }
        Map<Object, Object> map = new HashMap<>();
        node.fields().forEachRemaining(each -> map.put(each.getKey(), plain(each.getValue())));
        return map;
    }

    private static byte[] rawBytes(JsonNode node) {
        if (node.isNull()) {
            return null;
        }
        return node.isTextual() ? bytes(node) : Base64.getDecoder().decode(node.get("$bytes").asText());
    }

    @SuppressWarnings("unchecked")
    private static void transform(JsonNode given, ObjectNode into) throws Exception {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", given.get("schemas").asText()), false);
        SchemaAndValue key = data(converter, given.get("key"));
        SchemaAndValue value = data(converter, given.get("value"));
        Long timestamp = given.get("timestamp").isNull() ? null : given.get("timestamp").asLong();
        SourceRecord record = new SourceRecord(
            null, null, given.get("topic").asText(), 0, key.schema(), key.value(), value.schema(),
            value.value(), timestamp);
        Class<?> kind = Class.forName(TRANSFORMS + given.get("smt").asText());
        Object made = kind.getDeclaredConstructor().newInstance();
        try (Transformation<SourceRecord> transform = (Transformation<SourceRecord>) made) {
            transform.configure(config(given.get("config")));
            put(into, transform.apply(record));
        }
    }

    private static Map<String, String> config(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        if (node != null) {
            node.fields().forEachRemaining(
                each -> found.put(each.getKey(), each.getValue().asText()));
        }
        return found;
    }

    private static byte[] bytes(JsonNode text) {
        return text.asText().getBytes(StandardCharsets.UTF_8);
    }

    private static SchemaAndValue data(JsonConverter converter, JsonNode text) {
        return text.isNull() ? SchemaAndValue.NULL : converter.toConnectData("t", bytes(text));
    }

    private static void put(ObjectNode into, Schema schema, Object value) {
        into.set("schema", schema(schema));
        into.set("value", value(value));
    }

    private static JsonNode schema(Schema schema) {
        if (schema == null) {
            return NODES.nullNode();
        }
        ObjectNode made = NODES.objectNode();
        made.put("type", schema.type().getName());
        made.put("optional", schema.isOptional());
        made.put("name", schema.name());
        made.put("version", schema.version());
        made.put("doc", schema.doc());
        made.set("default", value(schema.defaultValue()));
        ObjectNode parameters = made.putObject("parameters");
        if (schema.parameters() != null) {
            new TreeMap<>(schema.parameters()).forEach(parameters::put);
        }
        switch (schema.type()) {
            case ARRAY -> made.set("items", schema(schema.valueSchema()));
            case MAP -> {
                made.set("keys", schema(schema.keySchema()));
                made.set("values", schema(schema.valueSchema()));
            }
            case STRUCT -> {
                ArrayNode fields = made.putArray("fields");
                for (Field each : schema.fields()) {
                    fields.addArray().add(each.name()).add(schema(each.schema()));
                }
            }
            default -> { }
        }
        return made;
    }

    /** With a letter for its type, as JSON has fewer types. */
    private static JsonNode value(Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        if (value instanceof Boolean flag) {
            return NODES.booleanNode(flag);
        }
        if (value instanceof Float || value instanceof Double) {
            return NODES.textNode("f:" + ((Number) value).doubleValue());
        }
        if (value instanceof BigDecimal number) {
            return NODES.textNode("d:" + number.toPlainString());
        }
        if (value instanceof Number number) {
            return NODES.textNode("i:" + number);
        }
        if (value instanceof byte[] data) {
            return NODES.textNode("b:" + Base64.getEncoder().encodeToString(data));
        }
        if (value instanceof ByteBuffer data) {
            byte[] copy = new byte[data.remaining()];
            data.duplicate().get(copy);
            return NODES.textNode("b:" + Base64.getEncoder().encodeToString(copy));
        }
        if (value instanceof java.util.Date time) {
            return NODES.textNode("t:" + time.getTime());
        }
        if (value instanceof Collection<?> items) {
            ArrayNode made = NODES.arrayNode();
            items.forEach(each -> made.add(value(each)));
            return made;
        }
        if (value instanceof Map<?, ?> map) {
            return map(map);
        }
        if (value instanceof Struct struct) {
            ObjectNode made = NODES.objectNode();
            for (Field each : struct.schema().fields()) {
                made.set(each.name(), value(struct.getWithoutDefault(each.name())));
            }
            return made;
        }
        return NODES.textNode("s:" + value);
    }

    /** A list of pairs in the order of their texts: the order of a map says nothing. */
    private static JsonNode map(Map<?, ?> map) {
        List<ArrayNode> pairs = new ArrayList<>();
        map.forEach((key, each) -> pairs.add(NODES.arrayNode().add(value(key)).add(value(each))));
        ArrayNode made = NODES.arrayNode().add("map");
        pairs.sort((one, other) -> one.get(0).toString().compareTo(other.get(0).toString()));
        pairs.forEach(made::add);
        return made;
    }
}
