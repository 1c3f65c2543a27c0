import { h, head } from "/static/lib.js";

export function page() {
  return [head("Pipelines"), h("p", { class: "soft" }, "There is no page for this yet.")];
}
