import java.io.File;
import java.nio.file.Path;
import org.neo4j.harness.Neo4j;
import org.neo4j.harness.Neo4jBuilders;

/** Neo4j in a folder: Neo4jServer FOLDER. Prints its address and ends with its standard input. */
public class Neo4jServer {
    public static void main(String[] arguments) throws Exception {
        Neo4j server =
            Neo4jBuilders.newInProcessBuilder(Path.of(arguments[0])).withDisabledServer().build();
        System.out.println(server.boltURI());
        while (System.in.read() >= 0) {}
        Runtime.getRuntime().halt(0);
    }
}
