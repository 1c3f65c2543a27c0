import { h, head } from "/static/lib.js";

export function page() {
  return [head("Dead letters"), h("p", { class: "soft" }, "There is no page for this yet.")];
}
export const topic = page;
