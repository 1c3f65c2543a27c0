import { api, count, enc, every, facts, h, head, link, panel, problem, redraw, replace, state, table, tag } from "/static/lib.js";
import { liveGraph } from "/static/graph.js";

const base = () => "/clusters/" + enc(state.cluster) + "/streams";
const kind = (text) => (text === "Stable" ? "good" : text === "NotReady" ? "bad" : text === "Empty" ? "" : "warn");

export async function page() {
  const place = h("div");
  async function refresh() {
    try {
      const found = await api("GET", base());
      redraw(place, table([
        { title: "Application", wrap: true, value: (row) => link("/streams/" + enc(row.name), row.name) },
        { title: "State", value: (row) => tag(row.state, kind(row.state)) },
        { title: "Group", value: (row) => row.group },
        { title: "Members", number: true, value: (row) => count(row.members) },
        { title: "Sub-topologies", number: true, value: (row) => count(row.subtopologies) },
        { title: "Tasks", number: true, value: (row) => count(row.tasks) },
        { title: "Lag", number: true, value: (row) => count(row.lag) },
      ], found.data, { quiet: true, caption: "Streams applications", empty: "No Streams application is running. moldau streams start FILE starts one." }));
    } catch (error) {
      replace(place, problem(error));
    }
  }
  await refresh();
  every(5000, refresh);
  return [head("Streams applications"), h("div", { class: "panel" }, place)];
}

export async function application({ application: name }) {
  const errors = h("div"), facing = h("div"), note = h("p", { class: "soft" }), place = h("div");
  const drawn = liveGraph(`Topology of ${name}`);
  async function refresh() {
    try {
      const found = await api("GET", `${base()}/${enc(name)}`);
      replace(errors);
      replace(facing, panel("State", facts([["State", tag(found.state, kind(found.state))], ["Group", found.group],
        ...(found.epoch === null ? [] : [["Epoch", found.epoch], ["Topology", `epoch ${found.topology_epoch}`]])])));
      drawn.show(found.topology, "A consumer group does not know the topology of its application.");
      note.textContent = found.instances_answered
        ? `Rates of ${count(found.instances_answered)} of ${count(found.instances_named)} instances, node by node.`
        : "Start instances with --queries HOST:PORT (application.server and a QueryServer) to see the rates of all nodes.";
      redraw(place,
        panel("Members", table([
          { title: "Client", wrap: true, key: "client" },
          { title: "Tasks", wrap: true, value: (row) => row.active.join(", ") || "–" },
          { title: "Standby", wrap: true, value: (row) => row.standby.join(", ") || "–" },
          { title: "Warm-up", wrap: true, value: (row) => row.warmup.join(", ") || "–" },
        ], found.members, { quiet: true, caption: "Members", empty: "No member is connected." })),
        panel("Inputs", table([
          { title: "Topic", wrap: true, value: (row) => link("/topics/" + enc(row.topic), row.topic) },
          { title: "Partition", number: true, key: "partition" },
          { title: "Lag", number: true, value: (row) => count(row.lag) },
        ], found.inputs, { quiet: true, caption: "Inputs", empty: "No offsets yet." })));
    } catch (error) {
      replace(errors, problem(error));
    }
  }
  await refresh();
  every(2000, refresh);
  return [head(name), errors, facing, panel("Topology", drawn, note), place];
}
