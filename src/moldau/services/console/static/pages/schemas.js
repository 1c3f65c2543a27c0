import { api, button, confirm, dialog, enc, field, go, h, head, here, link, paged, panel, problem, query, readOnly, replace, select, state, table, tag, toast } from "/static/lib.js";

const base = () => "/clusters/" + enc(state.cluster) + "/schemas";
const LEVELS = ["BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE"];

export async function page() {
  const level = select(LEVELS, null, { disabled: readOnly() });
  // What is loaded while a level is being set may be the one before.
  let changes = 0;
  level.addEventListener("change", async () => {
    const chosen = level.value;
    changes += 1;
    try {
      await api("PUT", `/clusters/${enc(state.cluster)}/schema-compatibility`, { level: chosen });
      toast(`Subjects without a level of their own are ${chosen} from now on.`);
      changes += 1;
    } catch (error) {
      toast(error.message, true);
      changes += 1;
      list.refresh();
    }
  });
  const list = paged({
    placeholder: "Search subjects", caption: "Subjects", empty: "No subjects. Register the first schema.",
    load: async (settings) => {
      const before = changes;
      const found = await api("GET", base() + query(settings));
      if (before === changes) level.value = found.default_compatibility;
      return found;
    },
    columns: [
      { title: "Subject", sort: "name", wrap: true, value: (row) => link("/schemas/" + enc(row.name), row.name) },
      { title: "Type", value: (row) => (row.type ? tag(row.type) : tag(row.error || "unknown", "bad")) },
      { title: "Latest version", number: true, key: "version" },
      { title: "Schema ID", number: true, key: "id" },
      { title: "Compatibility", value: (row) => row.compatibility || h("span", { class: "soft" }, "default") },
    ],
    extra: [field("Compatibility of subjects that have none", level)],
  });
  return [head("Schemas", readOnly() ? null : button("Register schema", () => register(), "main")), list];
}

function register(subject = "", schema = "", type = "AVRO") {
  const name = h("input", { required: true, value: subject, readonly: Boolean(subject), placeholder: "orders-value" });
  const kind = select(["AVRO", "JSON", "PROTOBUF"], type);
  const textarea = h("textarea", { required: true, class: "tall", spellcheck: "false", value: schema });
  const result = h("div", { role: "status" });
  const path = () => `${base()}/${enc(name.value)}`;
  const check = button("Check compatibility", async () => {
    try {
      const found = await api("POST", path() + "/check", { schema: textarea.value, type: kind.value });
      replace(result, found.compatible
        ? h("p", null, tag("compatible", "good"))
        : h("div", { class: "note bad" }, h("p", null, "Not compatible:"), h("ul", null, found.messages.map((each) => h("li", { class: "mono" }, each)))));
    } catch (error) {
      replace(result, problem(error));
    }
  });
  dialog(subject ? `New version of ${subject}` : "Register schema", {
    action: "Register", wide: true,
    fields: [field("Subject", name, "The name of a topic with -value or -key."), field("Type", kind), field("Schema", textarea), check, result],
    act: async () => {
      const found = await api("POST", path() + "/versions", { schema: textarea.value, type: kind.value });
      toast(`Registered with ID ${found.id}.`);
      go(here("/schemas/" + enc(name.value)));
    },
  });
}

export async function subject({ subject: name }) {
  const found = await api("GET", `${base()}/${enc(name)}`);
  const versions = found.versions;
  const latest = versions[versions.length - 1];
  const numbers = versions.map((each) => [String(each.version), `version ${each.version}`]);
  const left = select(numbers, String((versions[versions.length - 2] || latest).version), { "aria-label": "From version" });
  const right = select(numbers, String(latest.version), { "aria-label": "To version" });
  const difference = h("div");
  async function compare() {
    try {
      const lines = await api("GET", `${base()}/${enc(name)}/diff` + query({ from: left.value, to: right.value }));
      replace(difference, h("pre", { tabindex: "0", role: "region", "aria-label": "Difference" }, lines.data.map((each) =>
        h("span", { class: each.sign === "+" ? "plus" : each.sign === "-" ? "minus" : "same" }, `${each.sign} ${each.text}`))));
    } catch (error) {
      replace(difference, problem(error));
    }
  }
  left.addEventListener("change", compare);
  right.addEventListener("change", compare);
  await compare();
  const level = select([["", "registry's default"], ...LEVELS], found.compatibility || "", { disabled: readOnly() });
  level.addEventListener("change", async () => {
    const chosen = level.value;
    try {
      if (chosen) await api("PUT", `${base()}/${enc(name)}/compatibility`, { level: chosen });
      else await api("DELETE", `${base()}/${enc(name)}/compatibility`);
      toast(chosen ? `${name} is ${chosen} from now on.` : `${name} has the registry's compatibility from now on.`);
    } catch (error) {
      toast(error.message, true);
    }
  });
  const actions = readOnly() ? [] : [
    button("New version", () => register(name, latest.schema, latest.type), "main"),
    button("Delete subject", () => confirm("Delete subject", `All ${versions.length} versions of ${name} are deleted. Records that use them can still be read until they are deleted for good.`, "Delete", async () => {
      await api("DELETE", `${base()}/${enc(name)}`);
      toast(`${name} is deleted.`);
      go(here("/schemas"));
    }, name), "danger"),
  ];
  const shown = h("pre", { tabindex: "0", role: "region", "aria-label": "Schema" }, latest.schema);
  return [
    head(name, ...actions),
    panel("Versions", h("div", { class: "row center spaced" }, field("Compatibility", level)), table([
      { title: "Version", number: true, key: "version" },
      { title: "ID", number: true, key: "id" },
      { title: "Type", value: (row) => tag(row.type) },
      { title: "References", value: (row) => row.references.map((each) => each.subject).join(", ") || "–" },
      { title: "", value: (row) => h("span", { class: "row" },
        button("Show", () => replace(shown, row.schema), "small", { "aria-label": `Show version ${row.version}` }),
        readOnly() ? null : button("Delete", () => confirm("Delete version", `Version ${row.version} of ${name} is deleted.`, "Delete", async () => {
          await api("DELETE", `${base()}/${enc(name)}/versions/${row.version}`);
          toast(`Version ${row.version} is deleted.`);
          go(here(versions.length > 1 ? "/schemas/" + enc(name) : "/schemas"));
        }), "small danger", { "aria-label": `Delete version ${row.version}` })) },
    ], versions, { quiet: true, caption: "Versions" })),
    panel("Schema", shown),
    versions.length > 1 ? panel("Difference", h("div", { class: "row center" }, left, "to", right), difference) : null,
  ];
}
