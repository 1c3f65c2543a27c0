"""The page at `/` for browsers: posts records and shows those that arrive. Works offline."""

from __future__ import annotations

from typing import Final

__all__ = ["PAGE", "POLICY"]

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)

PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>REST Proxy</title>
<meta name="viewport" content="width=device-width">
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#223}
form{display:flex;gap:.5rem;flex-wrap:wrap;align-items:center;margin:.6rem 0}
input,select,button{font:inherit;padding:.3rem .5rem} #value{flex:1;min-width:14rem}
table{border-collapse:collapse;width:100%;font:13px ui-monospace,monospace}
td,th{text-align:left;padding:.2rem .5rem;border-bottom:1px solid #dde;vertical-align:top}
td{word-break:break-word} #state{color:#667;min-height:1.5em} #state.bad{color:#c22}
</style></head><body>
<h1>REST Proxy</h1>
<p>Writes to a topic and shows its records as they arrive, over API v3. <a href="/docs">All
requests</a></p>
<form id="choose"><label>Topic <input id="topic" list="topics" required value="example"></label>
<datalist id="topics"></datalist><label>from <select id="from"><option>latest</option>
<option>earliest</option></select></label><button>Show records</button></form>
<form id="send"><input id="key" placeholder="key" aria-label="key">
<input id="value" placeholder='value, as JSON or text' aria-label="value">
<button>Send</button></form>
<p id="state" role="status"></p>
<table><thead><tr><th>partition</th><th>offset</th><th>time</th><th>key</th><th>value</th></tr>
</thead><tbody id="records"></tbody></table>
<script>
const by = id => document.getElementById(id), SHOWN_MAX = 200;
let cluster, events;
const say = (text, bad) => {
  by("state").textContent = text;
  by("state").className = bad ? "bad" : "";
};
const topicUrl = () => cluster + "/topics/" + encodeURIComponent(by("topic").value);
async function ask(url, options) {
  const answer = await fetch(url, options), text = await answer.text();
  const body = text ? JSON.parse(text) : null;
  if (!answer.ok) throw new Error(body.error_code + ": " + body.message);
  return body;
}
const post = (url, body) => ask(url, {
  method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
function shown(data) {
  if (data === null) return "";
  return typeof data.data === "string" ? data.data : JSON.stringify(data.data);
}
function add(record) {
  const row = by("records").insertRow(0);
  for (const text of [record.partition_id, record.offset, record.timestamp, shown(record.key),
                      shown(record.value)]) row.insertCell().textContent = text;
  while (by("records").rows.length > SHOWN_MAX) by("records").deleteRow(-1);
}
function follow() {
  if (events) events.close();
  by("records").textContent = "";
  events = new EventSource(topicUrl() + "/partitions/-/records?key_format=STRING&value_format=JSON"
    + "&offset=" + by("from").value);
  events.addEventListener("record", e => add(JSON.parse(e.data)));
  events.onopen = () => say("Showing records of " + by("topic").value + ".");
  events.onerror = () => say("Not connected: is there such a topic?", true);
}
by("choose").onsubmit = e => { e.preventDefault(); follow(); };
by("send").onsubmit = async e => {
  e.preventDefault();
  let data = by("value").value;
  try { data = JSON.parse(data); } catch (error) {}
  const record = {value: {type: "JSON", data: data}};
  if (by("key").value) record.key = {type: "STRING", data: by("key").value};
  try {
    const done = await post(topicUrl() + "/records", record);
    if (done.error_code !== 200) throw new Error(done.error_code + ": " + done.message);
    say("Stored in partition " + done.partition_id + " at offset " + done.offset + ".");
  } catch (error) { say(String(error.message), true); }
};
(async () => {
  try {
    cluster = (await ask("/v3/clusters")).data[0].metadata.self.replace(/^.*?(?=[/]v3)/, "");
    const topics = (await ask(cluster + "/topics")).data.filter(t => !t.is_internal);
    for (const t of topics) {
      const option = document.createElement("option");
      option.value = t.topic_name;
      by("topics").append(option);
    }
    if (topics.length && !topics.some(t => t.topic_name === "example"))
      by("topic").value = topics[0].topic_name;
    say("Cluster " + cluster.split("/").pop() + ", " + topics.length + " topics.");
  } catch (error) { say(String(error.message), true); }
})();
</script></body></html>
"""
