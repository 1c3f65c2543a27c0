import { api, button, confirm, count, enc, h, head, paged, panel, problem, query, readOnly, replace, state, table, tag, time, toast, duration } from "/static/lib.js";

export async function page() {
  const path = `/clusters/${enc(state.cluster)}/transactions`;
  const hanging = h("div", null, h("p", { class: "soft" }, "A hanging transaction stays open in a partition though its coordinator has ended or forgotten it; consumers with read_committed wait for it."));
  const find = button("Find hanging transactions", async () => {
    find.disabled = true;
    try {
      const found = await api("GET", path + "/hanging");
      replace(hanging, table([
        { title: "Partition", value: (row) => `${row.topic}-${row.partition}` },
        { title: "Producer id", number: true, value: (row) => count(row.producer_id) },
        { title: "Epoch", number: true, key: "producer_epoch" },
        { title: "Since offset", number: true, value: (row) => count(row.start_offset) },
        { title: "Last record", value: (row) => time(row.last_ms) },
        { title: "", value: (row) => (readOnly() ? null : button("Abort", () => confirm("Abort transaction", `Aborts the transaction of producer ${row.producer_id} in ${row.topic}-${row.partition}.`, "Abort", async () => {
          await api("POST", path + "/abort", row);
          toast("The transaction is aborted.");
          find.click();
        }), "small danger")) },
      ], found.data, { caption: "Hanging transactions", empty: "No hanging transactions." }));
    } catch (error) {
      replace(hanging, problem(error));
    }
    find.disabled = false;
  });
  const list = paged({
    placeholder: "Search transactional ids", caption: "Transactional ids", auto: 10000, empty: "No transactional ids.",
    load: (settings) => api("GET", path + query(settings)),
    columns: [
      { title: "Transactional id", sort: "name", wrap: true, key: "id" },
      { title: "State", sort: "state", value: (row) => tag(row.state, row.state === "Ongoing" ? "warn" : "") },
      { title: "Producer id", sort: "producer", number: true, value: (row) => count(row.producer) },
      { title: "Epoch", number: true, value: (row) => count(row.epoch) },
      { title: "Coordinator", number: true, key: "coordinator" },
      { title: "Open for", number: true, value: (row) => (row.started_ms ? duration((Date.now() - row.started_ms) / 1000) : "–") },
      { title: "Partitions", wrap: true, value: (row) => (row.partitions || []).join(", ") || "–" },
      { title: "", value: (row) => (row.state === "Ongoing" && !readOnly() ? button("Terminate", () => confirm("Terminate transaction", `Aborts the open transaction of ${row.id} and fences its producer.`, "Terminate", async () => {
        await api("POST", `${path}/${enc(row.id)}/terminate`, {});
        toast("The transaction is terminated.");
        list.refresh();
      }), "small danger", { "aria-label": "Terminate " + row.id }) : null) },
    ],
  });
  return [head("Transactions"), list, panel("Hanging transactions", h("p", null, find), hanging)];
}
