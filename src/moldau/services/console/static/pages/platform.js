import { api, button, duration, enc, every, field, h, head, panel, problem, query, redraw, replace, select, state, table, tag } from "/static/lib.js";

const base = () => "/clusters/" + enc(state.cluster) + "/platform";
const kind = (text) => ({ up: "good", failing: "bad", ended: "bad", idle: "", waiting: "" })[text] ?? "warn";

export async function page() {
  const services = h("div");
  const messages = h("pre", { tabindex: "0", role: "region", "aria-label": "Messages" });
  const log = h("pre", { tabindex: "0", role: "region", "aria-label": "Log" });
  const search = h("input", { type: "search" });
  const found = await api("GET", base());
  if (!found.logs.length) {
    return [head("Platform"), h("p", { class: "soft" }, "This console does not belong to a platform of moldau up: set platform.data to its directory.")];
  }
  const chosen = select(found.logs, found.logs.includes("up") ? "up" : found.logs[0]);
  function draw(status) {
    const now = Date.now();
    redraw(services, table([
      { title: "Service", key: "title" },
      { title: "State", value: (row) => tag(row.state, kind(row.state)) },
      { title: "Address", value: (row) => row.address || "–" },
      { title: "Process", number: true, value: (row) => row.pid || "–" },
      { title: "For", value: (row) => duration((now - row.sinceMs) / 1000) },
      { title: "Restarts", number: true, key: "restarts" },
      { title: "Problem", wrap: true, value: (row) => row.problem || "–" },
    ], status.services, { quiet: true, caption: "Services", empty: "moldau up does not run." }));
    redraw(messages, status.messages.join("\n") || "None yet.");
  }
  async function read() {
    try {
      const lines = await api("GET", `${base()}/logs/${enc(chosen.value)}` + query({ search: search.value }));
      redraw(log, lines.data.join("\n") || "Empty.");
    } catch (error) {
      replace(log, error.message);
    }
  }
  async function refresh() {
    try {
      draw(await api("GET", base()));
    } catch (error) {
      replace(services, problem(error));
    }
    await read();
  }
  chosen.addEventListener("change", read);
  search.addEventListener("input", read);
  draw(found);
  await read();
  every(3000, refresh);
  return [head("Platform"), panel("Services", services), panel("What it did", messages),
    panel("Logs", h("div", { class: "row" }, field("Service", chosen), field("Lines with", search), button("Read again", read)), log)];
}
