// What all pages use: elements, requests, numbers, tables, charts, dialogs.

export const state = { session: null, cluster: "", params: {}, generation: 0, leaving: [] };

// Elements. h("p", {class: "soft", onclick: f}, "text", child, null) -> HTMLElement
export function h(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value") made.value = value;
    else if (key === "checked") made.checked = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  append(made, children);
  return made;
}

export function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
  return parent;
}

export function replace(parent, ...children) {
  parent.replaceChildren();
  return append(parent, children);
}

// As `replace`, for what is drawn again and again while somebody looks: what has the focus, what is
// open and how far a box is scrolled stay, and nothing moves while text is being selected.
const HOLDS = "a[href], button, input, select, textarea, summary, [tabindex]";
const called = (each) => each.tagName + (each.getAttribute("aria-label") || each.textContent);
export function redraw(parent, ...children) {
  const selection = getSelection();
  if (selection && !selection.isCollapsed && parent.contains(selection.anchorNode)) return parent;
  const boxes = (kind) => [...parent.querySelectorAll(kind)];
  const open = boxes("details").map((each) => each.open);
  const scrolling = () => [parent, ...boxes(".tablebox, pre")];
  const scrolled = scrolling().map((each) => [each.scrollLeft, each.scrollTop]);
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const before = focused ? boxes(HOLDS).filter((each) => called(each) === called(focused)).indexOf(focused) : -1;
  replace(parent, ...children);
  const details = boxes("details");
  if (details.length === open.length) details.forEach((each, i) => (each.open = open[i]));
  const now = scrolling();
  if (now.length === scrolled.length) now.forEach((each, i) => each.scrollTo(...scrolled[i]));
  if (before >= 0) {
    const same = boxes(HOLDS).filter((each) => called(each) === called(focused));
    if (same.length) same[Math.min(before, same.length - 1)].focus({ preventScroll: true });
  }
  return parent;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  append(made, children);
  return made;
}

// Requests.
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function failure(answer) {
  let message = answer.status + " " + answer.statusText;
  try {
    message = (await answer.json()).message || message;
  } catch {
    // Not JSON: the status has to do.
  }
  if (answer.status === 401 && state.session && state.session.pages && state.session.login !== "NONE") {
    window.dispatchEvent(new Event("logged-out"));
  }
  return new ApiError(answer.status, message);
}

async function ask(method, path, body, accept, signal) {
  const headers = { Accept: accept };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch("/api" + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The console does not answer. Is it running?");
  }
}

export async function api(method, path, body, options = {}) {
  const answer = await ask(method, path, body, "application/json", options.signal);
  if (!answer.ok) throw await failure(answer);
  if (answer.status === 204) return null;
  return options.exact ? exactly(await answer.text()) : answer.json();
}

// JSON whose numbers stay as they are written: an id of 19 digits has too many for JavaScript. Such
// a number is an object that only JSON.stringify reads.
export function exactly(text) {
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && JSON.rawJSON && context && context.source && String(value) !== context.source ? JSON.rawJSON(context.source) : value);
}

// Lines of JSON as they arrive; `signal` stops it. Each object goes to `take`.
export async function lines(method, path, body, take, signal) {
  const answer = await ask(method, path, body, "application/x-ndjson", signal);
  if (!answer.ok) throw await failure(answer);
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    let done, value;
    try {
      ({ done, value } = await reader.read());
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The connection to the console was lost before the end. Try again.");
    }
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) take(exactly(part));
  }
}

// Paths.
export const here = (path = "") => "/clusters/" + encodeURIComponent(state.cluster) + path;
export const enc = encodeURIComponent;
export function link(path, text, attributes) {
  return h("a", { href: here(path), ...attributes }, text);
}
export function go(path) {
  history.pushState(null, "", path);
  window.dispatchEvent(new PopStateEvent("popstate"));
}
export function query(values) {
  const found = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) found.set(key, value);
  }
  const text = found.toString();
  return text ? "?" + text : "";
}

// Numbers and times.
const whole = new Intl.NumberFormat("en");
export function count(value) {
  return value === null || value === undefined ? "–" : whole.format(Math.round(value));
}
export const some = (number, one, many = one + "s") => (number === 1 ? one : many);
export const counted = (number, one, many) => `${count(number)} ${some(number, one, many)}`;
export function short(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [[1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (Math.abs(value) >= size) return (value / (size === 1e4 ? 1e3 : size)).toFixed(1) + unit;
  }
  return Math.abs(value) < 10 && value % 1 ? value.toFixed(1) : whole.format(Math.round(value));
}
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return (unit && value < 100 ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
}
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return seconds === 0 ? "0 s" : "< 1 s";
  if (seconds < 120) return Math.round(seconds) + " s";
  if (seconds < 7200) return Math.round(seconds / 60) + " min";
  if (seconds < 172800) return Math.round(seconds / 3600) + " h";
  return Math.round(seconds / 86400) + " d";
}
export function time(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  const at = new Date(ms);
  const pad = (value, size = 2) => String(value).padStart(size, "0");
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ` +
    `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
}

// Messages.
let toasts = null;
export function toast(text, bad = false) {
  if (!toasts || !toasts.isConnected) {
    toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
    document.body.append(toasts);
  }
  const made = h("div", { class: bad ? "toast bad" : "toast" }, text);
  toasts.append(made);
  setTimeout(() => made.remove(), bad ? 9000 : 4500);
}
export function problem(error) {
  return h("div", { class: "note bad", role: "alert" }, error.message || String(error));
}
export const panel = (title, ...children) =>
  h("section", { class: "panel" }, title ? h("h2", null, title) : null, ...children);
export const tag = (text, kind = "") => h("span", { class: "tag " + kind }, text);
export const button = (text, onclick, kind = "", attributes = {}) =>
  h("button", { type: "button", class: "b " + kind, onclick, ...attributes }, text);
export function stat(label, value, kind = "", href = null) {
  return h(href ? "a" : "div", { class: "stat " + kind, href }, h("b", null, value), h("span", null, label));
}
export function facts(pairs) {
  return h("dl", { class: "facts" },
    pairs.filter(Boolean).map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}
export function head(title, ...actions) {
  return h("div", { class: "head" }, h("h1", { tabindex: "-1" }, title), h("span", { class: "grow" }), ...actions);
}
export function tabs(entries, current) {
  // Links to views of one thing: [text, href, key].
  return h("nav", { class: "tabs", "aria-label": "Views" }, entries.map(([text, href, key]) =>
    h("a", { class: "tab", href, "aria-current": key === current ? "page" : null }, text)));
}
export function bar(share, label) {
  const inner = h("i");
  inner.style.width = Math.min(100, Math.max(0, share * 100)) + "%";
  return h("div", { class: "bar", role: "img", "aria-label": label }, inner);
}

// Fields. field("Name", input) and input kinds.
let fields = 0;
export function field(label, control, hint) {
  // Not wrapped: the text of a text area would be part of the label's.
  control.id = control.id || "field-" + ++fields;
  const note = hint ? h("span", { class: "soft", id: control.id + "-hint" }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, note);
}
export function check(label, attributes) {
  const box = h("input", { type: "checkbox", ...attributes });
  const made = h("label", { class: "check" }, box, label);
  made.box = box;
  return made;
}
export function select(options, value, attributes = {}) {
  const made = h("select", attributes, options.map((each) => {
    const [key, text] = Array.isArray(each) ? each : [each, each];
    return h("option", { value: key }, text);
  }));
  if (value !== undefined && value !== null) made.value = value;
  return made;
}

// Tables. columns: {title, key, value: row => node or text, number, sort}
export function table(columns, rows, options = {}) {
  const heads = columns.map((column) => {
    let label = column.title || h("span", { class: "sr" }, column.choose ? "Choose" : "Actions");
    let sorted = null;
    if (column.sort && options.onsort) {
      const current = options.sort || "";
      const name = current.replace(/^-/, "");
      if (name === column.sort) sorted = current.startsWith("-") ? "descending" : "ascending";
      const mark = sorted ? (sorted === "descending" ? " ↓" : " ↑") : "";
      const first = column.number ? "-" + column.sort : column.sort;
      const other = column.number ? column.sort : "-" + column.sort;
      label = h("button", { type: "button", onclick: () => options.onsort(current === first ? other : first) }, column.title + mark);
    }
    return h("th", { scope: "col", class: column.number ? "n" : null, "aria-sort": sorted }, label);
  });
  const body = rows.map((row) => h("tr", options.row ? options.row(row) : null, columns.map((column) =>
    h("td", { class: [column.number && "n", column.wrap && "wrap", column.wrap === "value" && "value", !column.title && !column.choose && "act"].filter(Boolean).join(" ") || null },
      column.value ? column.value(row) : shown(row[column.key])))));
  if (!rows.length) {
    body.push(h("tr", null, h("td", { class: "empty", colspan: columns.length }, options.empty || "Nothing here.")));
  }
  return h("div", { class: "tablebox", tabindex: "0", role: "region", "aria-label": options.caption || "Table" },
    h("table", null,
      options.caption ? h("caption", { class: options.quiet ? "unseen" : options.shown ? null : "soft" }, options.caption) : null,
      h("thead", null, h("tr", null, heads)), h("tbody", null, body)));
}
const shown = (value) => (value === null || value === undefined ? "–" : String(value));

// A table whose rows the server searches, sorts and cuts. load(query) -> {data, total, page, size}
export function paged({ columns, load, search = true, placeholder = "Search", size = 50, sort = "", extra = [], empty, caption, auto = 0 }) {
  const settings = { page: 0, size, sort, search: new URLSearchParams(location.search).get("search") || "" };
  const place = h("div");
  const input = h("input", { type: "search", placeholder, "aria-label": placeholder, value: settings.search });
  let timer = null;
  let asked = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      settings.search = input.value;
      settings.page = 0;
      refresh();
    }, 200);
  });
  async function refresh() {
    const number = ++asked;
    let found;
    try {
      found = await load({ ...settings });
    } catch (error) {
      if (number === asked) replace(place, problem(error));
      return;
    }
    if (number !== asked) return;
    const pages = Math.max(1, Math.ceil(found.total / found.size));
    const turn = (step) => () => {
      settings.page += step;
      refresh();
    };
    redraw(place,
      table(columns, found.data, {
        caption, empty, quiet: true, sort: settings.sort,
        onsort: (name) => {
          settings.sort = name;
          settings.page = 0;
          refresh();
        },
      }),
      h("div", { class: "pager" }, `${count(found.total)} in all`,
        pages > 1 ? [
          button("Previous", turn(-1), "small", { disabled: settings.page === 0 }),
          `page ${settings.page + 1} of ${count(pages)}`,
          button("Next", turn(1), "small", { disabled: settings.page + 1 >= pages }),
        ] : null));
  }
  if (auto) every(auto, refresh);
  refresh();
  const made = h("div", null,
    search || extra.length ? h("div", { class: "row center panel" }, search ? h("span", { class: "grow" }, input) : null, ...extra) : null,
    h("div", { class: "panel" }, place));
  made.refresh = refresh;
  made.settings = settings;
  return made;
}

// Repeats until the page is left; pauses while it cannot be seen.
export function every(ms, action) {
  const timer = setInterval(() => {
    if (!document.hidden && !document.querySelector("dialog[open]")) action();
  }, ms);
  state.leaving.push(() => clearInterval(timer));
}
export const onleave = (action) => state.leaving.push(action);

// Charts: lines over time. series: [{name, values, color}], times in milliseconds.
export function chart(title, times, series, format = short) {
  const width = 380, height = 150, left = 56, right = 8, top = 10, bottom = 20;
  const values = series.flatMap((each) => each.values).filter((each) => each !== null && each !== undefined);
  const last = series.map((each) => `${each.name} ${format(lastOf(each.values))}`).join(", ");
  const made = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${last}` });
  if (times.length < 2 || !values.length) {
    append(made, [svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "Waiting for data")]);
    return h("figure", { class: "panel" }, h("h2", null, title), made);
  }
  const high = niceTop(Math.max(...values), format === bytes);
  const from = times[0], span = Math.max(1, times[times.length - 1] - from);
  const x = (at) => left + ((at - from) / span) * (width - left - right);
  const y = (value) => top + (1 - value / high) * (height - top - bottom);
  // Half a partition means nothing.
  for (const share of high > 1 ? [0, 0.5, 1] : [0, 1]) {
    const at = y(high * share);
    append(made, [
      svg("line", { class: "axis", x1: left, x2: width - right, y1: at, y2: at }),
      svg("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, format(high * share)),
    ]);
  }
  const clock = (ms) => new Date(ms).toTimeString().slice(0, 8);
  append(made, [
    svg("text", { x: left, y: height - 5 }, clock(from)),
    svg("text", { x: width - right, y: height - 5, "text-anchor": "end" }, clock(times[times.length - 1])),
  ]);
  series.forEach((each, index) => {
    const points = times.map((at, i) => [x(at), each.values[i]]).filter(([, value]) => value !== null && value !== undefined);
    if (!points.length) return;
    const line = points.map(([px, value], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const color = `var(--c${(index % 6) + 1})`;
    const area = `${line}L${points[points.length - 1][0].toFixed(1)} ${y(0)}L${points[0][0].toFixed(1)} ${y(0)}Z`;
    const fill = svg("path", { class: "area", d: area });
    const stroke = svg("path", { class: "line", d: line });
    fill.style.fill = color;
    stroke.style.stroke = color;
    if (series.length === 1) made.append(fill);
    made.append(stroke);
  });
  const legend = series.length > 1 ? h("p", { class: "legend" }, series.map((each, index) => {
    const mark = h("i");
    mark.style.background = `var(--c${(index % 6) + 1})`;
    return h("span", null, mark, `${each.name} ${format(lastOf(each.values))}`);
  })) : null;
  return h("figure", { class: "panel" },
    h("h2", null, title, series.length === 1 ? h("span", { class: "soft" }, "  " + format(lastOf(series[0].values))) : null), made, legend);
}
const lastOf = (values) => {
  for (let i = values.length - 1; i >= 0; i -= 1) if (values[i] !== null && values[i] !== undefined) return values[i];
  return null;
};
function niceTop(value, binary) {
  if (value <= 0) return 1;
  const unit = binary ? 1024 ** Math.floor(Math.log(value) / Math.log(1024)) : 1;
  const power = unit * 10 ** Math.floor(Math.log10(value / unit));
  for (const step of [1, 2, 2.5, 5, 10]) if (value <= step * power) return step * power;
  return 10 * power;
}

// Dialogs. `fill` returns the fields; `act` gets called on submit, its error stays in the dialog.
export function dialog(title, { fields: inner, action = "Save", danger = false, act, wide = false }) {
  const box = h("dialog", { "aria-label": title, class: wide ? "wide" : null });
  const errors = h("div");
  const submit = h("button", { type: "submit", class: danger ? "b danger" : "b main" }, action);
  const form = h("form", { method: "dialog" }, h("h2", null, title), ...[inner].flat(), errors,
    h("div", { class: "actions" }, button(act ? "Cancel" : "Close", () => box.close()), act ? submit : null));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!act) return;
    submit.disabled = true;
    try {
      await act();
      box.close();
    } catch (error) {
      replace(errors, problem(error));
    } finally {
      submit.disabled = false;
    }
  });
  box.addEventListener("close", () => box.remove());
  box.append(form);
  document.body.append(box);
  box.showModal();
  return box;
}
export function confirm(title, text, action, act, word = null) {
  const typed = h("input", { autocomplete: "off" });
  return dialog(title, {
    action, danger: true,
    fields: [h("p", null, text), word ? field(`Type ${word} to confirm`, typed) : null],
    act: async () => {
      if (word && typed.value !== word) throw new Error(`The text is not ${word}.`);
      await act();
    },
  });
}
export const readOnly = () => state.session && state.session.read_only;
