import { api, count, enc, every, h, head, problem, redraw, replace, stat, state, table, tag, time } from "/static/lib.js";

export async function page() {
  const place = h("div"), errors = h("div");
  async function refresh() {
    const found = await api("GET", `/clusters/${enc(state.cluster)}/quorum`);
    replace(errors);
    redraw(place,
      h("div", { class: "stats" }, stat("leader", "node " + found.leader), stat("epoch", count(found.epoch)), stat("high watermark", count(found.high_watermark))),
      h("div", { class: "panel" }, table([
        { title: "Node", key: "id" },
        { title: "Role", value: (row) => tag(row.role, row.role === "leader" ? "good" : "") },
        { title: "Log end", number: true, value: (row) => count(row.log_end_offset) },
        { title: "Behind", number: true, value: (row) => (row.lag > 1000 ? tag(count(row.lag), "warn") : count(row.lag)) },
        { title: "Last fetch", value: (row) => time(row.last_fetch_ms) },
        { title: "Caught up", value: (row) => time(row.last_caught_up_ms) },
        { title: "Endpoints", wrap: true, value: (row) => row.endpoints.join(", ") || "–" },
      ], found.data, { caption: "Voters and observers of the metadata log" })));
  }
  await refresh();
  every(5000, () => refresh().catch((error) => replace(errors, problem(error))));
  return [head("Controllers"), errors, place];
}
