import { api, count, enc, h, head, link, panel, short, state, table, tag } from "/static/lib.js";

export async function page() {
  const found = await api("GET", `/clusters/${enc(state.cluster)}/mirrors`);
  return [head("Mirrors"),
    panel("Clusters that are copied to this one", table([
      { title: "Source", key: "source" },
      { title: "Topics", wrap: true, value: (row) => row.topics.flatMap((each, i) => [i ? ", " : "", link("/topics/" + enc(each), each)]) },
      { title: "Records", number: true, value: (row) => count(row.records) },
      { title: "Records/s", number: true, value: (row) => short(row.rate) },
    ], found.data, { quiet: true, caption: "Sources", empty: "No cluster is mirrored here: there is no topic SOURCE.checkpoints.internal." })),
    panel("Connectors that mirror", table([
      { title: "Connector", value: (row) => link("/connectors/" + enc(row.name), row.name) },
      { title: "Class", value: (row) => row.class.split(".").pop() },
      { title: "State", value: (row) => tag(row.state, row.state === "RUNNING" ? "good" : "warn") },
      { title: "From", key: "source" }, { title: "To", key: "target" },
    ], found.connectors, { quiet: true, caption: "Connectors", empty: "None." })),
    found.targets.length ? panel("Copied to", h("p", null, found.targets.join(", "))) : null];
}
