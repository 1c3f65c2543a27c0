import { api, chart, count, bytes, every, facts, h, head, here, panel, problem, redraw, replace, short, some, stat, state, table, tag } from "/static/lib.js";

export async function page() {
  const places = { notes: h("div"), stats: h("div", { class: "stats" }), charts: h("div", { class: "grid charts" }), clusters: h("div"), facts: h("div") };
  const path = "/clusters/" + encodeURIComponent(state.cluster);

  async function refresh() {
    let found, numbers;
    try {
      [found, numbers] = await Promise.all([api("GET", path), api("GET", path + "/series")]);
    } catch (error) {
      replace(places.notes, problem(error));
      return;
    }
    replace(places.notes, found.reading && found.read_ms
      ? h("div", { class: "note" }, "The cluster's numbers are old: " + found.reading) : null);
    const under = found.under_replicated, offline = found.offline;
    redraw(places.stats,
      stat(some(found.brokers, "broker"), count(found.brokers), "", here("/brokers")),
      stat(some(found.topics, "topic"), count(found.topics), "", here("/topics")),
      stat(some(found.partitions, "partition"), count(found.partitions)),
      stat("under-replicated", count(under), under ? "bad" : "good"),
      stat("without leader", count(offline), offline ? "bad" : "good"),
      stat(some(found.groups, "group"), count(found.groups), "", here("/groups")),
      stat("records behind", short(found.lag)),
      stat("on disk", bytes(found.bytes)));
    const series = numbers.series, times = series.time || [];
    const one = (name) => [{ name, values: series[name] || [] }];
    replace(places.charts,
      chart("Records per second", times, one("records_per_second")),
      chart("Lag of all groups, records", times, one("lag")),
      chart("Bytes on disk", times, one("bytes"), bytes),
      chart("Partitions in trouble", times, [
        { name: "under-replicated", values: series.under_replicated || [] },
        { name: "without leader", values: series.offline || [] },
      ]));
    redraw(places.facts, panel("Cluster", facts([
      ["Cluster id", h("code", null, found.id)],
      ["Controller", found.controller === null ? "–" : "node " + found.controller],
      ...Object.entries(found.features).map(([name, level]) => [name, level]),
      ["You may", found.operations.map((each) => [tag(each.toLowerCase().replaceAll("_", " ")), " "])],
    ])));
  }

  async function clusters() {
    const found = await api("GET", "/clusters");
    replace(places.clusters, panel("All clusters", table([
      { title: "Name", value: (row) => h("a", { href: "/clusters/" + encodeURIComponent(row.name) }, row.name) },
      { title: "State", value: (row) => (row.error ? tag("not reachable", "bad") : tag("reachable", "good")) },
      { title: "Brokers", number: true, value: (row) => count(row.brokers) },
      { title: "Topics", number: true, value: (row) => count(row.topics) },
      { title: "Records/s", number: true, value: (row) => short(row.records_per_second) },
      { title: "On disk", number: true, value: (row) => bytes(row.bytes) },
      { title: "Bootstrap servers", wrap: true, value: (row) => row.error || row.bootstrap_servers.join(", ") },
    ], found.data, { caption: "Configured clusters" })));
  }

  await refresh();
  if (state.session.clusters.length > 1) clusters().catch((error) => replace(places.clusters, problem(error)));
  every(5000, refresh);
  return [head(state.cluster), places.notes, places.stats, places.clusters, places.charts, places.facts];
}
