import { api, count, duration, enc, h, head, link, paged, query, select, state, tag } from "/static/lib.js";

export const stateTag = (text) => tag(text || "–", text === "Stable" ? "good" : text === "Empty" || text === "Dead" ? "" : "warn");

export async function page() {
  const kind = select([["", "All kinds"], "classic", "consumer", "share", "streams"], "", { "aria-label": "Kind" });
  const list = paged({
    placeholder: "Search groups", caption: "Groups", extra: [kind], auto: 10000, empty: "No groups.",
    load: (settings) => api("GET", `/clusters/${enc(state.cluster)}/groups` + query({ ...settings, kind: kind.value })),
    columns: [
      { title: "Group", sort: "name", wrap: true, value: (row) => link("/groups/" + enc(row.group), row.group) },
      { title: "Kind", sort: "kind", value: (row) => tag(row.kind) },
      { title: "State", sort: "state", value: (row) => stateTag(row.state) },
      { title: "Members", sort: "members", number: true, value: (row) => count(row.members) },
      { title: "Behind, records", sort: "lag", number: true, value: (row) => count(row.lag) },
      { title: "Behind, time", sort: "lag_seconds", number: true, value: (row) => duration(row.lag_seconds) },
      { title: "Clears in", sort: "clears_in", number: true, value: (row) => clears(row) },
    ],
  });
  kind.addEventListener("change", list.refresh);
  return [head("Groups"), list];
}

// A group less than a second behind keeps up, whatever the trend of a few records says.
export function clearing(row) {
  if (!row.lag) return row.lag === 0 ? "keeps up" : "–";
  if (row.lag_seconds !== null && row.lag_seconds < 1) return "keeps up";
  return row.clears_in === null ? "never" : duration(row.clears_in);
}
export function clears(row) {
  if (row.stuck) return tag(row.stuck === true ? "stuck" : row.stuck + " stuck", "bad");
  const text = clearing(row);
  return text === "never" ? h("span", { title: "The lag does not shrink." }, text) : text;
}
