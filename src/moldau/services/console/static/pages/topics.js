import { api, button, bytes, check, count, dialog, enc, field, go, h, head, here, link, paged, query, readOnly, short, state, tag, toast } from "/static/lib.js";

const base = () => "/clusters/" + enc(state.cluster);

export async function page() {
  const internal = check("internal topics");
  const list = paged({
    placeholder: "Search topics",
    caption: "Topics",
    extra: [internal],
    auto: 10000,
    load: (settings) => api("GET", base() + "/topics" + query({ ...settings, internal: internal.box.checked })),
    empty: "No topics.",
    columns: [
      { title: "Topic", sort: "name", wrap: true, value: (row) => [link("/topics/" + enc(row.name), row.name), " ", row.internal ? tag("internal") : null] },
      { title: "Partitions", sort: "partitions", number: true, value: (row) => count(row.partitions) },
      { title: "Replicas", sort: "replicas", number: true, value: (row) => count(row.replicas) },
      { title: "State", value: (row) => (row.offline ? tag(row.offline + " without leader", "bad") : row.under_replicated ? tag(row.under_replicated + " under-replicated", "warn") : tag("in sync", "good")) },
      { title: "Records", sort: "records", number: true, value: (row) => count(row.records) },
      { title: "Records/s", sort: "rate", number: true, value: (row) => short(row.rate) },
      { title: "Size", sort: "size", number: true, value: (row) => bytes(row.size) },
    ],
  });
  internal.box.addEventListener("change", list.refresh);
  return [head("Topics", readOnly() ? null : button("Create topic", create, "main")), list];
}

function create() {
  const name = h("input", { required: true, maxlength: 249, pattern: "[a-zA-Z0-9._\\-]+" });
  const partitions = h("input", { type: "number", min: 1, placeholder: "broker's default" });
  const replication = h("input", { type: "number", min: 1, placeholder: "broker's default" });
  const settings = h("div");
  const values = {};
  const more = h("details", null, h("summary", null, "All settings"), settings);
  more.addEventListener("toggle", async () => {
    if (!more.open || settings.childElementCount) return;
    const found = await api("GET", base() + "/topic-settings");
    for (const each of found.data) {
      const input = h("input", { placeholder: each.value === null || each.value === "" ? "(empty)" : each.value, class: "mono" });
      values[each.name] = input;
      settings.append(field(each.name, input, each.documentation));
    }
    if (!found.data.length) settings.append(h("p", { class: "soft" }, "The cluster has no topic yet that shows its settings. Change them after creation."));
  });
  const retention = h("input", { placeholder: "for example 604800000" });
  const policy = h("select", null, ["", "delete", "compact", "compact,delete"].map((each) => h("option", { value: each }, each || "broker's default")));
  dialog("Create topic", {
    action: "Create",
    fields: [
      field("Name", name, "Letters, digits, dots, dashes and underscores."),
      h("div", { class: "row" }, field("Partitions", partitions), field("Replication factor", replication)),
      h("div", { class: "row" }, field("Cleanup policy", policy), field("Retention (ms)", retention)), more,
    ],
    act: async () => {
      const configs = {};
      for (const [key, input] of Object.entries(values)) if (input.value !== "") configs[key] = input.value;
      if (policy.value) configs["cleanup.policy"] = policy.value;
      if (retention.value) configs["retention.ms"] = retention.value;
      await api("POST", base() + "/topics", {
        name: name.value, configs,
        partitions: partitions.value ? Number(partitions.value) : null,
        replication_factor: replication.value ? Number(replication.value) : null,
      });
      toast(`Topic ${name.value} is created.`);
      go(here("/topics/" + enc(name.value)));
    },
  });
}
