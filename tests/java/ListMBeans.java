import java.util.TreeSet;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Prints the MBeans of a Java process and the attributes of each, one MBean a line. */
public class ListMBeans {
    public static void main(String[] arguments) throws Exception {
        String url = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + arguments[0] + "/jmxrmi";
        try (var connector = JMXConnectorFactory.connect(new JMXServiceURL(url))) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            for (ObjectName name : new TreeSet<>(server.queryNames(null, null))) {
                var attributes = new TreeSet<String>();
                for (MBeanAttributeInfo each : server.getMBeanInfo(name).getAttributes()) {
                    attributes.add(each.getName());
                }
                System.out.println(name + "\t" + String.join(",", attributes));
            }
        }
    }
}
