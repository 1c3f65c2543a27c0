import { api, button, check, confirm, dialog, enc, every, facts, field, go, h, head, here, link, panel, problem, readOnly, redraw, replace, select, state, table, tag, toast } from "/static/lib.js";
import { liveGraph } from "/static/graph.js";

const base = () => "/clusters/" + enc(state.cluster);
const kind = (text) => ({ RUNNING: "good", FAILED: "bad", PAUSED: "warn", STOPPED: "warn" })[text] || "";

export async function page() {
  const place = h("div");
  async function refresh() {
    let found;
    try {
      found = await api("GET", base() + "/connectors");
    } catch (error) {
      replace(place, problem(error));
      return;
    }
    redraw(place, table([
      { title: "Connector", wrap: true, value: (row) => link("/connectors/" + enc(row.name), row.name) },
      { title: "Kind", value: (row) => tag(row.type || "unknown") },
      { title: "Class", wrap: true, value: (row) => row.class.split(".").pop() },
      { title: "State", value: (row) => tag(row.state, row.failed ? "warn" : kind(row.state)) },
      { title: "Tasks", value: (row) => [h("span", { class: "nowrap" }, `${row.running} of ${row.task_count} running `), row.failed ? tag(`${row.failed} failed`, "bad") : null] },
      { title: "Error", wrap: true, value: (row) => row.error || "–" },
    ], found.data, { quiet: true, caption: "Connectors", empty: "No connectors. Create the first one." }));
  }
  await refresh();
  every(3000, refresh);
  return [head("Connectors", readOnly() ? null : button("Create connector", () => create(), "main")), h("div", { class: "panel" }, place)];
}

async function create(name = "", config = null) {
  const plugins = (await api("GET", base() + "/connector-plugins")).data;
  const chosen = config ? config["connector.class"] : "";
  const title = h("input", { required: true, value: name, readonly: Boolean(name) });
  const plugin = select([["", "Choose a class"], ...plugins.map((each) => [each.class, `${each.class.split(".").pop()} (${each.type})`])], chosen, { required: true });
  if (chosen && plugin.value !== chosen) {
    plugin.append(h("option", { value: chosen }, chosen));
    plugin.value = chosen;
  }
  const settings = h("div");
  const more = h("textarea", { spellcheck: "false", placeholder: "transforms=…\nerrors.tolerance=all" });
  const advanced = check("all settings");
  let inputs = {};
  let definitions = [];
  const marks = {};

  function draw() {
    const before = values();
    inputs = {};
    const groups = {};
    for (const each of definitions) {
      if (["name", "connector.class"].includes(each.name)) continue;
      const present = before[each.name] ?? (config && config[each.name]);
      if (!each.required && each.importance !== "HIGH" && !advanced.box.checked && present === undefined) continue;
      const options = each.type === "BOOLEAN" ? ["", "true", "false"] : null;
      const input = options ? select(options, present || "")
        : h("input", { type: each.type === "PASSWORD" ? "password" : "text", value: present || "", placeholder: each.default_value ?? "", autocomplete: "off" });
      inputs[each.name] = input;
      marks[each.name] = h("span", { class: "bad" });
      (groups[each.group || "Settings"] ||= []).push(h("div", null,
        field(each.name + (each.required ? " (required)" : ""), input, each.documentation), marks[each.name]));
    }
    replace(settings, Object.entries(groups).map(([group, rows]) => h("fieldset", null, h("legend", null, group), rows)));
  }
  function values() {
    const found = {};
    for (const [key, input] of Object.entries(inputs)) if (input.value !== "") found[key] = input.value;
    for (const line of more.value.split("\n")) {
      const at = line.indexOf("=");
      if (at > 0) found[line.slice(0, at).trim()] = line.slice(at + 1).trim();
    }
    return found;
  }
  async function choose() {
    if (!plugin.value) return;
    try {
      definitions = (await api("GET", `${base()}/connector-plugins/${enc(plugin.value)}`)).data;
      draw();
    } catch (error) {
      replace(settings, problem(error));
    }
  }
  plugin.addEventListener("change", choose);
  advanced.box.addEventListener("change", draw);
  if (config) {
    await choose();
    const rest = Object.entries(config).filter(([key]) => !(key in inputs) && !["name", "connector.class"].includes(key));
    more.value = rest.map(([key, value]) => `${key}=${value}`).join("\n");
  }
  dialog(name ? `Settings of ${name}` : "Create connector", {
    action: name ? "Save" : "Create", wide: true,
    fields: [field("Name", title), field("Class", plugin), advanced, settings,
      field("Further settings", more, "One KEY=VALUE in a line: transforms, converters, predicates, errors.")],
    act: async () => {
      const wanted = { ...values(), name: title.value };
      const checked = await api("POST", `${base()}/connector-plugins/${enc(plugin.value)}/validate`, { config: wanted });
      const left = [];
      for (const mark of Object.values(marks)) replace(mark);
      for (const [key, texts] of Object.entries(checked.errors)) {
        if (marks[key] && marks[key].isConnected) replace(marks[key], texts.join(" "));
        left.push(`${key}: ${texts.join(" ")}`);
      }
      if (checked.error_count) throw new Error(left.join("\n") || "The settings are not valid.");
      await api("PUT", `${base()}/connectors/${enc(title.value)}`, { config: { ...wanted, "connector.class": plugin.value } });
      toast(`${title.value} is ${name ? "changed" : "created"}.`);
      go(here("/connectors/" + enc(title.value)));
    },
  });
}

export async function connector({ connector: name }) {
  const path = `${base()}/connectors/${enc(name)}`;
  const place = h("div");
  const drawn = liveGraph(`What ${name} reads and writes`);
  let last = null;
  async function refresh() {
    let found;
    try {
      found = last = await api("GET", path);
    } catch (error) {
      replace(place, problem(error));
      return;
    }
    drawn.show(found.picture);
    redraw(place,
      panel("State", facts([
        ["State", tag(found.state, kind(found.state))], ["Worker", found.worker], ["Kind", found.type],
        ["Class", found.class],
        ["Topics", found.topics.length ? found.topics.flatMap((each, i) => [i ? ", " : "", link("/topics/" + enc(each), each)]) : "none yet"],
      ]), found.trace ? h("pre", { tabindex: "0", role: "region", "aria-label": "Error" }, found.trace) : null),
      panel("Tasks", table([
        { title: "Task", number: true, key: "id" },
        { title: "State", value: (row) => tag(row.state, kind(row.state)) },
        { title: "Worker", key: "worker_id" },
        { title: "Error", wrap: true, value: (row) => (row.trace ? h("details", null, h("summary", null, row.trace.trim().split("\n").pop()), h("pre", null, row.trace)) : "–") },
        { title: "", value: (row) => (readOnly() ? null : button("Restart", act(`tasks/${row.id}/restart`, `Task ${row.id} is restarted.`), "small", { "aria-label": `Restart task ${row.id}` })) },
      ], found.tasks, { quiet: true, caption: "Tasks", empty: "No tasks." })),
      panel("Offsets", table([
        { title: "Partition", wrap: true, value: (row) => h("code", null, JSON.stringify(row.partition)) },
        { title: "Offset", wrap: true, value: (row) => h("code", null, JSON.stringify(row.offset)) },
      ], found.offsets, { quiet: true, caption: "Offsets", empty: "No offsets yet." }),
        readOnly() ? null : button("Forget offsets", () => confirm("Forget offsets", `${name} starts from the beginning again. It must be stopped.`, "Forget", async () => {
          await api("DELETE", path + "/offsets");
          toast("The offsets are forgotten.");
          refresh();
        }), "danger")),
      panel("Settings", table([
        { title: "Setting", value: (row) => h("code", null, row[0]) },
        { title: "Value", wrap: true, value: (row) => h("code", null, row[1]) },
      ], Object.entries(found.config).sort(), { quiet: true, caption: "Settings" })));
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
  every(2000, refresh);
  const actions = readOnly() ? [] : [
    button("Pause", act("pause", `${name} is paused.`)), button("Resume", act("resume", `${name} is resumed.`)),
    button("Stop", act("stop", `${name} is stopped.`)), button("Restart", act("restart", `${name} is restarted.`)),
    button("Change", () => create(name, last.config)),
    button("Delete", () => confirm("Delete connector", `${name} and its tasks end. Its topics stay.`, "Delete", async () => {
      await api("DELETE", path);
      toast(`${name} is deleted.`);
      go(here("/connectors"));
    }, name), "danger"),
  ];
  return [head(name, ...actions), panel("Flow", drawn), place];
}
