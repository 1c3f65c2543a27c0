// Draws a graph that the server has laid out: boxes, lines, and links to pages.
import { enc, h, here, replace, svg } from "/static/lib.js";

// The page of a box. All after the section is one name: a group may be called a/b.
export function page(node) {
  const [, section, ...name] = node.link.split("/");
  return here(`/${section}/${enc(name.join("/"))}`);
}

// Records per second by node: since the picture before, or as the instances' own metrics have it,
// which is a mean over the last minute.
function ratesOf(picture, before) {
  const seconds = before ? (picture.at_ms - before.at_ms) / 1000 : 0;
  const known = new Map(before ? before.nodes.map((node) => [node.id, node.records]) : []);
  return new Map(picture.nodes.filter((node) => node.rate !== null).map((node) => {
    const more = node.records - known.get(node.id);
    return [node.id, seconds >= 0.5 && more >= 0 ? more / seconds : node.rate];
  }));
}

// A picture that is drawn again and again: where one looks at it stays, and rates are of the time since.
export function liveGraph(title, options = {}) {
  const place = h("div");
  let before = null;
  place.show = (picture, otherwise) => {
    const old = place.querySelector(".graphbox");
    const [left, top] = old ? [old.scrollLeft, old.scrollTop] : [0, 0];
    const held = old && old.contains(document.activeElement) ? document.activeElement.getAttribute("data-node") : null;
    const made = picture ? graph(title, picture, { ...options, rates: ratesOf(picture, before) }) : h("p", { class: "soft" }, otherwise);
    before = picture && picture.at_ms ? picture : null;
    const box = made.querySelector(".graphbox");
    if (old && box) {
      // The text below stays the same element: open if it was, and a click on it is not lost.
      old.replaceWith(box);
      place.querySelector("details > ul").replaceWith(made.querySelector("details > ul"));
    } else {
      replace(place, made);
    }
    if (!box) return;
    box.scrollTo(left, top);
    if (held !== null) ([...box.querySelectorAll("a")].find((each) => each.getAttribute("data-node") === held) || box).focus({ preventScroll: true });
  };
  return place;
}

function line(node, text, y, kind) {
  const long = text.length > node.letters;
  return svg("text", { x: long ? 10 : node.width / 2, y, "text-anchor": long ? "start" : "middle", class: kind }, text);
}

const perSecond = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export function graph(title, picture, { onpick, rates = ratesOf(picture, null) } = {}) {
  if (!picture.nodes.length) return h("p", { class: "soft" }, "Nothing to draw.");
  const words = picture.edges.map((each) => `${name(picture, each.source)} to ${name(picture, each.target)}`);
  const made = svg("svg", {
    viewBox: `0 0 ${picture.width} ${picture.height}`, width: picture.width, height: picture.height,
    role: "group", "aria-label": title,
  });
  made.append(svg("defs", null, svg("marker", {
    id: "arrow", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto",
  }, svg("path", { d: "M0 0L10 5L0 10z", class: "tip" }))));
  const paths = picture.edges.map((each) => {
    const path = svg("path", { class: "edge", d: each.path, "marker-end": "url(#arrow)", "aria-hidden": "true" });
    made.append(path);
    return [each, path];
  });
  for (const node of picture.nodes) {
    const rate = rates.has(node.id) ? `${perSecond.format(rates.get(node.id))} records/s` : "";
    const box = svg("g", { class: "node " + node.kind },
      svg("rect", { x: node.x, y: node.y, width: node.width, height: node.height, rx: node.kind === "topic" ? 20 : 6 }),
      // A frame of its own cuts off what is too long; the whole name stays readable for other programs.
      svg("svg", { x: node.x, y: node.y, width: node.width, height: node.height },
        line(node, node.label, 19, "label"), " ", node.note ? line(node, node.note, 35, "note-line") : null, " ",
        rate ? line(node, rate, node.note ? 51 : 35, "rate-line") : null));
    const mark = (on) => () => {
      for (const [edge, path] of paths) {
        path.classList.toggle("near", on && (edge.source === node.id || edge.target === node.id));
      }
    };
    const held = node.link || onpick
      ? svg("a", { href: node.link ? page(node) : "#", "data-node": node.id, "aria-label": [node.label, node.note, rate].filter(Boolean).join(" ") }, box)
      : box;
    if (onpick) held.addEventListener("click", (event) => {
      event.preventDefault();
      event.stopPropagation();
      onpick(node);
    });
    held.addEventListener("mouseenter", mark(true));
    held.addEventListener("mouseleave", mark(false));
    held.addEventListener("focusin", mark(true));
    held.addEventListener("focusout", mark(false));
    made.append(held);
  }
  return h("div", null,
    h("div", { class: "graphbox", tabindex: "0", role: "region", "aria-label": title }, made),
    h("details", null, h("summary", null, "As text"), h("ul", null, words.map((each) => h("li", null, each)))));
}

const name = (picture, id) => (picture.nodes.find((each) => each.id === id) || { label: id }).label;
