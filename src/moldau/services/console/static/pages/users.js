import { api, button, confirm, dialog, enc, field, h, head, readOnly, replace, select, state, table, tag, toast } from "/static/lib.js";

export async function page() {
  const path = `/clusters/${enc(state.cluster)}/users`;
  const place = h("div", { class: "panel" });
  async function refresh() {
    const found = await api("GET", path);
    replace(place, table([
      { title: "User", wrap: true, key: "user" },
      { title: "Credentials", value: (row) => row.credentials.map((each) => [tag(`${each.mechanism}, ${each.iterations} iterations`), " "]) },
      { title: "", value: (row) => (readOnly() ? null : [button("Set password", () => edit(row.user), "small", { "aria-label": "Set password of " + row.user }), " ", button("Delete", () => confirm("Delete user", `Deletes all SCRAM credentials of ${row.user}.`, "Delete", async () => {
        await api("DELETE", `${path}/${enc(row.user)}`);
        toast(`User ${row.user} is deleted.`);
        await refresh();
      }, row.user), "small danger", { "aria-label": "Delete " + row.user })]) },
    ], found.data, { caption: "Users with SCRAM credentials", empty: "No users." }));
  }
  function edit(user) {
    const name = h("input", { required: true, value: user || "", readonly: Boolean(user), autocomplete: "off" });
    const password = h("input", { type: "password", required: true, autocomplete: "new-password" });
    const mechanism = select(["SCRAM-SHA-512", "SCRAM-SHA-256"]);
    const iterations = h("input", { type: "number", min: 4096, max: 16384, value: "4096" });
    dialog(user ? "Set the password of " + user : "Add user", {
      fields: [field("User", name), field("Password", password), h("div", { class: "row" }, field("Mechanism", mechanism), field("Iterations", iterations))],
      act: async () => {
        await api("PUT", `${path}/${enc(name.value)}`, { password: password.value, mechanism: mechanism.value, iterations: Number(iterations.value) });
        toast(`User ${name.value} is saved.`);
        await refresh();
      },
    });
  }
  await refresh();
  return [head("Users", readOnly() ? null : button("Add user", () => edit(""), "main")), place];
}
