// Draws a graph that the server has laid out: boxes, lines, and links to pages.
import { h, here, svg } from "/static/lib.js";

function line(node, text, y, kind) {
  const long = text.length > node.letters;
  return svg("text", { x: long ? 10 : node.width / 2, y, "text-anchor": long ? "start" : "middle", class: kind }, text);
}

export function graph(title, picture, { onpick } = {}) {
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
    const box = svg("g", { class: "node " + node.kind },
      svg("rect", { x: node.x, y: node.y, width: node.width, height: node.height, rx: node.kind === "topic" ? 20 : 6 }),
      // A frame of its own cuts off what is too long; the whole name stays readable for other programs.
      svg("svg", { x: node.x, y: node.y, width: node.width, height: node.height },
        line(node, node.label, 19, "label"), " ", node.note ? line(node, node.note, 35, "note-line") : null));
    const mark = (on) => () => {
      for (const [edge, path] of paths) {
        path.classList.toggle("near", on && (edge.source === node.id || edge.target === node.id));
      }
    };
    const held = node.link || onpick
      ? svg("a", { href: node.link ? here(node.link.split("/").map(encodeURIComponent).join("/")) : "#", "aria-label": `${node.label} ${node.note}`.trim() }, box)
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
