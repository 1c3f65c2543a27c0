import { api, button, check, count, enc, every, go, h, head, query, replace, problem, state } from "/static/lib.js";
import { liveGraph, page as pageOf } from "/static/graph.js";

export async function page() {
  const failed = h("div");
  const place = liveGraph("What feeds what", { onpick: (node) => {
    if (around === node.id && node.link) go(pageOf(node));
    else show(node.id);
  } });
  const notes = h("div");
  const internal = check("internal topics");
  const focus = h("span");
  let around = new URLSearchParams(location.search).get("around") || "";
  async function refresh() {
    try {
      const found = await api("GET", `/clusters/${enc(state.cluster)}/lineage` + query({ around, internal: internal.box.checked }));
      replace(notes, found.problems.map((each) => h("div", { class: "note" }, each)),
        found.left_out ? h("div", { class: "note" }, `${count(found.left_out)} more are left out: choose one to see what is around it.`) : null);
      replace(failed, null);
      place.show(found);
    } catch (error) {
      replace(failed, problem(error));
    }
  }
  function show(id) {
    around = id;
    replace(focus, id ? [`around ${id.slice(id.indexOf(":") + 1)} `, button("Show all", () => show(""), "small")] : null);
    history.replaceState(null, "", location.pathname + query({ around: id }));
    refresh();
  }
  internal.box.addEventListener("change", refresh);
  await refresh();
  if (around) show(around);
  every(5000, refresh);
  return [head("Lineage"), notes,
    h("div", { class: "row center panel" }, internal, h("span", { class: "soft" }, "Choose a box to see what feeds it and what it feeds; choose it again to open its page."), focus),
    h("div", { class: "panel" }, failed, place)];
}
