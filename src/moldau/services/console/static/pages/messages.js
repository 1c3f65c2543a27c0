import { api, button, check, count, counted, dialog, enc, field, go, h, head, here, lines, onleave, panel, problem, query, readOnly, replace, select, state, table, tag, time, toast, bytes, exactly } from "/static/lib.js";
import { topicTabs } from "/static/pages/topic.js";

const FORMATS = ["auto", "json", "string", "avro", "protobuf", "json-schema", "bytes", "hex", "int", "long", "float", "double"];
const SHOWN_MAX = 2000;

export const text = (part) => (part.value === null ? "null" : typeof part.value === "string" ? part.value : JSON.stringify(part.value));
const pretty = (part) => (part.value === null ? "null" : typeof part.value === "string" ? part.value : JSON.stringify(part.value, null, 2));

export async function page({ topic }) {
  const path = `/clusters/${enc(state.cluster)}/topics/${enc(topic)}`;
  const own = new URLSearchParams(location.search);
  const start = select([["newest", "Newest records"], ["beginning", "From the beginning"], ["offset", "From an offset"], ["time", "From a time"], ["end", "Live: only new records"]], own.get("start") || "newest");
  const offset = h("input", { type: "number", min: 0, value: own.get("offset") || "0" });
  const at = h("input", { type: "datetime-local", step: "1" });
  const offsetField = field("Offset", offset), atField = field("Time", at);
  const partitions = h("input", { placeholder: "all", value: own.get("partitions") || "", size: 6 });
  const limit = h("input", { type: "number", min: 1, max: 10000, value: own.get("limit") || "50" });
  const contains = h("input", { placeholder: "in key, value or headers", value: own.get("contains") || "" });
  const expression = h("input", { class: "mono", placeholder: 'value.amount > 100 and header.region = "eu"', value: own.get("expression") || "" });
  const keyFormat = select(FORMATS), valueFormat = select(FORMATS);
  const committed = check("only committed transactions");
  const asTable = check("latest value per key", { checked: own.get("table") === "true" });
  const status = h("p", { class: "soft", role: "status" });
  const progress = h("progress", { max: 1, value: 0, "aria-label": "Progress of the search" });
  progress.hidden = true;
  const place = h("div"), errors = h("div");
  let stop = null;
  let rows = [];
  const chosen = new Set();

  const show = h("button", { type: "submit", class: "b main" }, "Show");
  const cancel = button("Stop", () => stop && stop.abort());
  cancel.disabled = true;
  const form = h("form", { class: "panel" },
    h("div", { class: "row" }, field("Start", start), offsetField, atField, field("Partitions", partitions), field("Records", limit), field("Key as", keyFormat), field("Value as", valueFormat)),
    h("div", { class: "row" }, h("span", { class: "grow" }, field("Contains", contains)), h("span", { class: "grow" }, field("Filter", expression))),
    h("div", { class: "row center" }, show, cancel, asTable, committed),
    h("div", { class: "row center" }, h("span", { class: "soft" }, "What is found:"),
      button("Export JSON", () => download("json"), "small"), button("Export CSV", () => download("csv"), "small"),
      readOnly() ? null : button("Copy to a topic", copy, "small"), h("span", { class: "grow" }), button("Filter help", help, "small")));

  const choose = () => {
    offsetField.hidden = start.value !== "offset";
    atField.hidden = start.value !== "time";
  };
  start.addEventListener("change", choose);
  choose();

  function wanted() {
    const found = {
      start: start.value, limit: Number(limit.value) || 50, contains: contains.value, expression: expression.value,
      key_format: keyFormat.value, value_format: valueFormat.value, committed: committed.box.checked, live: start.value === "end",
    };
    if (start.value === "offset") found.offset = Number(offset.value) || 0;
    if (start.value === "time") found.timestamp = at.value ? new Date(at.value).getTime() : 0;
    const numbers = partitions.value.split(",").map((each) => each.trim()).filter(Boolean).map(Number);
    if (numbers.length) found.partitions = numbers;
    return found;
  }

  async function run() {
    if (stop) stop.abort();
    const own = (stop = new AbortController());
    rows = [];
    chosen.clear();
    cancel.disabled = false;
    progress.hidden = start.value === "end";
    progress.removeAttribute("value");
    replace(place);
    replace(errors);
    const asked = wanted();
    const isTable = asTable.box.checked;
    if (isTable && start.value === "newest") asked.start = "beginning";
    let drawn = 0;
    let last = null;
    try {
      await lines("POST", path + (isTable ? "/table" : "/messages"), isTable ? { ...asked, limit: 1000, live: false } : asked, (found) => {
        if (stop !== own) return;
        if (found.record) {
          rows.push(found.record);
          if (rows.length > SHOWN_MAX) rows.shift();
        }
        if (found.error) replace(errors, problem(new Error(found.error)));
        if (found.progress) {
          last = found.progress;
          progress.value = last.total ? last.done / last.total : 1;
          if (found.done) progress.value = 1;
          status.textContent = `${counted(last.scanned, "record")} read (${bytes(last.bytes)}), ${found.keys === undefined ? counted(last.matched, "matches", "match") : counted(found.keys, "key")}` +
            (found.done ? ended(last.reason) + (found.truncated ? "; older keys are left out" : "") : " ...");
        }
        if (rows.length && performance.now() - drawn > 250) {
          draw(isTable);
          drawn = performance.now();
        }
      }, own.signal);
    } catch (error) {
      if (stop !== own) return;
      if (error.name === "AbortError") status.textContent += " Stopped.";
      else replace(errors, problem(error));
    }
    if (stop !== own) return;
    stop = null;
    cancel.disabled = true;
    progress.hidden = true;
    // What was found before an error stays on the page.
    if (rows.length || !errors.childElementCount) draw(isTable);
  }
  const ended = (reason) => ({ end: ". This is the end.", limit: ". There may be more: raise the number of records.", "scan limit": ". The search limit is reached." })[reason] || ".";

  function draw(isTable) {
    // Newest first; a table of keys comes in that order already.
    const ordered = isTable ? rows : [...rows].sort((a, b) => b.timestamp - a.timestamp || b.offset - a.offset);
    replace(place, panel(null,
      readOnly() ? null : h("div", { class: "row center spaced" }, button("Re-send chosen", resend, "small"), h("span", { class: "soft" }, "chosen records go to the end of a topic, byte for byte")),
      table([
        ...(readOnly() ? [] : [{ title: "", choose: true, value: (row) => {
          const id = row.partition + ":" + row.offset;
          return h("input", { type: "checkbox", checked: chosen.has(id), "aria-label": `Choose partition ${row.partition} offset ${row.offset}`, onchange: (event) => (event.target.checked ? chosen.add(id) : chosen.delete(id)) });
        } }]),
        { title: "Time", value: (row) => h("span", { class: "mono time" }, time(row.timestamp)) },
        { title: "Partition", number: true, key: "partition" },
        { title: "Offset", number: true, value: (row) => button(String(row.offset), () => details(row), "small", { "aria-label": `Open partition ${row.partition} offset ${row.offset}` }) },
        { title: "Key", value: (row) => h("span", { class: "cut key mono" }, text(row.key)) },
        { title: "Value", value: (row) => h("span", { class: "cut mono" }, text(row.value)) },
        { title: "As", value: (row) => tag(row.value.kind, row.value.note ? "warn" : "") },
        { title: "Size", number: true, value: (row) => bytes(row.size) },
      ], ordered, { caption: isTable ? "The latest record of each key" : "Records, newest first", empty: "No records match." })));
  }

  async function details(row) {
    const whole = await api("GET", `${path}/partitions/${row.partition}/messages/${row.offset}`, undefined, { exact: true }).catch(() => row);
    const parts = [
      h("p", { class: "soft" }, `${time(row.timestamp)} (${row.timestamp_type}), ${bytes(row.size)}`),
      h("h3", null, "Key ", tag(whole.key.kind)), h("pre", { tabindex: "0" }, pretty(whole.key)),
      h("h3", null, "Value ", tag(whole.value.kind), whole.value.schema_id === null || whole.value.schema_id === undefined ? null : [" ", tag("schema " + whole.value.schema_id)]),
      whole.value.note ? h("div", { class: "note" }, whole.value.note) : null,
      h("pre", { tabindex: "0" }, pretty(whole.value)),
      whole.headers.length ? [h("h3", null, "Headers"), table([{ title: "Name", value: (each) => h("code", null, each[0]) }, { title: "Value", wrap: true, value: (each) => h("code", null, each[1]) }], whole.headers, { caption: "Headers", quiet: true })] : null,
      readOnly() ? null : h("p", null, button("Edit and send", () => {
        box.close();
        produce(whole);
      })),
    ];
    const box = dialog(`Partition ${row.partition}, offset ${row.offset}`, { fields: parts });
  }

  function produce(record) {
    const kinds = ["string", "json", "avro", "protobuf", "json-schema", "bytes", "hex", "int", "long", "float", "double"];
    const guess = (part) => (part && kinds.includes(part.kind) ? part.kind : "string");
    const key = h("textarea", { rows: 2 }, record && record.key.value !== null ? pretty(record.key) : "");
    const value = h("textarea", { rows: 8 }, record && record.value.value !== null ? pretty(record.value) : "");
    const noKey = check("no key", { checked: !record || record.key.value === null });
    const tombstone = check("no value (tombstone)");
    const keyKind = select(kinds, guess(record && record.key)), valueKind = select(kinds, guess(record && record.value));
    const headers = h("textarea", { rows: 2, placeholder: "name: value, one a line" }, record ? record.headers.map(([name, each]) => `${name}: ${each === null ? "" : each}`).join("\n") : "");
    const partition = h("input", { type: "number", min: 0, placeholder: "by key" });
    key.addEventListener("input", () => (noKey.box.checked = key.value === ""));
    dialog("Send a record to " + topic, {
      action: "Send",
      fields: [h("div", { class: "row" }, field("Key format", keyKind), field("Value format", valueKind), field("Partition", partition)),
        field("Key", key), noKey, field("Value", value), tombstone, field("Headers", headers)],
      act: async () => {
        const parsed = (kind, written) => (["json", "avro", "protobuf", "json-schema"].includes(kind) ? exactly(written) : written);
        const made = {
          key: noKey.box.checked ? null : parsed(keyKind.value, key.value),
          value: tombstone.box.checked ? null : parsed(valueKind.value, value.value),
          headers: headers.value.split("\n").filter((each) => each.trim()).map((each) => {
            const cut = each.indexOf(":");
            return cut < 0 ? [each.trim(), null] : [each.slice(0, cut).trim(), each.slice(cut + 1).trim()];
          }),
        };
        if (partition.value) made.partition = Number(partition.value);
        const stored = await api("POST", path + "/records", { key_format: keyKind.value, value_format: valueKind.value, records: [made] });
        toast(`Stored in partition ${stored.data[0].partition} at offset ${stored.data[0].offset}.`);
        if (!stop) run();
      },
    });
  }

  function resend() {
    if (!chosen.size) {
      toast("Choose records first.", true);
      return;
    }
    const to = h("input", { value: topic, required: true });
    const records = [...chosen].map((id) => {
      const [partition, offset] = id.split(":").map(Number);
      return { partition, offset };
    });
    dialog(`Re-send ${counted(records.length, "record")}`, {
      action: "Re-send", fields: [field("To topic", to)],
      act: async () => {
        const stored = await api("POST", path + "/resend", { records, to: to.value });
        toast(`Sent ${counted(stored.data.length, "record")} to ${to.value}.`);
      },
    });
  }

  function copy() {
    const to = h("input", { required: true });
    const keep = check("keep partition numbers");
    const state = h("p", { class: "soft", role: "status" });
    dialog("Copy records to another topic", {
      action: "Copy", fields: [h("p", null, "Copies what the search above finds, from its start to the present end, with keys, headers and timestamps."), field("To topic", to), keep, state],
      act: () => {
        const asked = { ...wanted(), to: to.value, keep_partition: keep.box.checked, live: false };
        delete asked.limit;
        if (asked.start === "newest" || asked.start === "end") asked.start = "beginning";
        let failed = null;
        let copied = 0;
        return lines("POST", path + "/copy", asked, (found) => {
          if (found.error) failed = found.error;
          if (found.copied !== undefined) copied = found.copied;
          state.textContent = `${count(copied)} records copied`;
        }).then(() => {
          if (failed) throw new Error(failed);
          toast(`Copied ${counted(copied, "record")} to ${to.value}.`);
        });
      },
    });
  }

  function download(format) {
    const asked = wanted();
    delete asked.live;
    if (asked.partitions) asked.partitions = asked.partitions.join(",");
    if (asked.start === "end") asked.start = "newest";
    const anchor = h("a", { href: "/api" + path + "/export" + query({ ...asked, format }), download: "" });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    history.replaceState(null, "", location.pathname + query({ start: start.value === "newest" ? "" : start.value, contains: contains.value, expression: expression.value, table: asTable.box.checked }));
    run();
  });
  onleave(() => stop && stop.abort());
  run();
  return [head(topic, readOnly() ? null : button("Send a record", () => produce(null), "main")), topicTabs(topic, "messages"), form, progress, status, errors, place];
}

function help() {
  const examples = [
    ['key = "ada"', "the key is ada"],
    ['value.amount > 100 and value.state != "done"', "fields of JSON, Avro, Protobuf values"],
    ['$.items[0].sku like "A-%"', "a JSON path; % stands for any text"],
    ['header.region in ["eu", "us"]', "a header"],
    ['value contains "timeout"', "text anywhere in the value"],
    ['value.email matches "@example\\\\.com$"', "a regular expression (RE2)"],
    ["value.refund exists and not value.refund is null", "whether a field is there"],
    ["partition = 3 and offset >= 1000 and timestamp > 1700000000000", "where the record is"],
  ];
  dialog("Filters", { fields: [table([{ title: "Filter", value: (row) => h("code", null, row[0]) }, { title: "Finds", key: 1 }], examples, { caption: "Examples" })] });
}
