import { api, button, bytes, confirm, count, dialog, duration, enc, facts, field, go, h, head, here, link, panel, readOnly, short, some, stat, state, table, tabs, tag, toast } from "/static/lib.js";
import { settingsTable } from "/static/pages/settings_table.js";

export async function page({ topic }) {
  const view = new URLSearchParams(location.search).get("view") || "partitions";
  const path = `/clusters/${enc(state.cluster)}/topics/${enc(topic)}`;
  const own = "/topics/" + enc(topic);
  const found = await api("GET", path);
  const reload = () => go(location.pathname + location.search);
  const may = (operation) => !readOnly() && (!found.operations.length || found.operations.includes(operation));
  const parts = [
    head(topic,
      found.internal ? tag("internal") : null,
      h("a", { class: "button main", href: here(own + "/messages") }, "Messages"),
      may("ALTER") ? button("Add partitions", add) : null,
      may("DELETE") ? button("Delete records", truncate) : null,
      may("DELETE") ? button("Delete topic", remove, "danger") : null),
    topicTabs(topic, view),
  ];
  if (view === "settings") return [...parts, await settingsTable(path + "/settings")];
  if (view === "consumers") return [...parts, await consumers()];
  const sum = (key) => found.partitions.reduce((total, each) => total + (each[key] || 0), 0);
  const bad = found.partitions.filter((each) => each.isr.length < each.replicas.length).length;
  parts.push(h("div", { class: "stats" },
    stat(some(found.partition_count, "partition"), count(found.partition_count)),
    stat("records", count(sum("end") - sum("first"))),
    stat("records per second", short(found.rate)),
    stat("size, leaders", bytes(sum("bytes"))),
    stat("under-replicated", count(bad), bad ? "bad" : "good")));
  parts.push(h("div", { class: "panel" }, table([
    { title: "Partition", number: true, key: "partition" },
    { title: "Leader", value: (row) => (row.leader === null ? tag("none", "bad") : link("/brokers/" + row.leader, "Broker " + row.leader)) },
    { title: "Replicas", value: (row) => row.replicas.map((id) => [tag(id, row.offline.includes(id) ? "bad" : row.isr.includes(id) ? "good" : "warn"), " "]) },
    { title: "First", number: true, value: (row) => count(row.first) },
    { title: "End", number: true, value: (row) => count(row.end) },
    { title: "Size", number: true, value: (row) => bytes(row.bytes) },
    { title: "Leader epoch", number: true, key: "leader_epoch" },
    { title: "", value: (row) => [row.moving ? tag("moving", "warn") : null, may("ALTER") ? button("Move", () => move(row), "small", { "aria-label": "Move partition " + row.partition }) : null] },
  ], found.partitions, { caption: "Partitions; replicas that are not in sync are marked" })));
  const kept = found.kept;
  const limit = (text, shown) => (text === undefined ? null : Number(text) < 0 ? "no limit" : shown(Number(text)));
  parts.push(panel("Topic", facts([["Topic id", h("code", null, found.id)],
    kept["cleanup.policy"] === undefined ? null : ["Cleanup policy", kept["cleanup.policy"] || "none"],
    kept["retention.ms"] === undefined ? null : ["Kept for", limit(kept["retention.ms"], (ms) => duration(ms / 1000))],
    kept["retention.bytes"] === undefined ? null : ["Kept up to", limit(kept["retention.bytes"], (size) => bytes(size) + " in each partition")],
    ["You may", found.operations.map((each) => [tag(each.toLowerCase().replaceAll("_", " ")), " "])]])));
  return parts;

  async function consumers() {
    const groups = await api("GET", path + "/groups");
    return h("div", { class: "panel" }, table([
      { title: "Group", value: (row) => link("/groups/" + enc(row.group), row.group) },
      { title: "Kind", value: (row) => tag(row.kind) },
      { title: "State", key: "state" },
      { title: "Members", number: true, key: "members" },
      { title: "Partitions", number: true, key: "partitions" },
      { title: "Behind, records", number: true, value: (row) => count(row.lag) },
      { title: "Behind, time", number: true, value: (row) => duration(row.lag_seconds) },
    ], groups.data, { caption: "Groups that have offsets in this topic", empty: "No group reads this topic." }));
  }
  function add() {
    const total = h("input", { type: "number", min: found.partition_count + 1, value: found.partition_count + 1, required: true });
    dialog("Add partitions", {
      action: "Add",
      fields: [h("p", null, `The topic has ${found.partition_count} partitions. Partitions cannot be removed, and records with keys may go to other partitions than before.`), field("Partitions in all", total)],
      act: async () => {
        await api("POST", path + "/partitions", { total: Number(total.value) });
        toast("Partitions are added.");
        reload();
      },
    });
  }
  function truncate() {
    confirm("Delete records", `Deletes all records that ${topic} has now. The topic stays.`, "Delete records", async () => {
      await api("POST", path + "/truncate", {});
      toast("Records are deleted.");
      reload();
    }, topic);
  }
  function remove() {
    confirm("Delete topic", `Deletes ${topic} with all its records. This cannot be undone.`, "Delete topic", async () => {
      await api("DELETE", path);
      toast(`Topic ${topic} is deleted.`);
      go(here("/topics"));
    }, topic);
  }
  function move(row) {
    const replicas = h("input", { value: row.replicas.join(", "), required: true });
    dialog(`Move partition ${row.partition}`, {
      action: "Move",
      fields: [h("p", null, "Brokers that have replicas, the preferred leader first. Copying runs in the background."), field("Brokers", replicas)],
      act: async () => {
        const wanted = replicas.value.split(",").map((each) => Number(each.trim()));
        if (wanted.some(Number.isNaN)) throw new Error("Brokers are numbers, separated by commas.");
        await api("PUT", path + "/replicas", { partitions: [{ partition: row.partition, replicas: wanted }] });
        toast("The move has begun.");
        reload();
      },
    });
  }
}

export function topicTabs(topic, current) {
  const path = here("/topics/" + enc(topic));
  return tabs([["Partitions", path, "partitions"], ["Messages", path + "/messages", "messages"],
    ["Consumers", path + "?view=consumers", "consumers"], ["Settings", path + "?view=settings", "settings"]], current);
}
