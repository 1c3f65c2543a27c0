// The shell around the pages: session, navigation, theme, and which page a path shows.
import { api, ApiError, button, field, go, h, here, problem, replace, select, state, toast } from "/static/lib.js";
import { icon } from "/static/icons.js";

const app = document.getElementById("app");

// Light or dark: as the system has it, until somebody chooses.
const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  const chosen = localStorage.getItem("theme");
  document.documentElement.dataset.theme = chosen || (dark.matches ? "dark" : "light");
}
dark.addEventListener("change", theme);
theme();

function patternOf(path) {
  const names = [];
  const text = ("/clusters/{cluster}" + path).replace(/\{(\w+)\}/g, (_, name) => {
    names.push(name);
    return "([^/]+)";
  });
  return { pattern: new RegExp("^" + text + "/?$"), names };
}

function match(path) {
  for (const page of state.session.pages) {
    const found = page.compiled.pattern.exec(path);
    if (!found) continue;
    const params = {};
    try {
      page.compiled.names.forEach((name, i) => (params[name] = decodeURIComponent(found[i + 1])));
    } catch {
      return null;
    }
    return { page, params };
  }
  return null;
}

function navigation(current) {
  const services = (state.session.clusters.find((each) => each.name === state.cluster) || {}).services || {};
  const groups = [...new Set(state.session.pages.map((page) => page.group).filter(Boolean))];
  const section = current.path.split("/")[1] || "";
  const clusters = select(state.session.clusters.map((each) => each.name), state.cluster, { "aria-label": "Cluster" });
  clusters.addEventListener("change", () => go("/clusters/" + encodeURIComponent(clusters.value)));
  return h("nav", { class: "side", id: "side", "aria-label": "Sections" },
    h("a", { class: "brand", href: "/" }, h("img", { src: "/static/icon.svg", alt: "" }), "Control Center"),
    clusters,
    groups.map((group) => [h("h2", null, group), h("ul", null, state.session.pages.filter((page) => page.group === group).map((page) => {
      const off = page.needs && !services[page.needs];
      const isHere = (page.path.split("/")[1] || "") === section;
      return h("li", null, h("a", { href: here(page.path), class: off ? "off" : null, "aria-current": isHere ? "page" : null,
        title: off ? `The console was started without --${page.needs === "registry" ? "schema-registry" : page.needs}` : null }, icon(page.icon), page.title));
    }))]));
}

function topBar(page, params) {
  const crumbs = [h("a", { href: here() }, state.cluster)];
  const parts = page.path.split("/").filter(Boolean);
  parts.forEach((part, i) => {
    const text = part.startsWith("{") ? params[part.slice(1, -1)] : part.replace("-", " ");
    const path = "/" + parts.slice(0, i + 1).map((each) =>
      each.startsWith("{") ? encodeURIComponent(params[each.slice(1, -1)]) : each).join("/");
    crumbs.push(" / ", i === parts.length - 1 ? text : h("a", { href: here(path) }, text));
  });
  const toggle = button("", () => {
    localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    theme();
    label();
  }, "small");
  const label = () => {
    const next = document.documentElement.dataset.theme === "dark" ? "Light" : "Dark";
    toggle.textContent = next;
    toggle.setAttribute("aria-label", `Use ${next.toLowerCase()} colours`);
  };
  label();
  const menu = button("Menu", () => {
    const open = document.getElementById("side").classList.toggle("open");
    menu.setAttribute("aria-expanded", String(open));
  }, "small menu", { "aria-controls": "side", "aria-expanded": "false" });
  const user = state.session.user;
  return h("header", { class: "top" }, menu, h("div", { class: "crumbs" }, crumbs),
    state.session.read_only ? h("span", { class: "tag warn" }, "read-only") : null,
    toggle, h("a", { class: "button small wide", href: "/docs" }, "API"),
    user ? [h("span", { class: "soft wide" }, user), button("Log out", logout, "small")] : null);
}

async function logout() {
  await api("DELETE", "/session");
  location.assign("/login");
}

function loginPage(message) {
  const user = h("input", { autocomplete: "username", required: true, autofocus: true });
  const password = h("input", { type: "password", autocomplete: "current-password", required: true });
  const errors = h("div", null, message ? h("div", { class: "note" }, message) : null);
  const oidc = state.session.login === "OIDC";
  const form = h("form", null, errors,
    oidc ? h("a", { class: "button main", href: "/api/oidc/login" }, "Log in with single sign-on")
      : [field("User", user), field("Password", password), h("button", { class: "b main", type: "submit" }, "Log in")]);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await api("POST", "/session", { user: user.value, password: password.value });
      // Who followed a link to a page gets there.
      const next = location.pathname === "/login" ? new URLSearchParams(location.search).get("next") : location.pathname + location.search;
      location.assign(next && next.startsWith("/") && !next.startsWith("//") ? next : "/");
    } catch (error) {
      replace(errors, problem(error));
    }
  });
  document.title = "Log in · Control Center";
  replace(app, h("main", { id: "main", class: "login panel" },
    h("div", { class: "brand" }, h("img", { src: "/static/icon.svg", alt: "" }), h("h1", null, "Control Center")),
    h("p", { class: "soft" }, oidc ? "" : "With a user and password of the brokers."), form));
}

async function show() {
  state.leaving.splice(0).forEach((action) => action());
  const generation = ++state.generation;
  if (location.pathname === "/" || location.pathname === "/login") {
    const first = localStorage.getItem("cluster");
    const known = state.session.clusters.map((each) => each.name);
    history.replaceState(null, "", "/clusters/" + encodeURIComponent(known.includes(first) ? first : known[0]));
  }
  const found = match(location.pathname);
  if (!found) {
    replace(app, h("main", { id: "main", class: "login panel" }, h("h1", null, "No such page"),
      h("p", null, location.pathname), h("a", { href: "/" }, "To the overview")));
    return;
  }
  const { page, params } = found;
  state.cluster = params.cluster;
  state.params = params;
  localStorage.setItem("cluster", state.cluster);
  const name = params.topic || params.group || params.broker;
  document.title = `${name ? name + " · " : ""}${page.title} · Control Center`;
  const main = h("main", { id: "main" }, h("p", { class: "loading" }, "Loading ..."));
  const side = document.getElementById("side");
  const scrolled = side ? side.scrollTop : 0;
  replace(app, h("div", { class: "shell" }, navigation(page), h("div", null, topBar(page, params), main)));
  document.getElementById("side").scrollTop = scrolled;
  let made;
  try {
    const module = await import(`/static/pages/${page.module}.js`);
    made = await module[page.view](params);
  } catch (error) {
    made = [h("h1", null, page.title), problem(error)];
  }
  // Somebody may have gone on to another page meanwhile.
  if (generation === state.generation) {
    replace(main, made);
    main.dataset.ready = page.module + "." + page.view;
    const title = main.querySelector("h1");
    if (title && scrolled !== undefined && document.activeElement === document.body) title.focus({ preventScroll: true });
  }
}

// Links within the console do not load the document again.
document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const url = new URL(anchor.href, location.href);
  if (url.origin !== location.origin || anchor.target || anchor.hasAttribute("download")) return;
  if (url.hash && url.pathname === location.pathname) return;
  if (url.pathname !== "/" && !url.pathname.startsWith("/clusters/")) return;
  event.preventDefault();
  go(url.pathname + url.search);
  scrollTo(0, 0);
});
// An action that the server refused, and that has no place of its own for the reason.
window.addEventListener("unhandledrejection", (event) => {
  if (!(event.reason instanceof ApiError)) return;
  event.preventDefault();
  toast(event.reason.message, true);
});
window.addEventListener("popstate", show);
window.addEventListener("logged-out", () => location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search)));

async function start() {
  state.session = await api("GET", "/session");
  if (!state.session.pages) {
    loginPage(new URLSearchParams(location.search).get("message"));
    return;
  }
  for (const page of state.session.pages) page.compiled = patternOf(page.path);
  await show();
}
start().catch((error) => replace(app, problem(error)));
