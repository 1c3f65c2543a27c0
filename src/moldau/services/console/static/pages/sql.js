import { api, button, confirm, counted, enc, every, facts, field, go, h, head, here, lines, link, onleave, panel, problem, readOnly, replace, select, state, table, tag, toast } from "/static/lib.js";
import { liveGraph } from "/static/graph.js";

const base = () => "/clusters/" + enc(state.cluster) + "/sql";
const SHOWN_MAX = 1000;

export async function page() {
  const editor = h("textarea", { class: "tall", spellcheck: "false", placeholder: "SELECT * FROM orders EMIT CHANGES;" });
  editor.value = sessionStorage.getItem("sql") || "";
  const from = select([["latest", "new records"], ["earliest", "all records"]], "earliest");
  const output = h("div", { "aria-live": "off" });
  const status = h("p", { class: "soft", role: "status" });
  const catalogue = h("div");
  let running = null;
  const run = button("Run", start, "main");
  const stop = button("Stop", () => running && running.abort(), "", { disabled: true });
  onleave(() => running && running.abort());
  editor.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      start();
    }
  });

  async function start() {
    if (running) running.abort();
    const sql = editor.value.trim();
    if (!sql) return;
    sessionStorage.setItem("sql", editor.value);
    const properties = { "ksql.streams.auto.offset.reset": from.value };
    replace(output);
    replace(status, "Running …");
    running = new AbortController();
    stop.disabled = false;
    try {
      // Comments may come first.
      if (/^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)*(SELECT|PRINT)\b/i.test(sql)) await rows(sql, properties, running.signal);
      else await statements(sql, properties);
    } catch (error) {
      if (error.name === "AbortError") status.textContent += " Stopped.";
      else replace(output, problem(error));
    } finally {
      running = null;
      stop.disabled = true;
    }
  }

  async function rows(sql, properties, signal) {
    let columns = [];
    let seen = 0;
    const body = h("tbody");
    const began = Date.now();
    await lines("POST", base() + "/query", { sql, properties }, (line) => {
      if (line.error) output.append(problem(new Error(line.error)));
      if (line.columns) {
        columns = line.columns;
        replace(output, h("div", { class: "tablebox", tabindex: "0", role: "region", "aria-label": "Rows" }, h("table", null,
          h("thead", null, h("tr", null, columns.map((each, i) => h("th", { scope: "col" }, each, " ", h("span", { class: "soft" }, line.types[i]))))), body)));
      }
      if (line.row) {
        seen += 1;
        body.prepend(h("tr", null, line.row.map((each) => h("td", { class: "wrap" }, each !== null && typeof each === "object" ? (JSON.isRawJSON && JSON.isRawJSON(each) ? JSON.stringify(each) : h("code", null, JSON.stringify(each))) : each === null ? "null" : String(each)))));
        if (body.childElementCount > SHOWN_MAX) body.lastElementChild.remove();
      }
      const seconds = Math.max(0.001, (Date.now() - began) / 1000);
      status.textContent = `${counted(seen, "row")}, ${(seen / seconds).toFixed(1)} a second.`;
    }, signal);
    status.textContent = `${counted(seen, "row")}.`;
  }

  async function statements(sql, properties) {
    const found = await api("POST", base() + "/statements", { sql, properties });
    replace(status, `${counted(found.data.length, "answer")}.`);
    replace(output, found.data.map(answer));
    await refresh();
  }

  async function refresh() {
    try {
      const found = await api("GET", base());
      replace(catalogue,
        panel("Streams and tables", table([
          { title: "Name", value: (row) => button(row.name, () => {
            editor.value = `SELECT * FROM ${row.name} EMIT CHANGES;`;
            editor.focus();
          }, "small", { "aria-label": `Query ${row.name}` }) },
          { title: "Kind", value: (row) => tag(row.type.toLowerCase()) },
          { title: "Topic", wrap: true, value: (row) => link("/topics/" + enc(row.topic), row.topic) },
          { title: "Formats", value: (row) => `${row.keyFormat} / ${row.valueFormat}` },
        ], [...found.streams, ...found.tables], { quiet: true, caption: "Streams and tables", empty: "None yet: CREATE STREAM …" })),
        panel("Queries", table([
          { title: "Query", value: (row) => link("/sql/" + enc(row.id), row.id) },
          { title: "State", value: (row) => tag(row.state || "RUNNING", row.state === "ERROR" ? "bad" : "good") },
          { title: "Writes", value: (row) => (row.sinkKafkaTopics || row.sinks || []).join(", ") || "–" },
          { title: "Statement", wrap: true, value: (row) => h("code", null, row.queryString) },
        ], found.queries, { quiet: true, caption: "Queries", empty: "No query runs." })));
    } catch (error) {
      replace(catalogue, problem(error));
    }
  }

  await refresh();
  return [head("SQL"), panel(null, field("Statements", editor, "Ctrl-Enter runs them."),
    h("div", { class: "row above" }, field("Read", from), run, stop), status, output), catalogue];
}

function answer(each) {
  const rows = each.streams || each.tables || each.queries || each.topics || each.functions || each.properties;
  if (Array.isArray(rows) && rows.length) {
    const names = Object.keys(rows[0]).filter((name) => typeof rows[0][name] !== "object");
    return table(names.map((name) => ({ title: name, key: name, wrap: true })), rows, { caption: each["@type"] });
  }
  if (each.sourceDescription) {
    return table([{ title: "Field", key: "name" }, { title: "Type", value: (row) => row.schema.type }],
      each.sourceDescription.fields, { caption: each.sourceDescription.name });
  }
  const text = each.commandStatus ? each.commandStatus.message : JSON.stringify(each, null, 2);
  return h("pre", null, text);
}

export async function query({ query: id }) {
  const found = await api("GET", `${base()}/queries/${enc(id)}`);
  const end = button("Terminate", () => confirm("Terminate query", `${id} ends. Its topic stays.`, "Terminate", async () => {
    await api("DELETE", `${base()}/queries/${enc(id)}`);
    toast(`${id} is terminated.`);
    go(here("/sql"));
  }), "danger");
  const errors = h("div"), standing = h("div");
  const drawn = liveGraph(`Topology of ${id}`);
  const show = (now) => {
    replace(errors);
    replace(standing, facts([["State", now.state || "–"], ["Reads", now.sources.join(", ")], ["Writes", now.sinks.join(", ") || "–"]]));
    drawn.show(now.topology);
  };
  show(found);
  every(2000, async () => {
    try {
      show(await api("GET", `${base()}/queries/${enc(id)}`));
    } catch (error) {
      replace(errors, problem(error));
    }
  });
  return [head(id, readOnly() ? null : end), errors,
    panel("Statement", h("pre", null, found.sql), standing),
    panel("Topology", drawn),
    panel("Plan", h("pre", { class: "wide", tabindex: "0", role: "region", "aria-label": "Plan" }, found.plan)),
  ];
}
