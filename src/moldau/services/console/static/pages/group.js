import { api, button, confirm, count, counted, dialog, duration, enc, every, field, go, h, head, here, link, panel, problem, readOnly, redraw, replace, select, some, stat, state, table, tabs, tag, toast } from "/static/lib.js";
import { clearing, clears } from "/static/pages/groups.js";
import { settingsTable } from "/static/pages/settings_table.js";

export async function page({ group }) {
  const path = `/clusters/${enc(state.cluster)}/groups/${enc(group)}`;
  const view = new URLSearchParams(location.search).get("view") || "offsets";
  const own = here("/groups/" + enc(group));
  const place = h("div");
  let found = await api("GET", path);
  const parts = [head(group, tag(found.kind), readOnly() ? null : [button("Reset offsets", reset), button("Delete offsets", removeOffsets), button("Delete group", remove, "danger")]),
    tabs([["Offsets", own, "offsets"], ["Members", own + "?view=members", "members"], ["Settings", own + "?view=settings", "settings"]], view)];
  if (view === "settings") return [...parts, await settingsTable(path + "/settings")];
  draw();
  every(5000, async () => {
    try {
      found = await api("GET", path);
      draw();
    } catch (error) {
      replace(place, problem(error));
    }
  });
  return [...parts, place];

  function draw() {
    redraw(place, h("div", { class: "stats" },
      stat("state", found.state), stat(some(found.members.length, "member"), count(found.members.length)),
      stat("records behind", count(found.lag), found.lag ? "" : "good"), stat("time behind", duration(found.lag_seconds)),
      stat("clears in", clearing(found)),
      stat("coordinator", "broker " + found.coordinator), found.epoch === null ? null : stat("epoch", count(found.epoch))),
    view === "members" ? members() : offsets());
  }
  function offsets() {
    return h("div", { class: "panel" }, table([
      { title: "Topic", value: (row) => link("/topics/" + enc(row.topic), row.topic) },
      { title: "Partition", number: true, key: "partition" },
      { title: found.kind === "share" ? "Start offset" : "Committed", number: true, value: (row) => count(row.offset) },
      { title: "End", number: true, value: (row) => count(row.end) },
      { title: "Behind, records", number: true, value: (row) => count(row.lag) },
      { title: "Behind, time", number: true, value: (row) => duration(row.lag_seconds) },
      { title: "Clears in", number: true, value: clears },
    ], found.partitions, { caption: "Offsets by partition", empty: "The group has no offsets." }));
  }
  function members() {
    return [h("div", { class: "panel" }, table([
      { title: "Member", wrap: true, value: (row) => h("code", null, row.id) },
      { title: "Client", key: "client" },
      { title: "Host", key: "host" },
      { title: "Instance", value: (row) => row.instance || "–" },
      { title: "Epoch", number: true, value: (row) => count(row.epoch) },
      { title: "Assigned", wrap: true, value: (row) => row.assignment.map((each) => [tag(`${each.topic}-${each.partition}`), " "]) },
    ], found.members, { caption: `Members; assignor ${found.assignor || "–"}`, empty: "The group has no members." })),
    found.subtopologies ? panel("Topology", table([
      { title: "Subtopology", key: "id" },
      { title: "Sources", value: (row) => [...row.sources, ...row.repartition_sources].map((each) => [link("/topics/" + enc(each), each), " "]) },
      { title: "Repartition sinks", value: (row) => row.repartition_sinks.join(", ") || "–" },
      { title: "Changelogs", value: (row) => row.changelogs.map((each) => [link("/topics/" + enc(each), each), " "]) },
    ], found.subtopologies, { caption: "Subtopologies" })) : null];
  }

  function reset() {
    const to = select([["earliest", "the beginning"], ["latest", "the end"], ["offset", "an offset"], ["time", "a time"], ["shift", "shift by"]], "earliest");
    const value = h("input", { type: "number", value: "0" });
    const at = h("input", { type: "datetime-local", step: "1" });
    const topics = h("input", { placeholder: "all that the group has offsets for" });
    const valueField = field("Offset or number of records", value), atField = field("Time", at);
    const preview = h("div");
    const asked = (dry) => ({
      to: to.value, dry_run: dry,
      value: to.value === "time" ? (at.value ? new Date(at.value).getTime() : 0) : Number(value.value) || 0,
      topics: topics.value.split(",").map((each) => each.trim()).filter(Boolean),
    });
    const change = () => {
      valueField.hidden = !["offset", "shift"].includes(to.value);
      atField.hidden = to.value !== "time";
      replace(preview);
    };
    to.addEventListener("change", change);
    change();
    dialog("Reset offsets of " + group, {
      action: "Reset",
      fields: [found.members.length ? h("div", { class: "note" }, "The group has members: stop them first, or the broker refuses.") : null,
        field("To", to), valueField, atField, field("Topics", topics),
        h("p", null, button("Preview", async () => {
          try {
            replace(preview, plan((await api("POST", path + "/offsets", asked(true))).data));
          } catch (error) {
            replace(preview, problem(error));
          }
        })), preview],
      act: async () => {
        const done = await api("POST", path + "/offsets", asked(false));
        toast(`Reset ${counted(done.data.length, "offset")}.`);
        go(location.pathname);
      },
    });
  }
  function plan(rows) {
    return table([
      { title: "Topic", key: "topic" }, { title: "Partition", number: true, key: "partition" },
      { title: "Now", number: true, value: (row) => count(row.current) }, { title: "New", number: true, value: (row) => count(row.new) },
      { title: "To read again or skip", number: true, value: (row) => (row.current === null ? "–" : (row.new < row.current ? "reads again " : "skips ") + count(Math.abs(row.new - row.current))) },
    ], rows, { caption: "What would change" });
  }
  function removeOffsets() {
    const topics = [...new Set(found.partitions.map((each) => each.topic))];
    const topic = select(topics);
    const preview = h("div");
    const shown = async () => {
      if (!topics.length) return;
      try {
        const would = await api("POST", path + "/offsets/delete", { topic: topic.value, dry_run: true });
        replace(preview, table([
          { title: "Partition", number: true, key: "partition" },
          { title: "Committed", number: true, value: (row) => count(row.current) },
        ], would.data, { caption: "What would be deleted", empty: "The group has no offsets in this topic." }));
      } catch (error) {
        replace(preview, problem(error));
      }
    };
    topic.addEventListener("change", shown);
    shown();
    dialog("Delete offsets of " + group, {
      action: "Delete", danger: true,
      fields: [h("p", null, "The group forgets where it was in a topic, and starts there by its auto.offset.reset."), field("Topic", topic), preview],
      act: async () => {
        const done = await api("POST", path + "/offsets/delete", { topic: topic.value });
        toast(`Deleted ${counted(done.data.length, "offset")}.`);
        go(location.pathname);
      },
    });
  }
  function remove() {
    confirm("Delete group", `Deletes ${group} with its offsets.`, "Delete group", async () => {
      await api("DELETE", path);
      toast(`Group ${group} is deleted.`);
      go(here("/groups"));
    }, group);
  }
}
