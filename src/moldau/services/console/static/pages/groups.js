import { api, count, duration, enc, head, link, paged, query, select, state, tag } from "/static/lib.js";

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

export function clears(row) {
  if (row.stuck) return tag(row.stuck === true ? "stuck" : row.stuck + " stuck", "bad");
  if (row.clears_in !== null) return duration(row.clears_in);
  return row.lag ? "not shrinking" : "–";
}
