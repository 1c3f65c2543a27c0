import { api, bar, button, bytes, count, counted, dialog, duration, enc, every, field, h, head, panel, problem, query, readOnly, redraw, replace, state, table, toast } from "/static/lib.js";

const base = () => "/clusters/" + enc(state.cluster) + "/balancer";
const format = (name, value) => (name === "replicas" || name === "leaders" ? count(value) : bytes(value));

export async function page() {
  const place = h("div");
  const moving = h("div");
  const drain = h("input", { placeholder: "for example 3" });
  const add = h("input", { placeholder: "for example 4" });
  const throttle = h("input", { type: "number", min: 1, placeholder: "no limit" });
  let plan = null;
  const start = button("Carry out", execute, "main", { disabled: true });

  let asked = 0;
  async function load() {
    const number = ++asked;
    replace(place, h("p", { class: "soft" }, "Reading the cluster …"));
    start.disabled = true;
    try {
      const found = await api("GET", base() + "/plan" + query({ drain: drain.value, add: add.value, throttle: throttle.value }));
      if (number !== asked) return;
      plan = found;
      draw();
      start.disabled = !plan.total;
    } catch (error) {
      if (number === asked) replace(place, problem(error));
    }
  }
  function draw() {
    const brokers = Object.keys(plan.before);
    const names = Object.keys(plan.before[brokers[0]] || {}).filter((name) =>
      brokers.some((broker) => plan.before[broker][name] || (plan.after[broker] || {})[name]));
    replace(place,
      panel(plan.total ? `${counted(plan.total, "partition")} would move, ${bytes(plan.bytes)}${plan.seconds ? ", in at least " + duration(plan.seconds) : ""}` : "Nothing has to move",
        h("div", { class: "grid" }, names.map((name) => loads(name, brokers)))),
      plan.unmet.length ? panel("Not reached", h("ul", null, plan.unmet.map((each) => h("li", null, each)))) : null,
      panel("Moves", table([
        { title: "Partition", wrap: true, value: (row) => `${row.topic}-${row.partition}` },
        { title: "From", value: (row) => row.currentReplicas.join(", ") },
        { title: "To", value: (row) => row.replicas.join(", ") },
        { title: "Bytes", number: true, value: (row) => bytes(row.bytes) },
        { title: "Reason", wrap: true, key: "reason" },
      ], plan.data, { quiet: true, caption: "Moves", empty: "Load is spread evenly." })));
  }
  function loads(name, brokers) {
    const most = Math.max(1e-9, ...brokers.flatMap((each) => [plan.before[each][name], (plan.after[each] || {})[name] || 0]));
    const cell = (value, when, broker) => [bar(value / most, `${name} of broker ${broker} ${when}: ${format(name, value)}`), format(name, value)];
    return h("div", null, h("h3", null, name[0].toUpperCase() + name.slice(1)), table([
      { title: "Broker", value: (row) => row },
      { title: "Now", value: (row) => cell(plan.before[row][name], "now", row) },
      { title: "Then", value: (row) => cell((plan.after[row] || {})[name] || 0, "then", row) },
    ], brokers, { quiet: true, caption: `${name} by broker` }));
  }
  async function status() {
    try {
      const found = await api("GET", base());
      const at = found.progress;
      redraw(moving, found.running || found.data.length || found.message ? panel("In progress",
        at ? h("p", null, `${at.done} of ${at.total} partitions are done, ${at.moving} in progress.`) : found.message ? h("p", null, found.message) : null,
        found.data.length ? table([
          { title: "Partition", value: (row) => `${row.topic}-${row.partition}` },
          { title: "From", value: (row) => row.removing.join(", ") || "–" },
          { title: "To", value: (row) => row.adding.join(", ") || "–" },
          { title: "Copied", value: (row) => [bar(row.size ? row.copied / row.size : 0, "copied"), `${bytes(row.copied)} of ${bytes(row.size)}`] },
        ], found.data, { quiet: true, caption: "Reassignments" }) : null,
        readOnly() || !(found.running || found.data.length) ? null : button("Stop", async () => {
          await api("POST", base() + "/stop", {});
          toast("The moves are cancelled.");
        }, "danger")) : null);
    } catch (error) {
      replace(moving, problem(error));
    }
  }
  function execute() {
    const limit = h("input", { type: "number", min: 1, placeholder: "no limit", value: throttle.value });
    dialog("Carry out the plan", {
      action: "Start", fields: [h("p", null, `${counted(plan.total, "partition moves", "partitions move")}, ${bytes(plan.bytes)} are copied.`), field("Throttle (bytes per second)", limit)],
      act: async () => {
        const found = await api("POST", base() + "/execute", { throttle: limit.value ? Number(limit.value) : null, drain: drain.value, add: add.value });
        toast(found.moves ? `${found.moves} partitions are moved.` : "Nothing has to move.");
        await status();
      },
    });
  }
  // The plan of a large cluster takes a while: the page is there before it.
  load();
  await status();
  every(2000, status);
  return [head("Balancer", readOnly() ? null : start),
    h("div", { class: "row panel" }, field("Empty these brokers", drain), field("Fill only these brokers", add), field("Bytes per second for each broker", throttle), button("Plan again", load)), moving, place];
}
