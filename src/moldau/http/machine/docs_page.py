"""The page at /docs: shows the OpenAPI document and sends requests. Works offline."""

from __future__ import annotations

from html import escape
from typing import Final

__all__ = ["POLICY", "render"]

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@TITLE@</title>
<meta name="viewport" content="width=device-width">
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#223}
h2{margin-top:2rem;border-bottom:1px solid #ccd}
details{border:1px solid #dde;border-radius:6px;margin:.4rem 0;padding:.3rem .8rem}
summary{cursor:pointer;font-family:ui-monospace,monospace}
summary b{display:inline-block;width:4.5rem} summary span{color:#667;font-family:system-ui}
.GET{color:#06c}.POST{color:#080}.PUT{color:#a60}.DELETE{color:#c22}.PATCH{color:#808}
label{display:block;margin:.3rem 0}
input,textarea,select{font:13px ui-monospace,monospace;padding:.2rem}
textarea{width:100%;height:7rem;box-sizing:border-box}
pre{background:#f4f5f8;padding:.6rem;overflow:auto;max-height:24rem;white-space:pre-wrap}
</style></head><body><h1>@TITLE@</h1><p id="about"></p><main id="list">Loading ...</main>
<script>
const list = document.getElementById("list");
const make = (name, text, cls) => {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
function field(parent, p) {
  const label = make("label", p.name + (p.required ? " * " : " "));
  const input = make("input");
  input.title = p.description || "";
  label.append(input, " " + (p.description || ""));
  parent.append(label);
  return [p, input];
}
function operation(path, method, op) {
  const box = make("details"), head = make("summary");
  head.append(make("b", method, method), path + " ", make("span", op.summary || ""));
  box.append(head);
  if (op.description) box.append(make("p", op.description));
  const fields = (op.parameters || []).map(p => field(box, p));
  const content = op.requestBody ? Object.keys(op.requestBody.content) : [];
  let type, body;
  if (content.length) {
    type = make("select");
    content.forEach(c => type.append(make("option", c)));
    body = make("textarea");
    body.value = "{}";
    box.append(type, body);
  }
  const send = make("button", "Send"), out = make("pre");
  send.onclick = async () => {
    let url = path;
    const query = new URLSearchParams();
    for (const [p, input] of fields) {
      if (p.in === "path") url = url.replace("{" + p.name + "}", encodeURIComponent(input.value));
      else if (input.value) query.append(p.name, input.value);
    }
    if ([...query].length) url += "?" + query;
    const options = {method: method, headers: {}};
    if (body && body.value) {
      options.body = body.value;
      options.headers["Content-Type"] = type.value;
    }
    out.textContent = method + " " + url + " ...";
    try {
      const answer = await fetch(url, options), text = await answer.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch (e) {}
      out.textContent = answer.status + " " + answer.statusText + "\\n" + shown;
    } catch (e) { out.textContent = String(e); }
  };
  box.append(send, out);
  return box;
}
fetch("/openapi.json").then(r => r.json()).then(doc => {
  const about = document.getElementById("about");
  about.textContent = doc.info.description + " Version " + doc.info.version;
  const groups = {};
  for (const [path, methods] of Object.entries(doc.paths))
    for (const [method, op] of Object.entries(methods)) {
      const tag = (op.tags || ["other"])[0];
      (groups[tag] = groups[tag] || []).push(operation(path, method.toUpperCase(), op));
    }
  list.textContent = "";
  for (const [tag, boxes] of Object.entries(groups)) { list.append(make("h2", tag), ...boxes); }
}).catch(e => { list.textContent = "The document cannot be loaded: " + e; });
</script></body></html>
"""


def render(title: str) -> str:
    return _PAGE.replace("@TITLE@", escape(title))
