import { api, bar, bytes, chart, count, enc, facts, h, head, link, panel, state, table, tabs, tag, here } from "/static/lib.js";
import { settingsTable } from "/static/pages/settings_table.js";

const base = () => "/clusters/" + enc(state.cluster);

export async function page() {
  const [found, numbers] = await Promise.all([api("GET", base() + "/brokers"), api("GET", base() + "/series")]);
  const times = numbers.series.time || [];
  return [head("Brokers"), h("div", { class: "panel" }, table([
    { title: "Broker", value: (row) => [link("/brokers/" + row.id, "Broker " + row.id), " ", row.id === found.controller ? tag("controller", "good") : null] },
    { title: "Address", value: (row) => h("code", null, row.host + ":" + row.port) },
    { title: "Rack", value: (row) => row.rack || "–" },
    { title: "Leads", number: true, value: (row) => count(row.leaders) },
    { title: "Replicas", number: true, value: (row) => count(row.replicas) },
    { title: "On disk", number: true, value: (row) => bytes(row.bytes) },
    { title: "Disk used", value: (row) => (row.total ? [bar(1 - row.usable / row.total, "used"), h("span", { class: "soft" }, `${bytes(row.usable)} free of ${bytes(row.total)}`)] : "–") },
    { title: "Log directories", value: (row) => (row.bad ? tag(row.bad + " offline", "bad") : tag("online", "good")) },
  ], found.data, { caption: "Brokers", quiet: true })),
  h("div", { class: "grid charts" }, chart("Bytes on disk by broker", times, found.data.slice(0, 6).map((row) => ({ name: "broker " + row.id, values: numbers.series[`broker.${row.id}.bytes`] || [] })), bytes))];
}

export async function broker({ broker: id }) {
  const view = new URLSearchParams(location.search).get("view") || "disks";
  const path = base() + "/brokers/" + enc(id);
  const found = await api("GET", path);
  const parts = [head("Broker " + id, found.controller ? tag("controller", "good") : null),
    tabs([["Disks", here("/brokers/" + id), "disks"], ["Settings", here("/brokers/" + id) + "?view=settings", "settings"]], view)];
  if (view === "settings") return [...parts, await settingsTable(path + "/settings")];
  parts.push(panel("Address", facts([["Host", found.host], ["Port", found.port], ["Rack", found.rack || "–"]])));
  if (found.error) parts.push(h("div", { class: "note bad" }, found.error));
  for (const folder of found.log_dirs) {
    const used = folder.total_bytes ? 1 - folder.usable_bytes / folder.total_bytes : 0;
    parts.push(panel(folder.path, folder.error ? tag(folder.error, "bad") : null,
      facts([["Replicas", count(folder.replicas)], ["Logs", bytes(folder.bytes)],
        folder.total_bytes ? ["Disk", [bar(used, Math.round(used * 100) + " % used"), `${bytes(folder.usable_bytes)} free of ${bytes(folder.total_bytes)}`]] : null]),
      h("h3", null, "Largest replicas"),
      table([
        { title: "Topic", value: (row) => link("/topics/" + enc(row.topic), row.topic) },
        { title: "Partition", number: true, key: "partition" },
        { title: "Size", number: true, value: (row) => bytes(row.bytes) },
        { title: "Behind", number: true, value: (row) => count(row.lag) },
      ], folder.largest, { caption: "Largest replicas of " + folder.path, quiet: true })));
  }
  return parts;
}
