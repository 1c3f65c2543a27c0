import { enc, h, head, state } from "/static/lib.js";
import { settingsTable } from "/static/pages/settings_table.js";

export async function page() {
  return [head("Settings of all brokers"),
    h("p", { class: "soft" }, "A value set here applies to every broker that has none of its own; the page of a broker changes that broker alone."),
    await settingsTable(`/clusters/${enc(state.cluster)}/settings`)];
}
