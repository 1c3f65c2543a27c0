// Icons of the navigation, as paths on a 24 by 24 grid.
import { svg } from "/static/lib.js";

const PATHS = {
  home: "M4 11l8-7 8 7v9h-5v-6h-6v6H4z",
  server: "M4 5h16v6H4zM4 13h16v6H4zM7 8h.01M7 16h.01",
  vote: "M12 3l8 4v5c0 5-3.5 8-8 9-4.5-1-8-4-8-9V7zM9 12l2 2 4-4",
  sliders: "M5 4v7M5 15v5M12 4v3M12 11v9M19 4v9M19 17v3M3 13h4M10 9h4M17 15h4",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  users: "M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM3 20c0-4 3-6 6-6s6 2 6 6M16 5a3 3 0 010 6M18 14c2 .7 3 3 3 6",
  alert: "M12 4l9 16H3zM12 10v4M12 17h.01",
  swap: "M4 8h14l-4-4M20 16H6l4 4",
  braces: "M9 4c-3 0-3 1-3 4s-1 3-2 4c1 1 2 1 2 4s0 4 3 4M15 4c3 0 3 1 3 4s1 3 2 4c-1 1-2 1-2 4s0 4-3 4",
  plug: "M9 3v5M15 3v5M6 8h12v3a6 6 0 01-12 0zM12 17v4",
  flow: "M4 6h6v5H4zM14 13h6v5h-6zM10 8h4v7",
  tree: "M10 3h4v4h-4zM4 17h4v4H4zM16 17h4v4h-4zM12 7v5M6 17v-5h12v5",
  terminal: "M4 5h16v14H4zM7 9l3 3-3 3M12 15h5",
  mirror: "M12 3v18M8 7l-5 5 5 5zM16 7l5 5-5 5z",
  scale: "M12 4v16M6 20h12M4 8h16M4 8l-2 6h6zM20 8l-2 6h6z",
  graph: "M6 8a2 2 0 100-4 2 2 0 000 4zM18 14a2 2 0 100-4 2 2 0 000 4zM6 20a2 2 0 100-4 2 2 0 000 4zM8 6l8 5M8 18l8-5",
  lock: "M6 11h12v9H6zM9 11V8a3 3 0 016 0v3",
  user: "M12 12a4 4 0 100-8 4 4 0 000 8zM5 20c0-4 3-6 7-6s7 2 7 6",
  gauge: "M4 16a8 8 0 0116 0M12 16l4-5",
  key: "M8 15a4 4 0 100-8 4 4 0 000 8zM12 11h9M18 11v4",
  clock: "M12 20a8 8 0 100-16 8 8 0 000 16zM12 8v4l3 2",
};

export function icon(name) {
  return svg("svg", { viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", "stroke-width": "1.8",
    "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" },
    svg("path", { d: PATHS[name] || PATHS.list }));
}
