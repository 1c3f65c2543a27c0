import { api, enc, every, h, head, replace, state, table, tag, time } from "/static/lib.js";

export async function page() {
  const place = h("div");
  async function refresh() {
    const found = await api("GET", `/clusters/${enc(state.cluster)}/audit`);
    replace(place, h("p", { class: "soft" }, found.source === "topic" ? `From the topic ${found.topic}.` : "Since the console was started."),
      h("div", { class: "panel" }, table([
        { title: "Time", value: (row) => time(row.time) },
        { title: "User", key: "user" },
        { title: "From", key: "host" },
        { title: "Change", value: (row) => tag(row.action) },
        { title: "Of", wrap: true, key: "target" },
        { title: "Details", wrap: true, value: (row) => h("code", null, row.error || (row.details === undefined ? "" : JSON.stringify(row.details))) },
        { title: "Result", value: (row) => tag(row.result, row.result === "ok" ? "good" : "bad") },
      ], found.data, { caption: "Changes made through the console, latest first", empty: "Nothing was changed yet." })));
  }
  await refresh();
  every(10000, () => refresh().catch(() => {}));
  return [head("Audit"), place];
}
