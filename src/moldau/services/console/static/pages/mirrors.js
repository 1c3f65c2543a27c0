import { api, bar, button, check, count, duration, enc, every, h, head, link, panel, problem, query, redraw, replace, select, short, stat, state, table, tag } from "/static/lib.js";

const base = () => `/clusters/${enc(state.cluster)}/mirrors`;
const LATE_S = 10;

function beat(age) {
  if (age === null || age === undefined) return tag("none", "warn");
  return tag(duration(age) + " ago", age < LATE_S ? "good" : "bad");
}
function kind(row) {
  if (row.enabled === null) return "–";
  if (!row.enabled) return "heartbeats only";
  return `${row.exactly_once ? "exactly once" : "at least once"}, ${row.policy}`;
}

export async function page() {
  const place = h("div");
  async function load() {
    try {
      draw(await api("GET", base()));
    } catch (error) {
      replace(place, problem(error));
    }
  }
  function draw(found) {
    redraw(place,
      panel("Clusters that are copied to this one", table([
        { title: "Source", value: (row) => link("/mirrors/" + enc(row.source), row.source) },
        { title: "Heartbeat", value: (row) => beat(row.heartbeat_age_s) },
        { title: "Kind", value: kind },
        { title: "Topics", wrap: true, value: (row) => row.topics.flatMap((each, i) => [i ? ", " : "", link("/topics/" + enc(each), each)]) },
        { title: "Records", number: true, value: (row) => count(row.records) },
        { title: "Records/s", number: true, value: (row) => short(row.rate) },
      ], found.data, { quiet: true, caption: "Sources", empty: "No cluster is mirrored here: there are no heartbeats and no topic SOURCE.checkpoints.internal." })),
      panel("Connectors that mirror", table([
        { title: "Connector", value: (row) => link("/connectors/" + enc(row.name), row.name) },
        { title: "Class", value: (row) => row.class.split(".").pop() },
        { title: "State", value: (row) => tag(row.state, row.state === "RUNNING" ? "good" : "warn") },
        { title: "From", key: "source" }, { title: "To", key: "target" },
      ], found.connectors, { quiet: true, caption: "Connectors", empty: "None." })),
      found.targets.length ? panel("Copied to", h("p", null, found.targets.flatMap((each, i) => [i ? ", " : "",
        each.cluster ? h("a", { href: `/clusters/${enc(each.cluster)}/mirrors` }, each.target) : each.target]))) : null);
  }
  await load();
  every(5000, load);
  return [head("Mirrors"), place];
}

export async function mirror({ source }) {
  const place = h("div");
  const path = base() + "/" + enc(source);
  const planned = h("div");
  const lost = check(`${source} is lost: use its last checkpoints`);
  const group = select([["", "All groups"]], "", { "aria-label": "Group" });

  async function load() {
    try {
      draw(await api("GET", path));
    } catch (error) {
      replace(place, problem(error));
    }
  }
  function draw(found) {
    const behind = Math.max(0, ...found.topics.map((each) => each.seconds_behind || 0));
    const waiting = found.topics.reduce((sum, each) => sum + (each.records_behind || 0), 0);
    const names = [...new Set(found.groups.map((each) => each.group))];
    const chosen = group.value;
    replace(group, h("option", { value: "" }, "All groups"), names.map((each) => h("option", { value: each }, each)));
    group.value = names.includes(chosen) ? chosen : "";
    const known = found.file && !found.error;
    redraw(place,
      h("div", { class: "stats" },
        stat("heartbeat", found.heartbeat_age_s === null ? "none" : duration(found.heartbeat_age_s) + " ago", found.heartbeat_age_s !== null && found.heartbeat_age_s < LATE_S ? "good" : "bad"),
        stat("behind", known ? duration(behind) : "–"),
        stat("records behind", known ? count(waiting) : "–"),
        stat("groups followed", count(names.length))),
      found.file ? h("p", { class: "soft" }, `${found.source} to ${found.target}: ${kind(found)}`) : null,
      found.error ? h("div", { class: "note bad", role: "alert" }, found.error) : null,
      found.file ? null : h("p", { class: "soft" }, "How far topics are behind is known with the mirror's file: set mirror.file of the console."),
      panel("Topics", table([
        { title: "Topic", wrap: true, key: "topic" },
        { title: "Copy", wrap: true, value: (row) => link("/topics/" + enc(row.remote), row.remote) },
        { title: "Partitions", number: true, value: (row) => count(row.partitions) },
        { title: "Records behind", number: true, value: (row) => count(row.records_behind) },
        { title: "Behind", value: (row) => row.seconds_behind === null ? "–" : [bar(behind ? row.seconds_behind / behind : 0, `${row.topic} is ${duration(row.seconds_behind)} behind`), duration(row.seconds_behind)] },
      ], found.topics, { quiet: true, caption: "Topics", empty: found.error ? "Unknown." : "No topic is copied." })),
      panel("Checkpoints of groups", table([
        { title: "Group", wrap: true, key: "group" },
        { title: `In ${found.source}`, wrap: true, value: (row) => `${row.topic}-${row.partition}` },
        { title: "Offset", number: true, value: (row) => count(row.offset) },
        { title: "Here", wrap: true, value: (row) => `${row.remote}-${row.partition}` },
        { title: "Offset here", number: true, value: (row) => count(row.remote_offset) },
      ], found.groups, { quiet: true, caption: "Checkpoints", empty: "No group has a checkpoint." })));
  }
  async function dryRun() {
    replace(planned, h("p", { class: "soft" }, "Reading offsets …"));
    try {
      const found = await api("GET", path + "/moves" + query({ group: group.value, lost: lost.box.checked }));
      const stays = new Map(found.refused.map((each) => [each.group, each.reason]));
      replace(planned, table([
        { title: "Group", wrap: true, key: "group" },
        { title: "From", wrap: true, value: (row) => `${row.topic}-${row.partition}` },
        { title: "Offset", number: true, value: (row) => count(row.offset) },
        { title: "To", wrap: true, value: (row) => `${row.remote}-${row.partition}` },
        { title: "Continues at", number: true, value: (row) => count(row.remote_offset) },
        { title: "Same record", value: (row) => tag(row.exact ? "exact" : "not exact", row.exact ? "good" : "warn") },
        { title: "Not copied yet", number: true, value: (row) => count(row.behind) },
        { title: "Moves", wrap: true, value: (row) => stays.has(row.group) ? `stays: ${stays.get(row.group)}` : "yes" },
      ], found.data, { quiet: true, caption: "Fail-over, dry run", empty: "No group has offsets that the mirror follows." }),
      h("p", null, "Nothing was changed. Stop the consumers, then run:"), h("pre", null, found.command));
    } catch (error) {
      replace(planned, problem(error));
    }
  }
  await load();
  every(5000, load);
  return [head(`Mirror of ${source}`), place,
    panel("Fail over to this cluster", h("div", { class: "row center" }, group, lost, button("Dry run", dryRun)), planned)];
}
