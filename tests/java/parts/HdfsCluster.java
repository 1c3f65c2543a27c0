import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS with one name node and one data node: HdfsCluster FOLDER HTTP-PORT RPC-PORT. Ends with its standard input. */
public class HdfsCluster {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set("dfs.permissions.enabled", "false");
        settings.setInt("dfs.replication", 1);
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(settings, new File(arguments[0]))
                .numDataNodes(1)
                .nameNodeHttpPort(Integer.parseInt(arguments[1]))
                .nameNodePort(Integer.parseInt(arguments[2]))
                .format(!new File(arguments[0], "name-0-1").exists())
                .build();
        cluster.waitActive();
        System.out.println("ready");
        while (System.in.read() >= 0) {}
        Runtime.getRuntime().halt(0);
    }
}
