import { api, enc, every, h, head, problem, redraw, replace, state, table, tag, time } from "/static/lib.js";

// A line, and all of it when it is opened.
const opens = (text) => (text ? h("details", null, h("summary", { class: "cut mono" }, text)) : null);
const details = (row) => row.error || (row.details === undefined || row.details === null ? "" : JSON.stringify(row.details));

export async function page() {
  const place = h("div"), errors = h("div");
  async function refresh() {
    const found = await api("GET", `/clusters/${enc(state.cluster)}/audit`);
    replace(errors);
    redraw(place, h("p", { class: "soft" }, found.source === "topic" ? `From the topic ${found.topic}.` : "Since the console was started."),
      h("div", { class: "panel" }, table([
        { title: "Time", value: (row) => h("span", { class: "mono time" }, time(row.time)) },
        { title: "User", key: "user" },
        { title: "From", key: "host" },
        { title: "Change", value: (row) => tag(row.action) },
        { title: "Result", value: (row) => tag(row.result, row.result === "ok" ? "good" : "bad") },
        { title: "Of", value: (row) => opens(row.target) },
        { title: "Details", value: (row) => opens(details(row)) },
      ], found.data, { caption: "Changes made through the console, latest first", empty: "Nothing was changed yet." })));
  }
  await refresh();
  every(10000, () => refresh().catch((error) => replace(errors, problem(error))));
  return [head("Audit"), errors, place];
}
