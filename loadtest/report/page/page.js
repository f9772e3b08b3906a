// What a script adds: tables that sort, charts that grow, tabs. Without it all is there.
(() => {
  "use strict";
  const all = (root, what) => [...root.querySelectorAll(what)];

  // The number that a cell begins with, or its text.
  const key = (cell) => {
    const m = cell.textContent.trim().match(/^[+-]?[\d.]+/);
    return m ? parseFloat(m[0]) : cell.textContent.trim();
  };
  for (const table of all(document, "table.sortable")) {
    all(table, "thead th").forEach((th, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...th.childNodes);
      th.append(button);
      button.addEventListener("click", () => {
        const up = th.getAttribute("aria-sort") !== "ascending";
        all(table, "thead th").forEach((other) => other.removeAttribute("aria-sort"));
        th.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = all(table, "tbody tr");
        rows.sort((a, b) => {
          const x = key(a.cells[column]), y = key(b.cells[column]);
          const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
          return up ? order : -order;
        });
        table.tBodies[0].append(...rows);
      });
    });
  }

  for (const chart of all(document, ".chart")) {
    chart.addEventListener("dblclick", () => chart.classList.toggle("zoomed"));
    chart.title = "double click: larger";
  }

  // Profiles of one run: a button each, where there are several.
  for (const run of all(document, ".run")) {
    const parts = all(run, "[data-profile]");
    const names = [...new Set(parts.map((p) => p.dataset.profile))];
    if (names.length < 3) continue;
    const bar = document.createElement("div");
    bar.className = "tabs";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Profiles");
    const show = (name) => {
      for (const p of parts) p.hidden = name !== "" && p.dataset.profile !== name;
      for (const b of bar.children) b.setAttribute("aria-pressed", String(b.dataset.name === name));
    };
    for (const name of ["", ...names]) {
      const b = document.createElement("button");
      b.type = "button";
      b.dataset.name = name;
      b.textContent = name || "all profiles";
      b.addEventListener("click", () => show(name));
      bar.append(b);
    }
    run.querySelector("header").append(bar);
    show("");
  }

  // Several runs: one at a time.
  const runs = all(document, ".run");
  const links = all(document, ".dates .tabs a");
  if (links.length > 1) {
    const show = (id) => {
      for (const r of runs) r.hidden = r.id !== id;
      for (const a of links) {
        if (a.hash === "#" + id) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current");
      }
    };
    for (const a of links) a.addEventListener("click", (e) => { e.preventDefault(); show(a.hash.slice(1)); });
    const asked = location.hash.slice(1);
    show(runs.some((r) => r.id === asked) ? asked : runs[runs.length - 1].id);
  }
})();
