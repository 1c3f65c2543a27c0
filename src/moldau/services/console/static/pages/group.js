import { h, head } from "/static/lib.js";

export function page() {
  return [head("Group"), h("p", { class: "soft" }, "There is no page for this yet.")];
}
