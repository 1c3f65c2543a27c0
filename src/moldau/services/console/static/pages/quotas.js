import { api, button, bytes, confirm, dialog, enc, field, h, head, readOnly, replace, state, table, tag, toast } from "/static/lib.js";

const KEYS = {
  producer_byte_rate: ["Bytes per second sent", "user and client-id"],
  consumer_byte_rate: ["Bytes per second read", "user and client-id"],
  request_percentage: ["Percent of request threads", "user and client-id"],
  controller_mutation_rate: ["Changes of topics and partitions per second", "user and client-id"],
  connection_creation_rate: ["New connections per second", "ip"],
};

export async function page() {
  const path = `/clusters/${enc(state.cluster)}/quotas`;
  const place = h("div", { class: "panel" });
  const named = (entity) => Object.entries(entity).map(([kind, name]) => `${kind} ${name === null ? "(default)" : name}`);
  const shown = (entity) => named(entity).map((each) => [tag(each), " "]);
  const words = (entity) => named(entity).join(", ");
  async function refresh() {
    const found = await api("GET", path);
    replace(place, table([
      { title: "For", value: (row) => shown(row.entity) },
      { title: "Quotas", value: (row) => Object.entries(row.values).map(([key, value]) => h("div", null, (KEYS[key] || [key])[0] + ": ", key.endsWith("byte_rate") ? bytes(value) + "/s" : value)) },
      { title: "", value: (row) => (readOnly() ? null : [button("Change", () => edit(row), "small", { "aria-label": "Change the quota of " + words(row.entity) }), " ", button("Delete", () => confirm("Delete quota", `The quota of ${words(row.entity)} ends at once.`, "Delete", async () => {
        await api("POST", path, { entity: row.entity, values: Object.fromEntries(Object.keys(row.values).map((key) => [key, null])) });
        toast("The quota is deleted.");
        await refresh();
      }), "small danger", { "aria-label": "Delete the quota of " + words(row.entity) })]) },
    ], found.data, { caption: "Quotas", quiet: true, empty: "No quotas." }));
  }
  function edit(row) {
    const entity = row ? row.entity : {};
    const part = (kind) => h("input", { placeholder: "leave empty, or * for the default", value: kind in entity ? (entity[kind] === null ? "*" : entity[kind]) : "" });
    const user = part("user"), client = part("client-id"), ip = part("ip");
    const inputs = Object.fromEntries(Object.keys(KEYS).map((key) => [key, h("input", { type: "number", step: "any", min: 0, value: row && key in row.values ? row.values[key] : "" })]));
    dialog("Quota", {
      fields: [h("div", { class: "row" }, field("User", user), field("Client id", client), field("IP address", ip)),
        Object.entries(KEYS).map(([key, [label, hint]]) => field(label, inputs[key], "for " + hint))],
      act: async () => {
        const made = {};
        for (const [kind, input] of [["user", user], ["client-id", client], ["ip", ip]]) if (input.value) made[kind] = input.value === "*" ? null : input.value;
        const values = {};
        for (const [key, input] of Object.entries(inputs)) {
          if (input.value !== "") values[key] = Number(input.value);
          else if (row && key in row.values) values[key] = null;
        }
        await api("POST", path, { entity: made, values });
        toast("The quota is saved.");
        await refresh();
      },
    });
  }
  await refresh();
  return [head("Quotas", readOnly() ? null : button("Add quota", () => edit(null), "main")), place];
}
