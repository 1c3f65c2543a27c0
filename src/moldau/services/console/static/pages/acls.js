import { api, button, confirm, dialog, enc, field, h, head, paged, query, readOnly, select, state, tag, toast } from "/static/lib.js";

const OPERATIONS = ["ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"];

export async function page() {
  const path = `/clusters/${enc(state.cluster)}/acls`;
  const list = paged({
    placeholder: "Search ACLs", caption: "Access control lists", empty: "No ACLs.",
    load: async (settings) => {
      try {
        return await api("GET", path + query(settings));
      } catch (error) {
        if (!error.message.startsWith("SECURITY_DISABLED")) throw error;
        throw new Error("The brokers have no authorizer, so every client may do everything. Set authorizer.class.name to use ACLs.");
      }
    },
    columns: [
      { title: "Principal", sort: "principal", wrap: true, key: "principal" },
      { title: "Permission", value: (row) => tag(row.permission.toLowerCase(), row.permission === "DENY" ? "bad" : "good") },
      { title: "Operation", value: (row) => row.operation.toLowerCase().replaceAll("_", " ") },
      { title: "Resource", sort: "resource", wrap: true, value: (row) => [tag(row.resource_type.toLowerCase()), " ", row.resource_name, row.pattern_type === "PREFIXED" ? "*" : ""] },
      { title: "Host", key: "host" },
      { title: "", value: (row) => (readOnly() ? null : button("Delete", () => confirm("Delete ACL", `${row.permission} ${row.principal} ${row.operation} on ${row.resource_type} ${row.resource_name}`, "Delete", async () => {
        await api("POST", path + "/delete", row);
        toast("The ACL is deleted.");
        list.refresh();
      }), "small danger", { "aria-label": `Delete ACL of ${row.principal}` })) },
    ],
  });
  function add() {
    const principal = h("input", { required: true, placeholder: "User:alice" });
    const kind = select(["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]);
    const name = h("input", { required: true, placeholder: "orders, or * for all" });
    const pattern = select([["LITERAL", "this name"], ["PREFIXED", "names that begin with it"]]);
    const operation = select(OPERATIONS, "READ"), permission = select(["ALLOW", "DENY"]), host = h("input", { value: "*" });
    kind.addEventListener("change", () => {
      if (kind.value === "CLUSTER") name.value = "kafka-cluster";
    });
    dialog("Add ACL", {
      action: "Add",
      fields: [h("div", { class: "row" }, field("Principal", principal), field("Permission", permission), field("Operation", operation)),
        h("div", { class: "row" }, field("Resource", kind), field("Name", name), field("Applies to", pattern), field("Host", host))],
      act: async () => {
        await api("POST", path, { principal: principal.value, resource_type: kind.value, resource_name: name.value, pattern_type: pattern.value, operation: operation.value, permission: permission.value, host: host.value });
        toast("The ACL is added.");
        list.refresh();
      },
    });
  }
  return [head("ACLs", readOnly() ? null : button("Add ACL", add, "main")), list];
}
