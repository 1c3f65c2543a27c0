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
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Values;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** What Kafka's own classes make of cases: a file with one in JSON per line, an answer per line. */
public class ConnectAnswers {
    private static final ObjectMapper JSON = new ObjectMapper();
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
            default -> transform(given, into);
        }
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
        String name = "org.apache.kafka.connect.transforms." + given.get("smt").asText();
        Object made = Class.forName(name).getDeclaredConstructor().newInstance();
        try (Transformation<SourceRecord> transform = (Transformation<SourceRecord>) made) {
            transform.configure(config(given.get("config")));
            SourceRecord found = transform.apply(record);
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
    }

    private static Map<String, String> config(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        node.fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
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
