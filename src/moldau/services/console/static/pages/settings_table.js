// Settings of a topic, a broker or a group: explained, searched, changed.
import { api, button, check, dialog, field, h, readOnly, replace, table, tag, toast } from "/static/lib.js";

const SOURCES = {
  DYNAMIC_TOPIC_CONFIG: "topic", DYNAMIC_BROKER_CONFIG: "broker", DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers",
  STATIC_BROKER_CONFIG: "file", DEFAULT_CONFIG: "default", DYNAMIC_GROUP_CONFIG: "group",
};

export async function settingsTable(path, { changed } = {}) {
  const place = h("div");
  const search = h("input", { type: "search", placeholder: "Search settings", "aria-label": "Search settings" });
  const onlySet = check("only what differs from the default");
  let rows = [];

  function draw() {
    const words = search.value.toLowerCase().split(/\s+/);
    const found = rows.filter((row) => words.every((word) => (row.name + " " + row.documentation).toLowerCase().includes(word)) &&
      (!onlySet.box.checked || row.source !== "DEFAULT_CONFIG"));
    replace(place, table([
      { title: "Setting", wrap: true, value: (row) => [h("code", null, row.name), h("div", { class: "soft" }, row.documentation)] },
      { title: "Value", wrap: "value", value: (row) => h("code", null, row.sensitive ? "hidden" : row.value === null ? "–" : row.value === "" ? "(empty)" : row.value) },
      { title: "From", value: (row) => tag(SOURCES[row.source] || row.source.toLowerCase(), row.source === "DEFAULT_CONFIG" ? "" : "good") },
      { title: "", value: (row) => (row.read_only || readOnly() ? null : button("Change", () => change(row), "small", { "aria-label": "Change " + row.name })) },
    ], found, { caption: "Settings", quiet: true, empty: "No setting matches." }));
  }

  function change(row) {
    const value = h("input", { value: row.value || "", class: "mono" });
    const reset = check("back to the default");
    dialog("Change " + row.name, {
      fields: [
        h("p", null, row.documentation),
        h("p", { class: "soft" }, `Type: ${row.type.toLowerCase()}. `, row.synonyms.length
          ? "In order: " + row.synonyms.map((each) => `${each.value === null ? "–" : each.value} (${SOURCES[each.source] || each.source})`).join(", ") : ""),
        field("Value", value), row.source === "DEFAULT_CONFIG" ? null : reset,
      ],
      act: async () => {
        await api("PATCH", path, reset.box.checked ? { set: {}, delete: [row.name] } : { set: { [row.name]: value.value } });
        toast(row.name + " is changed.");
        await load();
        if (changed) changed();
      },
    });
  }

  async function load() {
    rows = (await api("GET", path)).data;
    draw();
  }
  search.addEventListener("input", draw);
  onlySet.box.addEventListener("change", draw);
  await load();
  return h("div", null, h("div", { class: "row center panel" }, h("span", { class: "grow" }, search), onlySet), h("div", { class: "panel" }, place));
}
