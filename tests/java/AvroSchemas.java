import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaNormalization;

/**
 * What Apache Avro makes of schemas: a line of JSON for each line of JSON, {"text", "references",
 * "writer"?}. The answer has the schema's texts and fingerprint, and its incompatibilities with the
 * writer; or "error".
 */
public class AvroSchemas {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
    }
  }

  private static ObjectNode answer(JsonNode asked) {
    ObjectNode answer = JSON.createObjectNode();
    try {
      Schema.Parser parser = new Schema.Parser(NameValidator.STRICT_VALIDATOR);
      List<Schema> references = new ArrayList<>();
      for (JsonNode each : asked.get("references")) {
        references.add(parser.parse(each.asText()));
      }
      Schema schema = parser.parse(asked.get("text").asText());
      answer.put("canonical", schema.toString(references, false));
      answer.put("resolved", schema.toString());
      answer.put("parsing", SchemaNormalization.toParsingForm(schema));
      answer.put("fingerprint", SchemaNormalization.parsingFingerprint64(schema));
      if (asked.has("writer")) {
        Schema writer =
            new Schema.Parser(NameValidator.STRICT_VALIDATOR).parse(asked.get("writer").asText());
        ArrayNode found = answer.putArray("incompatibilities");
        for (SchemaCompatibility.Incompatibility each :
            SchemaCompatibility.checkReaderWriterCompatibility(schema, writer)
                .getResult()
                .getIncompatibilities()) {
          found.addArray().add(each.getType().toString()).add(each.getLocation()).add(each.getMessage());
        }
      }
    } catch (RuntimeException | StackOverflowError error) {
      answer.removeAll();
      answer.put("error", String.valueOf(error.getMessage()));
    }
    return answer;
  }
}
