import { api, button, confirm, dialog, enc, field, h, head, readOnly, replace, state, table, time, toast } from "/static/lib.js";

export async function page() {
  const path = `/clusters/${enc(state.cluster)}/tokens`;
  const place = h("div", { class: "panel" });
  async function refresh() {
    let found;
    try {
      found = await api("GET", path);
    } catch (error) {
      replace(place, h("div", { class: "note" }, "Delegation tokens are for users who log in: " + error.message));
      return;
    }
    replace(place, table([
      { title: "Token", wrap: true, value: (row) => h("code", null, row.id) },
      { title: "Owner", key: "owner" },
      { title: "Renewers", value: (row) => row.renewers.join(", ") || "–" },
      { title: "Issued", value: (row) => time(row.issued_ms) },
      { title: "Expires", value: (row) => time(row.expires_ms) },
      { title: "At the latest", value: (row) => time(row.max_ms) },
      { title: "", value: (row) => (readOnly() ? null : [button("Renew", () => act("renew", row, "renewed"), "small"), " ", button("End", () => confirm("End token", `Clients that use the token ${row.id} cannot log in again.`, "End", () => act("expire", row, "ended")), "small danger")]) },
    ], found.data, { caption: "Delegation tokens", quiet: true, empty: "No delegation tokens." }));
  }
  async function act(what, row, word) {
    await api("POST", `${path}/${what}`, { id: row.id });
    toast("The token is " + word + ".");
    await refresh();
  }
  function create() {
    const renewers = h("input", { placeholder: "User:alice, User:bob" });
    const days = h("input", { type: "number", min: 0, step: "any", placeholder: "broker's maximum" });
    dialog("Create delegation token", {
      action: "Create", fields: [field("Renewers", renewers), field("Lifetime in days", days)],
      act: async () => {
        const made = await api("POST", path, {
          renewers: renewers.value.split(",").map((each) => each.trim()).filter(Boolean),
          max_lifetime_ms: days.value ? Math.round(Number(days.value) * 86400000) : -1,
        });
        await refresh();
        dialog("Token " + made.id, { fields: [h("p", null, "A client logs in with SCRAM: the id is the user, this is the password, and tokenauth is true."), h("pre", { tabindex: "0" }, made.hmac)] });
      },
    });
  }
  await refresh();
  return [head("Delegation tokens", readOnly() ? null : button("Create token", create, "main")), place];
}
