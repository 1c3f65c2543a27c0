import { api, button, count, counted, dialog, enc, exactly, field, go, h, head, here, link, panel, readOnly, select, short, some, stat, state, table, tag, time, toast } from "/static/lib.js";
import { text } from "/static/pages/messages.js";

const base = () => `/clusters/${enc(state.cluster)}/dead-letters`;

export async function page() {
  const found = await api("GET", base());
  const other = h("input", { placeholder: "another topic", "aria-label": "Another topic" });
  const form = h("form", { class: "row center panel" }, other, h("button", { class: "b", type: "submit" }, "Open"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (other.value) go(here("/dead-letters/" + enc(other.value.trim())));
  });
  return [head("Dead letters"), h("p", { class: "soft" }, "Topics whose names look like dead-letter topics. Any topic whose records have Connect's error headers can be opened."), form,
    h("div", { class: "panel" }, table([
      { title: "Topic", value: (row) => link("/dead-letters/" + enc(row.topic), row.topic) },
      { title: "Records", number: true, value: (row) => count(row.records) },
      { title: "Records/s", number: true, value: (row) => short(row.rate) },
    ], found.data, { caption: "Dead-letter topics", empty: "No dead-letter topics." }))];
}

export async function topic({ topic: name }) {
  const found = await api("GET", base() + "/" + enc(name), undefined, { exact: true });
  const chosen = new Map();
  const label = h("span", { class: "soft", role: "status" }, "no records chosen");
  const shown = () => (label.textContent = chosen.size ? `${counted(chosen.size, "record")} chosen` : "no records chosen");
  const parts = [head(name, link("/topics/" + enc(name) + "/messages", "Messages", { class: "button" }), readOnly() ? null : button("Send chosen back", redrive, "main")),
    h("div", { class: "stats" }, stat("records looked at", count(found.read)), stat(some(found.data.length, "reason"), count(found.data.length)), stat("already sent back", count(found.redriven), found.redriven ? "good" : "")), h("p", { class: "spaced" }, label)];
  for (const reason of found.data) {
    const boxes = [];
    const all = h("input", { type: "checkbox", "aria-label": "Choose all of this reason", onchange: () => boxes.forEach((box) => {
      if (box.disabled) return;
      box.checked = all.checked;
      box.dispatchEvent(new Event("change"));
    }) });
    parts.push(panel(null, h("div", { class: "row center" }, readOnly() ? null : all, h("h2", null, reason.error || "Unknown error"), tag(count(reason.count), "bad"), reason.stage ? tag(reason.stage) : null, reason.source ? tag(reason.source) : null, reason.topic ? ["from ", link("/topics/" + enc(reason.topic), reason.topic)] : null),
      h("p", { class: "mono" }, reason.message),
      h("details", null, h("summary", null, "Records"), table([
        { title: "", choose: true, value: (row) => {
          const box = h("input", { type: "checkbox", disabled: row.redriven || readOnly(), "aria-label": `Choose partition ${row.partition} offset ${row.offset}`, onchange: () => {
            const id = row.partition + ":" + row.offset;
            if (box.checked) chosen.set(id, row);
            else chosen.delete(id);
            shown();
          } });
          boxes.push(box);
          return box;
        } },
        { title: "Time", value: (row) => h("span", { class: "mono time" }, time(row.timestamp)) },
        { title: "Partition", number: true, key: "partition" },
        { title: "Offset", number: true, key: "offset" },
        { title: "Key", value: (row) => h("span", { class: "cut key mono" }, text(row.key)) },
        { title: "Value", value: (row) => h("span", { class: "cut mono" }, text(row.value)) },
        { title: "State", value: (row) => (row.redriven ? tag("sent back", "good") : null) },
      ], reason.records.slice().reverse(), { caption: "The last records of this reason" }))));
  }
  if (!found.data.length) parts.push(h("p", { class: "soft" }, "The topic has no records."));
  return parts;

  async function redrive() {
    if (!chosen.size) {
      toast("Choose records first.", true);
      return;
    }
    const rows = [...chosen.values()];
    // The list has only the beginning of a long value, and all of it is edited.
    if (rows.length === 1) {
      rows[0] = await api("GET", `/clusters/${enc(state.cluster)}/topics/${enc(name)}/partitions/${rows[0].partition}/messages/${rows[0].offset}`, undefined, { exact: true });
    }
    const to = h("input", { placeholder: "the topic that each record came from" });
    const one = rows.length === 1;
    const kind = select(["string", "json", "avro", "protobuf", "json-schema", "bytes"], one && rows[0].value.kind !== "null" ? rows[0].value.kind : "string");
    const before = one ? (typeof rows[0].value.value === "string" ? rows[0].value.value : JSON.stringify(rows[0].value.value, null, 2)) : "";
    const value = h("textarea", { rows: 8 }, before);
    const result = h("div");
    dialog(`Send ${rows.length} ${one ? "record" : "records"} back`, {
      action: "Send back",
      fields: [h("p", null, "In one transaction: all of them or none, and none of them twice."), field("To topic", to), one ? [field("Value format", kind), field("Value", value)] : null, result],
      act: async () => {
        const records = rows.map((row) => ({ partition: row.partition, offset: row.offset }));
        const asked = { records, to: to.value };
        if (one && value.value !== before) {
          records[0].value = ["string", "bytes"].includes(kind.value) ? value.value : exactly(value.value);
          asked.value_format = kind.value;
        }
        const done = await api("POST", `${base()}/${enc(name)}/redrive`, asked);
        const sent = done.data.filter((each) => each.result === "sent back").length;
        toast(`${sent} sent back, ${done.data.length - sent} had been sent back before.`);
        go(location.pathname);
      },
    });
  }
}
