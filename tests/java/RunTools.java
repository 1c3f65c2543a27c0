import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs command line tools of Apache Kafka one after the other in one virtual machine, which spares
 * a start for each. A line of standard input is a command, its words separated by tabs: the class,
 * the tool's own standard input (line ends and tabs written with a backslash), the arguments.
 * Each command is answered by a line "status size" and that many bytes of what the tool printed.
 */
public class RunTools {
    static final List<Runnable> shutdownHooks = Collections.synchronizedList(new ArrayList<>());
    static volatile CompletableFuture<Integer> ended;

    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure((status, message) -> exit(status));
        Exit.setHaltProcedure((status, message) -> exit(status));
        Exit.setShutdownHookAdder((name, hook) -> shutdownHooks.add(hook));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split("\t", -1);
            String input = words[1].replace("\\n", "\n").replace("\\t", "\t");
            System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream capture = new PrintStream(printed, true);
            System.setOut(capture);
            System.setErr(capture);
            int status = run(words[0], Arrays.copyOfRange(words, 2, words.length));
            capture.flush();
            byte[] text = printed.toByteArray();
            out.println(status + " " + text.length);
            out.write(text);
            out.flush();
        }
        System.exit(0);
    }

    /** A tool has a thread of its own, so that "exit" can end it where it stands. */
    static int run(String name, String[] arguments) {
        ended = new CompletableFuture<>();
        shutdownHooks.clear();
        Thread tool = new Thread(() -> {
            try {
                Class.forName(name).getMethod("main", String[].class)
                    .invoke(null, (Object) arguments);
                ended.complete(0);
            } catch (InvocationTargetException failure) {
                failure.getCause().printStackTrace();
                ended.complete(1);
            } catch (ReflectiveOperationException missing) {
                missing.printStackTrace();
                ended.complete(1);
            }
        });
        tool.setDaemon(true);
        tool.start();
        return ended.join();
    }

    /** What System.exit does, but for this tool only: its hooks run, its thread never returns. */
    static void exit(int status) {
        for (Runnable hook : List.copyOf(shutdownHooks)) hook.run();
        ended.complete(status);
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException goOn) {
                Thread.interrupted();
            }
        }
    }
}
