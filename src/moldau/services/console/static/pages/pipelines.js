import { api, button, count, counted, duration, enc, every, facts, h, head, link, panel, problem, readOnly, redraw, replace, short, state, table, tag, time, toast } from "/static/lib.js";
import { liveGraph } from "/static/graph.js";

const base = () => "/clusters/" + enc(state.cluster) + "/pipelines";
const kind = (text) => ({ RUNNING: "good", FINISHED: "good", FAILED: "bad", RESTARTING: "warn", STOPPED: "" })[text.toUpperCase()] || "";
const topics = (names) => (names.length ? names.flatMap((each, i) => [i ? ", " : "", link("/topics/" + enc(each), each)]) : "–");

export async function page() {
  const place = h("div");
  async function refresh() {
    try {
      const found = await api("GET", base());
      redraw(place, table([
        { title: "Pipeline", wrap: true, value: (row) => link("/pipelines/" + enc(row.name), row.name) },
        { title: "State", value: (row) => tag(row.state, kind(row.state)) },
        { title: "Reads", wrap: true, value: (row) => topics(row.reads) },
        { title: "Writes", wrap: true, value: (row) => topics(row.writes) },
        { title: "Rows/s", number: true, value: (row) => short(row.progress && row.progress.processed_rows_per_second) },
        { title: "Lag", number: true, value: (row) => short(row.progress && row.progress.lag_records) },
        { title: "Error", wrap: true, value: (row) => row.error || "–" },
      ], found.data, { quiet: true, caption: "Pipelines", empty: "No pipelines. moldau pipelines start FILE starts one." }));
    } catch (error) {
      replace(place, problem(error));
    }
  }
  await refresh();
  every(5000, refresh);
  return [head("Pipelines"), h("div", { class: "panel" }, place)];
}

// Of its latest batch.
const progress = (at) => [
  ["Rows per second", short(at.processed_rows_per_second)],
  ["Behind", at.lag_records === null ? "–" : `${counted(at.lag_records, "record")}${at.lag_seconds === null ? "" : ", " + duration(at.lag_seconds)}`],
  ["Batch", `${count(at.batch_id)}, ${counted(at.input_rows, "row")}`],
];

export async function pipeline({ pipeline: name }) {
  const path = `${base()}/${enc(name)}`;
  const place = h("div");
  const drawn = liveGraph(`What ${name} reads and writes`);
  async function refresh() {
    try {
      const found = await api("GET", path);
      drawn.show(found.picture);
      redraw(place,
        found.stale ? h("div", { class: "note" }, found.stale) : null,
        panel("State", facts([
          ["State", tag(found.state, kind(found.state))], ["Wanted", found.desired], ["Since", time(found.since_ms)],
          ["Restarts", found.restarts], ["Activity", found.activity || "–"],
          ...(found.application ? [["Application", found.application === "streams" ? link("/streams/" + enc(name), `${name}, with its topology`) : found.application],
            ["Instances", `${found.instances_running || 0} of ${found.instances} run`]] : []),
          ["Reads", topics(found.reads)], ["Writes", topics(found.writes)],
          ...(found.progress ? progress(found.progress) : []),
        ]), found.error ? h("div", { class: "note bad" }, h("p", null, found.error), found.hint ? h("p", null, found.hint) : null,
          found.detail ? h("details", null, h("summary", null, "Details"), h("pre", null, found.detail)) : null) : null),
        panel("Definition", h("pre", { tabindex: "0", role: "region", "aria-label": "Definition" }, JSON.stringify(found.definition, null, 2))),
        panel("Log", h("pre", { tabindex: "0", role: "region", "aria-label": "Log" }, found.log.join("\n") || "Empty.")));
    } catch (error) {
      replace(place, problem(error));
    }
  }
  const act = (action, text) => async () => {
    try {
      await api("POST", `${path}/${action}`, {});
      toast(text);
      await refresh();
    } catch (error) {
      toast(error.message, true);
    }
  };
  await refresh();
  every(3000, refresh);
  return [head(name, ...(readOnly() ? [] : [
    button("Start", act("start", `${name} is to run.`), "main"), button("Stop", act("stop", `${name} is to stop.`)),
    button("Restart", act("restart", `${name} starts again.`)),
  ])), panel("Flow", drawn), place];
}
