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
          const nothing = (x === "–") - (y === "–");
          if (nothing !== 0) return nothing; // what has no figure comes last, either way
          const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
          return up ? order : -order;
        });
        table.tBodies[0].append(...rows);
      });
    });
  }

  // A chart grows by Enter or a double click. What a mark of it stands for is said below:
  // of the one under the pointer, or that the arrow keys have come to.
  for (const chart of all(document, ".chart")) {
    const grow = () => chart.classList.toggle("zoomed");
    const marks = all(chart, "circle, rect, path").filter((m) => m.querySelector("title"));
    const said = document.createElement("p");
    said.className = "said note";
    said.setAttribute("role", "status");
    chart.after(said);
    let at = -1;
    const point = (to) => {
      if (at >= 0) marks[at].classList.remove("pointed");
      at = to;
      marks[at].classList.add("pointed");
      said.textContent = marks[at].querySelector("title").textContent;
    };
    marks.forEach((m, i) => m.addEventListener("pointerenter", () => point(i)));
    chart.addEventListener("dblclick", grow);
    chart.addEventListener("keydown", (e) => {
      if (e.key === "Enter") grow();
      else if (e.key === "ArrowRight" && marks.length > 0) point((at + 1) % marks.length);
      else if (e.key === "ArrowLeft" && marks.length > 0) point((at + marks.length - 1 + (at < 0)) % marks.length);
      else return;
      e.preventDefault();
    });
    chart.title = "Enter or double click: larger; arrow keys: what the marks stand for";
  }

  // Profiles of one run: a button each, where there are several.
  for (const run of all(document, ".run")) {
    const parts = all(run, "[data-profile]");
    const names = [...new Set(parts.map((p) => p.dataset.profile))];
    if (names.filter((n) => n !== "duet").length < 2) continue;
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
